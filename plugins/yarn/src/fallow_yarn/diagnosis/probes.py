"""Reads what only a diagnosis needs: the daemons' pages of settings, and this host."""

import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final

from fallow_hookspecs import Daemon
from fallow_yarn.diagnosis.daemon_conf import DaemonConf, parse
from fallow_yarn.errors import YarnError
from fallow_yarn.http.loose_json import Object, is_object, member
from fallow_yarn.http.web import Web
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.nm.containers import INFO, web_of
from fallow_yarn.nm.daemons import node_managers
from fallow_yarn.security.access import Access
from fallow_yarn.security.web_access import WebAccess
from fallow_yarn.settings.rm_addresses import RmAddresses

PAGE_SECONDS: Final = 4.0
CGROUP_ROOT: Final = Path("/sys/fs/cgroup")
_KIB: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A daemon's settings, clock and version.

    `settings` are empty where /conf cannot be read, and `problem` says why. `ahead_seconds`: by how much its clock is
    ahead of this host's, None if it did not tell. `info`: a NodeManager's page about itself, empty if not read.
    """

    settings: DaemonConf = field(default_factory=DaemonConf)
    problem: str = ""
    ahead_seconds: float | None = None
    info: Object = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probes:
    """All probes of a diagnosis; a test replaces them."""

    manager_page: Callable[[RmAddresses, Access, Deadline], Page]
    node_page: Callable[[str, WebAccess, Deadline], Page]
    disk_used_percent: Callable[[str], float | None]
    has_cgroup: Callable[[str], bool]
    processes: Callable[[Collection[str]], Iterable[Daemon]]


def manager_page(addresses: RmAddresses, access: Access, deadline: Deadline) -> Page:
    """The ResourceManager's settings and clock: one call."""
    return conf_page(access.web(addresses.web, secure=addresses.secure_web), deadline.within(PAGE_SECONDS))


def node_page(http_address: str, access: WebAccess, deadline: Deadline) -> Page:
    """A NodeManager's settings, clock and page about itself: two calls."""
    try:
        web = web_of(http_address, access)
    except ValueError:
        return Page(problem="its web address is unknown")
    page = conf_page(web, deadline.within(PAGE_SECONDS))
    try:
        info = member(web.json(INFO, deadline.within(PAGE_SECONDS)), "nodeInfo")
    except YarnError as error:
        return Page(settings=page.settings, problem=page.problem or str(error), ahead_seconds=page.ahead_seconds)
    known = info if is_object(info) else {}
    return Page(settings=page.settings, problem=page.problem, ahead_seconds=page.ahead_seconds, info=known)


def conf_page(web: Web, deadline: Deadline, wall: Callable[[], float] = time.time) -> Page:
    """The settings and the clock of a daemon: one call."""
    try:
        body, date = web.dated_page("/conf", deadline)
        ahead_seconds = _ahead_seconds(date, wall())
        return Page(settings=parse(bytes(body)), ahead_seconds=ahead_seconds)
    except YarnError as error:
        return Page(problem=str(error))


def disk_used_percent(folder: str) -> float | None:
    """How full the disk of a folder is by the NodeManager's measure: not writable for its user, in percent."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    return 100 * (1 - disk.f_bavail / disk.f_blocks) if disk.f_blocks else None


def has_cgroup(hierarchy: str) -> bool:
    """Whether a cgroup directory exists, in the unified tree or below a controller."""
    name = hierarchy.strip("/")
    return any((base / name).is_dir() for base in (CGROUP_ROOT, CGROUP_ROOT / "cpu", CGROUP_ROOT / "memory"))


def _ahead_seconds(date: str, now: float) -> float | None:
    try:
        return parsedate_to_datetime(date).timestamp() - now
    except ValueError:
        return None


PROBES: Final = Probes(
    manager_page=manager_page,
    node_page=node_page,
    disk_used_percent=disk_used_percent,
    has_cgroup=has_cgroup,
    processes=node_managers,
)
