"""Finds the mounted tree of a controller in /proc/self/mountinfo."""

import re
from dataclasses import dataclass, replace

from fallow_core.errors import CgroupError
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.hierarchy import Hierarchy

PROC_ROOT = "/proc"
CONTROLLERS = ("cpu", "memory", "cpuset")
"""The controllers that Fallow uses."""


def hierarchies(
    files: Files, host_root: str = "/", proc_root: str = PROC_ROOT
) -> tuple[dict[str, Hierarchy], dict[str, str]]:
    """The hierarchies by controller, and the reasons for the controllers that this host lacks.

    Controllers that are mounted together share one hierarchy.
    """
    found: dict[str, Hierarchy] = {}
    lacking: dict[str, str] = {}
    for controller in CONTROLLERS:
        try:
            found[controller] = find(controller, files, proc_root, host_root)
        except CgroupError as error:
            lacking[controller] = str(error)
    joined: dict[str, Hierarchy] = {}
    for controller, hierarchy in found.items():
        together = [other for other, one in found.items() if one.mount == hierarchy.mount]
        joined[controller] = replace(found[together[0]], also=tuple(together[1:]))
    return joined, lacking


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mount:
    """`root`: the part of the hierarchy that is mounted, as seen in the cgroup namespace of this process."""

    root: str
    point: str
    version: int
    options: frozenset[str]


def find(controller: str, files: Files, proc_root: str = PROC_ROOT, host_root: str = "/") -> Hierarchy:
    """The hierarchy of a controller. A controller is in only one hierarchy, even on a host with v1 and v2.

    :param host_root: the mount point of the host's file system, for a process in a container.
    :raises CgroupError: there is none.
    """
    try:
        lines = files.read(f"{proc_root}/self/mountinfo").splitlines()
    except OSError as error:
        raise CgroupError(f"{proc_root}/self/mountinfo: {error.strerror}") from error
    below = host_root.rstrip("/")
    # A later mount at the same path hides earlier ones.
    mounts = {mount.point: mount for mount in map(_parsed, lines) if mount is not None}
    here = [mount for mount in mounts.values() if f"{mount.point}/".startswith(f"{below}/")]
    for mount in sorted(here, key=lambda mount: (mount.version, mount.root != "/", len(mount.point))):
        if controller in (mount.options if mount.version == 1 else _controllers(files, mount.point)):
            return Hierarchy(
                controller=controller,
                version=mount.version,
                mount=mount.point,
                root=mount.root,
                files=files,
                proc_root=proc_root,
            )
    where = f" below {host_root}" if below else ""
    raise CgroupError(f"no cgroup hierarchy with the controller {controller} is mounted{where}")


def _parsed(line: str) -> _Mount | None:
    """One line: id parent device root point options [tags] - type source super-options."""
    before, _, after = line.partition(" - ")
    fields, of_type = before.split(), after.split()
    if len(fields) < 6 or len(of_type) < 3 or of_type[0] not in ("cgroup", "cgroup2"):
        return None
    version = 1 if of_type[0] == "cgroup" else 2
    options = frozenset(of_type[2].split(","))
    return _Mount(root=_unescaped(fields[3]), point=_unescaped(fields[4]), version=version, options=options)


def _controllers(files: Files, point: str) -> list[str]:
    try:
        return files.read(f"{point}/cgroup.controllers").split()
    except OSError:
        return []


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
