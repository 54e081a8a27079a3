"""The configuration files of the daemons."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import escape

CAPACITY = "yarn.scheduler.capacity."
RM = "yarn.resourcemanager"
CLASSES = "org.apache.hadoop.yarn.server.resourcemanager"
STATE_STORE = f"{CLASSES}.recovery.FileSystemRMStateStore"
FAIR_SCHEDULER = {
    "yarn.resourcemanager.scheduler.class": f"{CLASSES}.scheduler.fair.FairScheduler",
    # by default it rounds what is asked for up to whole GiB
    "yarn.resource-types.memory-mb.increment-allocation": "128",
}
LOG4J = """log4j.rootLogger=INFO,out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %p %c{1}: %m%n
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a cluster looks like.

    `memory_mb` and `vcores` are those of each NodeManager, `min_mb` is the scheduler's minimum allocation.
    `site` has more yarn-site properties by daemon ("rm", "nm1", "nm2", ...), `capacity` more properties of the
    CapacityScheduler, without their common prefix yarn.scheduler.capacity.
    """

    node_managers: int = 1
    memory_mb: int = 2048
    vcores: int = 2
    min_mb: int = 128
    heartbeat_ms: int = 1000
    site: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    capacity: Mapping[str, str] = field(default_factory=dict)


def common(*, client: str, admin: str, scheduler: str, tracker: str, web: str) -> dict[str, str]:
    """Properties of every daemon and of applications: where the ResourceManager listens, each "host:port"."""
    return {
        "ipc.client.connect.max.retries": "2",
        "ipc.client.connect.retry.interval": "200",
        "yarn.resourcemanager.hostname": "127.0.0.1",
        "yarn.resourcemanager.address": client,
        "yarn.resourcemanager.admin.address": admin,
        "yarn.resourcemanager.scheduler.address": scheduler,
        "yarn.resourcemanager.resource-tracker.address": tracker,
        "yarn.resourcemanager.webapp.address": web,
        # by default a NodeManager comes back half a minute after the ResourceManager does
        "yarn.resourcemanager.connect.retry-interval.ms": "300",
        "yarn.resourcemanager.connect.max-wait.ms": "120000",
    }


def rm_site(setup: Setup, home: Path) -> dict[str, str]:
    """Properties of the ResourceManager: it forgets nothing when it is killed."""
    return {
        "hadoop.tmp.dir": f"{home}/tmp",
        "yarn.node-attribute.fs-store.root-dir": f"file://{home}/attributes",
        "yarn.resourcemanager.recovery.enabled": "true",
        "yarn.resourcemanager.store.class": STATE_STORE,
        # by default the first container comes 10 s after the start
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": "1000",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": f"{setup.heartbeat_ms}",
        "yarn.scheduler.minimum-allocation-mb": f"{setup.min_mb}",
        "yarn.resourcemanager.client.thread-count": "8",
        "yarn.resourcemanager.scheduler.client.thread-count": "8",
        "yarn.resourcemanager.resource-tracker.client.thread-count": "8",
        "yarn.resourcemanager.amlauncher.thread-count": "4",
        **setup.site.get("rm", {}),
    }


def nm_site(setup: Setup, name: str, home: Path, ipc: str, localizer: str, web: str) -> dict[str, str]:
    """Properties of one NodeManager: its containers live on when it is killed."""
    return {
        "hadoop.tmp.dir": f"{home}/tmp",
        "yarn.nodemanager.hostname": "127.0.0.1",
        "yarn.nodemanager.address": ipc,
        "yarn.nodemanager.localizer.address": localizer,
        "yarn.nodemanager.webapp.address": web,
        "yarn.nodemanager.log-dirs": f"{home}/logs",
        "yarn.nodemanager.recovery.enabled": "true",
        "yarn.nodemanager.recovery.dir": f"{home}/recovery",
        "yarn.nodemanager.resource.memory-mb": f"{setup.memory_mb}",
        "yarn.nodemanager.resource.cpu-vcores": f"{setup.vcores}",
        "yarn.nodemanager.pmem-check-enabled": "false",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
        "yarn.nodemanager.container-manager.thread-count": "4",
        **setup.site.get(name, {}),
    }


def capacity_scheduler(setup: Setup) -> dict[str, str]:
    """Properties of the CapacityScheduler: one queue, memory and vcores count."""
    settings = {
        "root.queues": "default",
        "root.default.capacity": "100",
        "maximum-am-resource-percent": "1.0",
        "resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
        "node-locality-delay": "-1",
        **setup.capacity,
    }
    return {CAPACITY + name: value for name, value in settings.items()}


def write(conf: Path, site: Mapping[str, str]) -> None:
    """Write a folder that Hadoop's classes read their configuration from."""
    conf.mkdir(parents=True)
    files: dict[str, dict[str, str]] = {"core-site.xml": {}, "yarn-site.xml": {}, "capacity-scheduler.xml": {}}
    for name, value in site.items():
        yarn_file = "capacity-scheduler.xml" if name.startswith(CAPACITY) else "yarn-site.xml"
        files[yarn_file if name.startswith("yarn.") else "core-site.xml"][name] = value
    for file, properties in files.items():
        write_xml(conf / file, properties)
    (conf / "log4j.properties").write_text(LOG4J)


def write_xml(file: Path, properties: Mapping[str, str]) -> None:
    """Write one file of properties in Hadoop's form."""
    lines = [f"<property><name>{escape(k)}</name><value>{escape(v)}</value></property>" for k, v in properties.items()]
    file.write_text("\n".join(["<configuration>", *lines, "</configuration>", ""]))
