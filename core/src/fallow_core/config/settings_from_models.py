"""From the models of the files to the values that the rest of core works with."""

import json
import math
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

from fallow_core.config.capacity_policies import policies_of
from fallow_core.config.models import ClusterFile, CoreFile
from fallow_core.config.problems import Problem
from fallow_core.config.qos_models import TakeBackSettings
from fallow_core.config.qos_policies import qos_of
from fallow_core.config.settings import ClusterSettings, Config
from fallow_core.model.plugin import LoadedPlugin
from fallow_core.model.policy import AccountPolicy, PublishingPolicy
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_hookspecs import ClusterConfig


def config_of(
    model: CoreFile, file: Path, clusters: tuple[ClusterSettings, ...] = (), problems: tuple[Problem, ...] = ()
) -> Config:
    """Settings of a core file. Relative paths count from its directory; the node is called as the host by default."""
    file = file.absolute()
    publishing, policies = model.publishing, policies_of(model.capacity, model.pools, model.nodes)
    return Config(
        file=file,
        name=model.metadata.name,
        clusters_dir=file.parent / model.clusters_dir,
        state_dir=file.parent / model.state_dir,
        control_socket=file.parent / model.control_socket,
        control_group=model.control_group,
        metrics=None if model.metrics is None else (model.metrics.address, model.metrics.port),
        node_name=model.node.name or socket.gethostname(),
        node_addresses=tuple(model.node.addresses),
        node_labels=model.node.labels,
        host_root=file.parent / model.host_root,
        policies=policies,
        publishing=PublishingPolicy(
            mode=publishing.mode,
            sharing=publishing.sharing,
            dead_band_percent=publishing.dead_band,
            growth_delay_seconds=publishing.growth_delay,
            in_flight_seconds=publishing.in_flight,
            degrade_after_seconds=publishing.degrade_after,
            withdraw_after_seconds=publishing.withdraw_after,
            publish_interval_seconds=publishing.interval,
            report_interval_seconds=publishing.report_interval,
        ),
        take_back=_take_back(model.take_back),
        qos=qos_of(model.qos),
        sample_interval_seconds=model.sample_interval,
        on_exit=model.on_exit,
        log_level=model.log.level,
        clusters=clusters,
        problems=problems,
    )


def cluster_of(model: ClusterFile, file: Path, plugin: LoadedPlugin, spec: Any) -> ClusterSettings:
    """The settings of a cluster file; `spec` is what the plugin's model made of its own."""
    return ClusterSettings(
        file=file.absolute(),
        plugin=replace(plugin, wrappers=tuple(model.wrappers)),
        config=ClusterConfig(name=model.metadata.name, roles=frozenset(model.roles), spec=spec),
        account=AccountPolicy(
            weight=model.weight,
            cpu_limit=model.limit.cpu,
            memory_limit=model.limit.memory,
            take_back=model.take_back,
            keep_largest=model.keep_largest,
        ),
        node_selector=model.node_selector,
        built_from=json.dumps([sorted(model.roles), model.wrappers, model.spec], sort_keys=True),
    )


def _take_back(model: TakeBackSettings) -> TakeBackPolicy:
    return TakeBackPolicy(
        mode=model.mode,
        after_seconds={"memory": model.after},
        notice_seconds=math.ceil(model.notice),
        blast_percent=model.blast_radius,
        blast_seconds=model.blast_window,
    )
