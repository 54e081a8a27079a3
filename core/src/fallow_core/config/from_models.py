"""From the models of the files to the settings and policies that the rest of core works with.

A model's fields have the names of the policy's fields, so most of them are passed on as they are.
"""

import json
import math
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

from fallow_core.config.capacity_models import (
    Capacity,
    CapacityChange,
    CpuCapacity,
    CpuChange,
    MemoryCapacity,
    MemoryChange,
    ScheduleModel,
    WindowChange,
)
from fallow_core.config.fields import Model
from fallow_core.config.models import ClusterFile, CoreFile
from fallow_core.config.qos_models import Qos, TakeBackModel, reclaim_threshold
from fallow_core.config.settings import ClusterSettings, Config
from fallow_core.model.node_policies import Layer, NodeChange, NodePolicies, Pool, ResourceChange, Schedule, Window
from fallow_core.model.plugin import LoadedPlugin
from fallow_core.model.policy import AccountPolicy, NodePolicy, PublishingPolicy
from fallow_core.model.qos_policy import QosPolicy
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_hookspecs import ClusterConfig


def config_of(model: CoreFile, file: Path) -> Config:
    """The settings of a core file, without clusters.

    Relative paths count from the directory of the file. The default name of the node is the host name.
    """
    file = file.absolute()
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
        policies=_node_policies(model),
        publishing=PublishingPolicy(**dict(model.publishing)),
        take_back=_take_back(model.take_back),
        qos=_qos(model.qos),
        sample_interval_seconds=model.sample_interval_seconds,
        on_exit=model.on_exit,
        log_level=model.log.level,
    )


def cluster_of(model: ClusterFile, file: Path, plugin: LoadedPlugin, spec: Any) -> ClusterSettings:
    """The settings of a cluster file. `spec` is the result of the plugin's own model."""
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


def _node_policies(model: CoreFile) -> NodePolicies:
    return NodePolicies(
        default=_node_change(model.capacity).applied(NodePolicy()),
        schedule=_schedule(model.capacity.schedule),
        pools=tuple(Pool(name=p.name, node_selector=p.node_selector, layer=_layer(p.capacity)) for p in model.pools),
        nodes={node.name: _layer(node.capacity) for node in model.nodes},
    )


def _layer(model: CapacityChange) -> Layer:
    return Layer(change=_node_change(model), schedule=_schedule(model.schedule))


def _node_change(model: Capacity | CapacityChange) -> NodeChange:
    return NodeChange(cpu=_resource_change(model.cpu), memory=_resource_change(model.memory))


def _resource_change(model: CpuCapacity | MemoryCapacity | CpuChange | MemoryChange) -> ResourceChange:
    """`reserved` is an amount or a share: setting one resets the other."""
    values, reserved = dict(model), model.reserved
    if reserved is not None:
        values |= {"reserved": reserved.amount or 0, "reserved_percent": reserved.percent or 0}
    return ResourceChange(**values)


def _schedule(model: ScheduleModel | None) -> Schedule | None:
    if model is None:
        return None
    windows = (
        Window(
            days=frozenset(each.days),
            from_minute=each.from_,
            to_minute=each.to,
            change=NodeChange(cpu=_window_change(each.cpu), memory=_window_change(each.memory)),
        )
        for each in model.windows
    )
    return Schedule(time_zone=model.time_zone, windows=tuple(windows), ramp_seconds=round(model.ramp_seconds))


def _window_change(model: WindowChange) -> ResourceChange:
    return ResourceChange(**dict(model))


def _take_back(model: TakeBackModel) -> TakeBackPolicy:
    return TakeBackPolicy(
        mode=model.mode,
        after_seconds={"memory": model.after_seconds},
        notice_seconds=math.ceil(model.notice_seconds),
        blast_percent=model.blast_percent,
        blast_seconds=model.blast_seconds,
    )


def _qos(model: Qos) -> QosPolicy:
    default = QosPolicy(release_on_exit=model.on_exit == "release", exempt=model.exempt)
    policies = {name: replace(getattr(default, name), **dict(part)) for name, part in model if isinstance(part, Model)}
    qos = replace(default, **policies)
    return replace(qos, memory_reclaim=replace(qos.memory_reclaim, threshold_percent=reclaim_threshold(model)))
