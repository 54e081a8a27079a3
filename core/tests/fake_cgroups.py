"""A host's control groups in memory, behind the calls that Fallow makes: v1, v2, or both, with the kernel's refusals.

`tests/e2e/host_cgroups` checks it against a real kernel.
"""

import errno
import os
from dataclasses import dataclass, field
from typing import Any

from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.hierarchy import Hierarchy

V1 = "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"
V1 += "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = V1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
MOUNTS = {1: "/sys/fs/cgroup/cpu,cpuacct", 2: "/sys/fs/cgroup"}
LEAST_US, MOST_PERIOD_US = 1000, 1_000_000


def refused(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)


@dataclass(slots=True)
class Group:
    identity: int
    quota: int | None = None
    period: int = 100_000
    weight: int = 1024
    pids: list[int] = field(default_factory=list)
    passes_on: bool = True
    throttled: int = 0


class FakeCgroups(Files):
    """`version` is that of the CPU controller.

    `garbage` is what a file says instead, `fails` what a write to it raises. `writes` are those that were
    taken: the path below the mount, and the text.
    """

    def __init__(self, version: int = 1, mountinfo: str | None = None) -> None:
        self.version = version
        self.mount = MOUNTS[version]
        self.mountinfo = mountinfo if mountinfo is not None else (V1 if version == 1 else V2)
        self.groups: dict[str, Group] = {"": Group(identity=1)}
        self.garbage: dict[str, str] = {}
        self.fails: dict[str, int] = {}
        self.writes: list[tuple[str, str]] = []
        self.calls = 0
        self._identities = 1

    @property
    def hierarchy(self) -> Hierarchy:
        return Hierarchy(
            controller="cpu", version=self.version, mount=self.mount, root="/", files=self, proc_root="/proc"
        )

    def add(self, path: str, *pids: int, **values: Any) -> Group:
        """A group with all above it; it has processes, and these values."""
        self._make(f"{self.mount}/{path.rpartition('/')[0]}", passes_on=True)
        self._make(f"{self.mount}/{path}", passes_on=not pids)
        for pid in pids:
            self.groups[path].passes_on = not path
            self._move(pid, path)
        for name, value in values.items():
            setattr(self.groups[path], name, value)
        return self.groups[path]

    def vanish(self, path: str) -> None:
        """A group and all below it are removed by somebody else; its processes have ended."""
        self.groups = {p: g for p, g in self.groups.items() if p != path and not p.startswith(f"{path}/")}

    def knobs(self) -> dict[str, tuple[int | None, int, int, tuple[int, ...]]]:
        """All that can be set."""
        return {p: (g.quota, g.period, g.weight, tuple(sorted(g.pids))) for p, g in self.groups.items()}

    def read(self, path: str) -> str:
        self.calls += 1
        if path in self.garbage:
            return self.garbage[path]
        if path == "/proc/self/mountinfo":
            return self.mountinfo
        if path.startswith("/proc/"):
            return self._cgroup_of(int(path.split("/")[2]), path)
        if path in ("/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/unified/cgroup.controllers"):
            return "cpuset cpu io memory\n" if self.version == 2 else "\n"
        group, name = self._split(path)
        found = self._texts(self.groups[group]) if group or self.version == 1 else {"cgroup.procs": self._pids("")}
        if name not in found or (name.startswith("cpu.") and not self._has_cpu(group)):
            raise refused(errno.ENOENT, path)
        return found[name] + "\n"

    def write(self, path: str, text: str) -> None:
        self.calls += 1
        group, name = self._split(path)
        self.read(path)
        if path in self.fails:
            raise refused(self.fails[path], path)
        if name == "cgroup.procs":
            self._move(int(text), group)
        elif name == "cgroup.subtree_control":
            if group and self.groups[group].pids:
                raise refused(errno.EBUSY, path)
            self.groups[group].passes_on = True
        elif name == "cpu.shares":
            self.groups[group].weight = max(2, min(int(text), 262_144))
        elif name == "cpu.weight":
            if not 1 <= int(text) <= 10_000:
                raise refused(errno.ERANGE, path)
            self.groups[group].weight = int(text)
        elif name == "cpu.cfs_quota_us":
            self._set_limit(path, group, None if int(text) < 0 else int(text), self.groups[group].period)
        elif name == "cpu.max":
            quota, period = (*text.split(), str(self.groups[group].period))[:2]
            self._set_limit(path, group, None if quota == "max" else int(quota), int(period))
        else:
            raise refused(errno.EINVAL, path)
        self.writes.append((path.removeprefix(f"{self.mount}/"), text))

    def folders(self, path: str) -> list[str]:
        self.calls += 1
        group = path.removeprefix(self.mount).lstrip("/")
        if group not in self.groups:
            raise refused(errno.ENOENT, path)
        prefix = f"{group}/" if group else ""
        names = (other.removeprefix(prefix) for other in self.groups if other.startswith(prefix) and other != group)
        return [name for name in names if name and "/" not in name]

    def make(self, path: str) -> None:
        self._make(path, passes_on=False)

    def _make(self, path: str, *, passes_on: bool) -> None:
        group = ""
        for part in path.removeprefix(self.mount).strip("/").split("/"):
            group = f"{group}/{part}".strip("/")
            if group not in self.groups:
                self._identities += 1
                weight = 1024 if self.version == 1 else 100
                self.groups[group] = Group(identity=self._identities, weight=weight, passes_on=passes_on)

    def remove(self, path: str) -> None:
        group = path.removeprefix(self.mount).lstrip("/")
        if group not in self.groups:
            raise refused(errno.ENOENT, path)
        if self.groups[group].pids or self.folders(path):
            raise refused(errno.EBUSY, path)
        del self.groups[group]

    def identity(self, path: str) -> int:
        group = path.removeprefix(self.mount).lstrip("/")
        if group not in self.groups:
            raise refused(errno.ENOENT, path)
        return self.groups[group].identity

    def _split(self, path: str) -> tuple[str, str]:
        group, _, name = path.removeprefix(self.mount).lstrip("/").rpartition("/")
        if group not in self.groups:
            raise refused(errno.ENOENT, path)
        return group, name

    def _texts(self, group: Group) -> dict[str, str]:
        pids = "\n".join(map(str, group.pids))
        quota = group.quota
        if self.version == 1:
            return {
                "cgroup.procs": pids,
                "cpu.shares": str(group.weight),
                "cpu.cfs_quota_us": str(-1 if quota is None else quota),
                "cpu.cfs_period_us": str(group.period),
                "cpu.stat": f"nr_periods 0\nnr_throttled 0\nthrottled_time {group.throttled * 10**9}",
            }
        return {
            "cgroup.procs": pids,
            "cgroup.subtree_control": "cpu" if group.passes_on else "",
            "cpu.weight": str(group.weight),
            "cpu.max": f"{'max' if quota is None else quota} {group.period}",
            "cpu.stat": f"usage_usec 0\nthrottled_usec {group.throttled * 10**6}",
        }

    def _pids(self, group: str) -> str:
        return "\n".join(map(str, self.groups[group].pids))

    def _has_cpu(self, group: str) -> bool:
        return self.version == 1 or (bool(group) and self.groups[group.rpartition("/")[0]].passes_on)

    def _move(self, pid: int, group: str) -> None:
        if self.version == 2 and group and self.groups[group].passes_on:
            raise refused(errno.EBUSY, group)
        for other in self.groups.values():
            if pid in other.pids:
                other.pids.remove(pid)
                break
        else:
            if pid < 0:
                raise refused(errno.ESRCH, group)
        self.groups[group].pids.append(pid)

    def _cgroup_of(self, pid: int, path: str) -> str:
        for name, group in self.groups.items():
            if pid in group.pids:
                return f"4:cpu,cpuacct:/{name}\n0::/\n" if self.version == 1 else f"0::/{name}\n"
        raise refused(errno.ENOENT, path)

    def _set_limit(self, path: str, group: str, quota: int | None, period: int) -> None:
        if not LEAST_US <= period <= MOST_PERIOD_US or (quota is not None and quota < LEAST_US):
            raise refused(errno.EINVAL, path)
        if self.version == 1 and not self._fits(group, quota, period):
            raise refused(errno.EINVAL, path)
        self.groups[group].quota, self.groups[group].period = quota, period

    def _fits(self, group: str, quota: int | None, period: int) -> bool:
        """v1: no group may have more than the nearest one above it that has a limit."""

        def ratio(name: str) -> float | None:
            if name == group:
                return None if quota is None else quota / period
            found = self.groups[name]
            return None if found.quota is None else found.quota / found.period

        for name in self.groups:
            own, above = ratio(name), name
            while own is not None and above:
                above = above.rpartition("/")[0]
                limit = ratio(above)
                if limit is not None and own > limit:
                    return False
        return True
