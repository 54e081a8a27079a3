"""Judges the settings of one NodeManager. Pure, except for the probes of disks and cgroups."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from fallow_hookspecs import Finding
from fallow_yarn.diagnosis.daemon_conf import DaemonConf
from fallow_yarn.diagnosis.probes import Page, Probes
from fallow_yarn.http.loose_json import text
from fallow_yarn.rm.facts import Identity
from fallow_yarn.settings.file_uri import local_path

DISK_LIMIT: Final = "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"
DISK_CHECKS: Final = "yarn.nodemanager.disk-health-checker.enable"
LOCAL_DIRS: Final = "yarn.nodemanager.local-dirs"
LOG_DIRS: Final = "yarn.nodemanager.log-dirs"
CLOSE_TO_LIMIT_PERCENT: Final = 5.0
SIGKILL_DELAY: Final = "yarn.nodemanager.sleep-delay-before-sigkill.ms"
GRACE_MS: Final = 30_000
"""Fallow's default grace of a task."""

EXECUTOR: Final = "yarn.nodemanager.container-executor.class"
LINUX_EXECUTOR: Final = "LinuxContainerExecutor"
LCE: Final = "yarn.nodemanager.linux-container-executor"
HANDLER: Final = f"{LCE}.resources-handler.class"
HIERARCHY: Final = f"{LCE}.cgroups.hierarchy"
CGROUP_SWITCHES: Final = ("yarn.nodemanager.resource.cpu.enabled", "yarn.nodemanager.resource.memory.enabled")
ADDRESS: Final = "yarn.nodemanager.address"


def node_manager(
    node_id: str, page: Page, manager: Identity | None, probes: Probes, *, is_named: bool
) -> Iterator[Finding]:
    """All findings about one NodeManager; few if its settings cannot be read. `is_named`: in spec.nodeManagers.

    `manager`: the identity of the ResourceManager, if there is one.
    """
    yield _release(node_id, page, manager)
    if not page.settings.values:
        yield Finding(
            subject=f"settings of {node_id}",
            ok=None,
            detail=f"disk limits, the delay before SIGKILL and the executor are not known: {page.problem}",
            advice="let this host read the NodeManager's web page /conf as spec.user",
        )
        return
    yield _address(node_id, page.settings, is_named=is_named)
    yield _disks(node_id, page.settings, probes.disk_used_percent)
    yield _delay(node_id, page.settings)
    yield _executor(node_id, page.settings, probes.has_cgroup)


def _release(node_id: str, page: Page, manager: Identity | None) -> Finding:
    subject = f"release of {node_id}"
    version = text(page.info.get("nodeManagerVersion"))
    if not version:
        return Finding(subject=subject, ok=None, detail=f"not known: {page.problem or 'it does not report it'}")
    own = Identity(version=version, active=True, ha_state="", started_on=None)
    if own.release == (0, 0):
        return Finding(subject=subject, ok=None, detail=f"{version!r} is not a known release")
    other = ""
    if manager is not None and own.release != manager.release:
        other = f", the ResourceManager has {manager.version}"
    does = "" if own.takes_back else ": before 3.3 it does not receive its size, and registers with the configured one"
    return Finding(subject=subject, ok=True, detail=f"{version}{other}{does}")


def _address(node_id: str, settings: DaemonConf, *, is_named: bool) -> Finding:
    subject = f"port of {node_id}"
    value = settings.text(ADDRESS)
    if value is None:
        return Finding(subject=subject, ok=None, detail=f"{ADDRESS} is not shown")
    if not value.endswith(":0"):
        return Finding(subject=subject, ok=True, detail="fixed: it keeps its id when it restarts")
    return Finding(
        subject=subject,
        ok=False if is_named else None,
        detail=f"{ADDRESS} is {value}: each start makes a new node, and the old one counts for ten more minutes"
        + ("; spec.nodeManagers names the current one" if is_named else ""),
        advice=f"give {ADDRESS} a fixed port, such as 45454",
    )


def _disks(node_id: str, settings: DaemonConf, used_percent: Callable[[str], float | None]) -> Finding:
    subject = f"disks of {node_id}"
    limit, folders = settings.number(DISK_LIMIT), _folders(settings)
    if settings.flag(DISK_CHECKS) is False:
        return Finding(subject=subject, ok=True, detail="not checked by the NodeManager")
    if limit is None:
        return Finding(subject=subject, ok=None, detail=f"{DISK_LIMIT} is not shown")
    used = {folder: percent for folder in folders if (percent := used_percent(folder)) is not None}
    if not used or len(used) < len(folders):
        unseen = ", ".join(folder for folder in folders if folder not in used) or "its folders"
        detail = f"the limit is {limit:g} % full; how full they are is not known: {unseen}"
        return Finding(subject=subject, ok=None, detail=detail, advice="run Fallow where it can see these folders")
    folder, percent = max(used.items(), key=lambda entry: entry[1])
    if percent <= limit - CLOSE_TO_LIMIT_PERCENT or limit >= 100:
        return Finding(
            subject=subject, ok=True, detail=f"the fullest is {percent:.0f} % full, the limit is {limit:g} %"
        )
    state = "above" if percent > limit else "close to"
    return Finding(
        subject=subject,
        ok=False,
        detail=f"{folder} is {percent:.0f} % full, {state} the limit of {limit:g} %: above it the NodeManager is"
        " UNHEALTHY, gets no containers, and those it has may be lost",
        advice=f"free space there, or raise {DISK_LIMIT} in its yarn-site.xml",
    )


def _delay(node_id: str, settings: DaemonConf) -> Finding:
    subject = f"delay before SIGKILL of {node_id}"
    delay_ms = settings.number(SIGKILL_DELAY)
    if delay_ms is None:
        return Finding(subject=subject, ok=None, detail=f"{SIGKILL_DELAY} is not shown")
    if delay_ms >= GRACE_MS:
        return Finding(subject=subject, ok=True, detail=f"{delay_ms:g} ms")
    return Finding(
        subject=subject,
        ok=None,  # Hadoop's default is far shorter, and does no harm where no container has a second process
        detail=f"{delay_ms:g} ms: when a container's first process has ended, the NodeManager kills the rest of it"
        f" after this delay, not after the grace that Fallow gives ({GRACE_MS} ms by default)",
        advice=f"set {SIGKILL_DELAY} to the grace in its yarn-site.xml, and restart it",
    )


def _executor(node_id: str, settings: DaemonConf, has_cgroup: Callable[[str], bool]) -> Finding:
    subject = f"executor of {node_id}"
    name = settings.class_name(EXECUTOR)
    if name is None:
        return Finding(subject=subject, ok=None, detail=f"{EXECUTOR} is not shown")
    if name != LINUX_EXECUTOR:
        known = name == "DefaultContainerExecutor"
        detail = f"{name}: it makes no cgroups" if known else f"{name}: unknown"
        return Finding(subject=subject, ok=True if known else None, detail=detail)
    handler = settings.class_name(HANDLER) or ""
    switches = [settings.flag(key) for key in CGROUP_SWITCHES]
    if not (handler.startswith("Cgroups") or True in switches):
        return Finding(subject=subject, ok=True, detail=f"{name}, without cgroups")
    hierarchy = settings.text(HIERARCHY)
    if hierarchy is None:
        return Finding(subject=subject, ok=None, detail=f"{name}, with cgroups; {HIERARCHY} is not shown")
    if has_cgroup(hierarchy):
        detail = f"{name}: containers are in cgroups below {hierarchy}, and stay there"
        return Finding(subject=subject, ok=True, detail=detail)
    return Finding(
        subject=subject,
        ok=False,
        detail=f"{name}, with cgroups below {hierarchy}, which this host does not have: containers fail to start, or"
        " Fallow does not see the host's cgroups",
        advice=f"make that folder for the NodeManager's user, or correct {HIERARCHY}; in a container mount the host's"
        " /sys/fs/cgroup",
    )


def _folders(settings: DaemonConf) -> list[str]:
    """The folders for containers and logs as paths; each may have a kind of disk in brackets before it."""
    found: set[str] = set()
    for word in ",".join(settings.text(key) or "" for key in (LOCAL_DIRS, LOG_DIRS)).split(","):
        with suppress(ValueError):
            found.add(local_path(word.strip().rpartition("]")[2]))
    return sorted(path for path in found if path.startswith("/"))
