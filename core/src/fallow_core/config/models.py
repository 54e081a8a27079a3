"""Models of the core file and of cluster files. The defaults of policies are those of `fallow_core.model`."""

import ipaddress
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fallow_core.config.capacity_models import Capacity, NodeModel, PoolModel, double_node, pools_problem
from fallow_core.config.fields import Model, Percent, UpToDay, UpToHour, made, mismatch, section, within, written
from fallow_core.config.problems import KeyPath
from fallow_core.config.qos_models import Qos, TakeBackModel
from fallow_core.config.settings import CONTROL_SOCKET
from fallow_core.model import quantities
from fallow_core.model.policy import ExitMode, KeepLargest, Limit, PublishingMode, PublishingPolicy, Sharing, TakeBack
from fallow_hookspecs import Role

DEFAULT_CLUSTERS_DIR = "clusters.d"

_PUBLISHING = PublishingPolicy()


def _name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", value):
        raise ValueError("expected at most 63 lower-case letters, digits and '-', with a letter or digit at both ends")
    return value


def _path(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("expected a path; a relative one counts from the directory of this file")
    return value


def _ip_address(value: object) -> str:
    try:
        return str(ipaddress.ip_address(value if isinstance(value, str) else ""))
    except ValueError:
        raise ValueError("expected an IP address such as 127.0.0.1 or ::") from None


def _host(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9._:-]{1,253}", value):
        raise ValueError("expected a host name or an IP address")
    return value


def _off(value: object) -> object:
    if value == "off":
        return None
    if not isinstance(value, dict):
        raise ValueError("expected a mapping with address and port, or off")  # noqa: TRY004 - pydantic's protocol
    return value


def _no_doubles(names: list[str]) -> list[str]:
    if double := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"the wrapper {double!r} is there twice; keep one")
    return names


def _empty(value: object) -> object:
    return {} if value is None else value  # `spec:` with nothing but comments below


Name = Annotated[str, BeforeValidator(_name)]
FilePath = Annotated[str, BeforeValidator(_path)]
Host = Annotated[str, BeforeValidator(_host)]
Interval = Annotated[float, written(within("1s", "10m"))]


class FrameworkMetadata(Model):
    """`metadata` of a core file."""

    name: Name | None = None


class Metrics(Model):
    """Where `/metrics` is served."""

    address: Annotated[str, BeforeValidator(_ip_address)] = "127.0.0.1"
    port: Annotated[int, Field(ge=1, le=65535)] = 9464


MetricsOrOff = Metrics | Literal["off"]


class NodeIdentity(Model):
    """The identity of this host. `name`: the host name by default. `addresses`: added to those that the host has."""

    name: Host | None = None
    addresses: list[Host] = Field(default_factory=list)
    labels: dict[str, str] = Field(default_factory=dict)


class Publishing(Model):
    """When and how sizes are sent."""

    mode: Annotated[PublishingMode, Field(strict=False)] = _PUBLISHING.mode
    sharing: Annotated[Sharing, Field(strict=False)] = _PUBLISHING.sharing
    dead_band_percent: Percent = _PUBLISHING.dead_band_percent
    growth_delay_seconds: UpToHour = _PUBLISHING.growth_delay_seconds
    publish_interval_seconds: Annotated[float, written(within("1s", "10m")), Field(alias="interval")] = (
        _PUBLISHING.publish_interval_seconds
    )
    report_interval_seconds: Interval = _PUBLISHING.report_interval_seconds
    degrade_after_seconds: UpToDay = _PUBLISHING.degrade_after_seconds
    withdraw_after_seconds: UpToDay = _PUBLISHING.withdraw_after_seconds
    in_flight_seconds: Annotated[float, written(within("1s", "1h"))] = _PUBLISHING.in_flight_seconds

    @model_validator(mode="after")
    def _withdrawn_after_degraded(self) -> "Publishing":
        if self.withdraw_after_seconds < self.degrade_after_seconds:
            key = "withdrawAfter" if "withdraw_after_seconds" in self.model_fields_set else "degradeAfter"
            times = (
                f"degradeAfter is {self.degrade_after_seconds:g}s and withdrawAfter {self.withdraw_after_seconds:g}s"
            )
            raise mismatch((key,), f"{times}; withdrawAfter must not be the shorter one")
        return self


class Log(Model):
    """What is logged."""

    level: Literal["debug", "info", "warning", "error"] = "info"


class CoreFile(Model):
    """`kind: Fallow`."""

    api_version: Literal["fallow/v1"]
    kind: Literal["Fallow"]
    metadata: FrameworkMetadata = section()
    clusters_dir: FilePath = DEFAULT_CLUSTERS_DIR
    state_dir: FilePath = "/var/lib/fallow"
    control_socket: FilePath = CONTROL_SOCKET
    control_group: Annotated[str, Field(pattern=r"^[^\s:]+$")] | None = None
    metrics: Annotated[Metrics | None, BeforeValidator(_off, json_schema_input_type=MetricsOrOff)] = section()
    host_root: FilePath = "/"
    node: NodeIdentity = section()
    capacity: Capacity = section()
    pools: list[PoolModel] = Field(default_factory=list)
    nodes: list[NodeModel] = Field(default_factory=list)
    publishing: Publishing = section()
    take_back: TakeBackModel = section()
    qos: Qos = section()
    sample_interval_seconds: Annotated[float, written(within("100ms", "1m"))] = 1.0
    on_exit: Annotated[ExitMode, Field(strict=False)] = ExitMode.FLOOR
    log: Log = section()

    @model_validator(mode="after")
    def _every_pool_and_node_counts(self) -> "CoreFile":
        if (wrong := pools_problem(self.pools)) is not None:
            key, text = wrong
            raise mismatch(("pools", *key), text)
        if (double := double_node(self.nodes)) is not None:
            index, name = double
            raise mismatch(("nodes", index, "name"), f"the node {name!r} is there twice; keep one")
        return self

    @model_validator(mode="after")
    def _degraded_after_a_sample(self) -> "CoreFile":
        degrade_after = self.publishing.degrade_after_seconds
        if degrade_after <= self.sample_interval_seconds:
            key: KeyPath = ("sampleInterval",)
            if "sample_interval_seconds" not in self.model_fields_set:
                key = ("publishing", "degradeAfter")
            times = f"sampleInterval is {self.sample_interval_seconds:g}s and degradeAfter {degrade_after:g}s"
            raise mismatch(key, f"{times}; sampleInterval must be the shorter one")
        return self


class ClusterMetadata(Model):
    """`metadata` of a cluster file."""

    name: Name


class Limits(Model):
    """The most that the cluster gets of each resource."""

    cpu: Annotated[Limit, made(quantities.cpu_limit)] = Field(default_factory=Limit)
    memory: Annotated[Limit, made(quantities.memory_limit)] = Field(default_factory=Limit)


class ClusterFile(Model):
    """`kind: Cluster`. `spec` is checked by the plugin's own model."""

    api_version: Literal["fallow/v1"]
    kind: Literal["Cluster"]
    metadata: ClusterMetadata
    plugin: Annotated[str, Field(min_length=1)]
    roles: Annotated[list[Annotated[Role, Field(strict=False)]], Field(min_length=1)] = Field(
        default_factory=lambda: [Role.CONTROLLER, Role.AGENT]
    )
    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    limit: Limits = section()
    take_back: Annotated[TakeBack, Field(strict=False)] = TakeBack.ALLOWED
    keep_largest: Annotated[KeepLargest, Field(strict=False)] = KeepLargest.WARN
    node_selector: dict[str, str] = Field(default_factory=dict)
    wrappers: Annotated[list[Annotated[str, Field(min_length=1)]], AfterValidator(_no_doubles)] = Field(
        default_factory=list
    )
    spec: Annotated[dict[str, Any], BeforeValidator(_empty)] = Field(default_factory=dict)
