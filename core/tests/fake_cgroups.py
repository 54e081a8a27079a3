"""A host's control groups in memory, behind the calls that Fallow makes: v1, v2, or both, with the kernel's refusals.

`tests/e2e/host_cgroups` checks it against a real kernel.
"""

import errno
import os
from dataclasses import dataclass, field
from typing import Any

from fallow_core.node.cgroups import memory
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.hierarchy import Hierarchy

V1 = "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"
V1_CPU = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpuacct"
V1 += f"{V1_CPU},cpu\n"
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
HYBRID = V1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
MOUNTS = {1: "/sys/fs/cgroup/cpu,cpuacct", 2: "/sys/fs/cgroup"}
LEAST_US, MOST_PERIOD_US = 1000, 1_000_000


def parse(text: str) -> frozenset[int]:
    ranges = (part.partition("-") for part in text.split(",") if part)
    return frozenset(cpu for first, _, last in ranges for cpu in range(int(first), int(last or first) + 1))


def shown(cpus: frozenset[int]) -> str:
    """As the kernel writes it, with ranges."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


def pages(limit: int) -> int:
    """As the kernel counts memory."""
    return limit // memory.PAGE_BYTES * memory.PAGE_BYTES


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
    idle: int = 0
    memory_limit: int | None = None
    memory_high: int | None = None
    memory_low: int = 0
    anon: int = 0
    inactive_anon: int = 0
    inactive_file: int = 0
    cpus: frozenset[int] = frozenset()

    @property
    def memory_used(self) -> int:
        return self.anon + self.inactive_anon + self.inactive_file


class FakeCgroups(Files):
    """`version` is that of the CPU controller. `controllers`: on v1 all in one hierarchy. `extras`: files that not
    every kernel has. Groups have no memory of those below them.

    `garbage` is what a file says instead, `fails` what a write to it raises. `writes` are those that were
    taken: the path below the mount, and the text.
    """

    def __init__(
        self,
        version: int = 1,
        mountinfo: str | None = None,
        controllers: tuple[str, ...] = ("cpu",),
        extras: frozenset[str] = frozenset(),
    ) -> None:
        self.version = version
        self.mount = MOUNTS[version]
        v1 = f"{V1_CPU},{','.join(controllers)}\n"
        self.mountinfo = mountinfo if mountinfo is not None else (v1 if version == 1 else V2)
        self.controllers = controllers
        self.extras = extras
        self.swap_free = 0
        self.online_cpus = frozenset(range(8))
        self.groups: dict[str, Group] = {"": Group(identity=1, cpus=self.online_cpus)}
        self.garbage: dict[str, str] = {"/sys/devices/system/cpu/online": "0-7"}
        self.fails: dict[str, int] = {}
        self.writes: list[tuple[str, str]] = []
        self.calls = 0
        self._identities = 1

    @property
    def hierarchy(self) -> Hierarchy:
        return Hierarchy(
            controller="cpu",
            version=self.version,
            mount=self.mount,
            root="/",
            files=self,
            proc_root="/proc",
            also=tuple(self.controllers[1:]),
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

    def values(self) -> dict[str, tuple[int | None, int, int, tuple[int, ...]]]:
        """All that can be set."""
        return {p: (g.quota, g.period, g.weight, tuple(sorted(g.pids))) for p, g in self.groups.items()}

    def read(self, path: str) -> str:
        self.calls += 1
        if path in self.garbage:
            return self.garbage[path]
        if path == "/proc/self/mountinfo":
            return self.mountinfo
        if path == "/proc/meminfo":
            return f"MemTotal: 1 kB\nSwapFree: {self.swap_free // 1024} kB\n"
        if path.startswith("/proc/"):
            return self._cgroup_of(int(path.split("/")[2]), path)
        if path in ("/sys/fs/cgroup/cgroup.controllers", "/sys/fs/cgroup/unified/cgroup.controllers"):
            return " ".join(self.controllers) + "\n" if self.version == 2 else "\n"
        if path.endswith("/memory.reclaim") and self.identity(path):
            raise refused(errno.EINVAL, path)
        return self._found(path)

    def _found(self, path: str) -> str:
        group, name = self._split(path)
        found = self._texts(self.groups[group])
        if not group and self.version == 2:
            found = {name: text for name, text in found.items() if name in ("cgroup.procs", "cpuset.cpus.effective")}
        if name not in found or (not name.startswith("cgroup.") and not self._is_passed_on(group)):
            raise refused(errno.ENOENT, path)
        return found[name] + "\n"

    def write(self, path: str, text: str) -> None:
        self.calls += 1
        group, name = self._split(path)
        self._found(path)
        if path in self.fails:
            raise refused(self.fails[path], path)
        act = {
            "cgroup.procs": lambda: self._move(int(text), group),
            "cgroup.subtree_control": lambda: self._pass_on(path, group),
            "cpu.shares": lambda: self._set_weight(path, group, max(2, min(int(text), 262_144))),
            "cpu.weight": lambda: self._set_weight(path, group, int(text)),
            "cpu.idle": lambda: self._set_idle(path, group, int(text)),
            "memory.limit_in_bytes": lambda: self._set_memory_limit(path, group, text),
            "memory.max": lambda: self._set_memory_limit(path, group, text),
            "memory.high": lambda: self._set_memory_high(group, None if text == "max" else pages(int(text))),
            "memory.low": lambda: setattr(self.groups[group], "memory_low", pages(int(text))),
            "memory.reclaim": lambda: self._reclaim(path, group, int(text)),
            "cpuset.mems": lambda: None,
            "cpuset.cpus": lambda: self._set_cpus(path, group, parse(text.strip())),
            "cpu.cfs_quota_us": lambda: self._set_limit(path, group, int(text), self.groups[group].period),
            "cpu.max": lambda: self._set_limit(path, group, *self._maximum(text, self.groups[group].period)),
        }.get(name)
        if act is None:
            raise refused(errno.EINVAL, path)
        act()
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
        if group in self.groups:
            return self.groups[group].identity
        return len(self.garbage.get(path) or self._found(path))

    def _split(self, path: str) -> tuple[str, str]:
        group, _, name = path.removeprefix(self.mount).lstrip("/").rpartition("/")
        if group not in self.groups:
            raise refused(errno.ENOENT, path)
        return group, name

    def _texts(self, group: Group) -> dict[str, str]:
        pids = "\n".join(map(str, group.pids))
        quota = group.quota
        extra = {"cpu.idle": str(group.idle), "memory.reclaim": "", "cpu.bvt_warp_ns": "0"}
        found = {name: text for name, text in extra.items() if name in self.extras}
        if "memory" in self.controllers:
            found |= self._memory_texts(group)
        if "cpuset" in self.controllers:
            name = next(name for name, one in self.groups.items() if one is group)
            found["cpuset.cpus"] = shown(group.cpus)
            found["cpuset.mems"] = "0"
            found["cpuset.cpus.effective"] = shown(self.effective(name))
        if self.version == 1:
            return found | {
                "cgroup.procs": pids,
                "cpu.shares": "3" if group.idle else str(group.weight),
                "cpu.cfs_quota_us": str(-1 if quota is None else quota),
                "cpu.cfs_period_us": str(group.period),
                "cpu.stat": f"nr_periods 0\nnr_throttled 0\nthrottled_time {group.throttled * 10**9}",
            }
        return found | {
            "cgroup.procs": pids,
            "cgroup.subtree_control": "cpu" if group.passes_on else "",
            "cpu.weight": "0" if group.idle else str(group.weight),
            "cpu.max": f"{'max' if quota is None else quota} {group.period}",
            "cpu.stat": f"usage_usec 0\nthrottled_usec {group.throttled * 10**6}",
        }

    def _memory_texts(self, group: Group) -> dict[str, str]:
        prefix = "total_" if self.version == 1 else ""
        stat = f"anon 1\n{prefix}inactive_file {group.inactive_file}\n{prefix}inactive_anon {group.inactive_anon}"
        if self.version == 1:
            limit = pages(2**63 - 1) if group.memory_limit is None else group.memory_limit
            return {
                "memory.stat": stat,
                "memory.limit_in_bytes": str(limit),
                "memory.usage_in_bytes": str(group.memory_used),
                "memory.use_hierarchy": "1",
                "memory.swappiness": "60",
            }
        return {
            "memory.stat": stat,
            "memory.max": "max" if group.memory_limit is None else str(group.memory_limit),
            "memory.high": "max" if group.memory_high is None else str(group.memory_high),
            "memory.low": str(group.memory_low),
            "memory.current": str(group.memory_used),
            "memory.swap.max": "max",
            "memory.swap.current": "0",
        }

    def effective(self, name: str) -> frozenset[int]:
        """The CPUs on which processes of a group may run."""
        if self.version == 1:
            return self.groups[name].cpus
        above = self.effective(name.rpartition("/")[0]) if name else self.online_cpus
        return (self.groups[name].cpus & above) or above

    def _pass_on(self, path: str, group: str) -> None:
        if group and self.groups[group].pids:
            raise refused(errno.EBUSY, path)
        self.groups[group].passes_on = True

    def _maximum(self, text: str, period: int) -> tuple[int, int]:
        quota, period_text = (*text.split(), str(period))[:2]
        return -1 if quota == "max" else int(quota), int(period_text)

    def _set_memory_high(self, group: str, high: int | None) -> None:
        self.groups[group].memory_high = high
        if high is not None:
            self._push_out(group, self.groups[group].memory_used - high)

    def _reclaim(self, path: str, group: str, amount: int) -> None:
        if self._push_out(group, amount) < amount:
            raise refused(errno.EAGAIN, path)

    def _push_out(self, name: str, amount: int) -> int:
        group = self.groups[name]
        dropped = max(min(amount, group.inactive_file), 0)
        swapped = max(min(amount - dropped, group.inactive_anon, self.swap_free), 0)
        group.inactive_file -= dropped
        group.inactive_anon -= swapped
        self.swap_free -= swapped
        return dropped + swapped

    def _set_memory_limit(self, path: str, name: str, text: str) -> None:
        if self.version == 2 and text == "-1":
            raise refused(errno.EINVAL, path)
        limit = None if text in ("max", "-1") or int(text) >= 1 << 62 else pages(int(text))
        self._push_out(name, self.groups[name].memory_used - (limit or 1 << 62))
        if limit is not None and self.groups[name].memory_used > limit:
            raise refused(errno.EBUSY, path)
        self.groups[name].memory_limit = limit

    def _set_weight(self, path: str, group: str, weight: int) -> None:
        if self.groups[group].idle:
            raise refused(errno.EINVAL, path)
        if self.version == 2 and not 1 <= weight <= 10_000:
            raise refused(errno.ERANGE, path)
        self.groups[group].weight = weight

    def _set_idle(self, path: str, group: str, idle: int) -> None:
        if idle not in (0, 1) or not group:
            raise refused(errno.EINVAL, path)
        if idle != self.groups[group].idle:
            self.groups[group].idle, self.groups[group].weight = idle, 1024 if self.version == 1 else 100

    def _set_cpus(self, path: str, name: str, cpus: frozenset[int]) -> None:
        group = self.groups[name]
        if self.version == 2 and not cpus <= self.online_cpus:
            raise refused(errno.ERANGE, path)
        if self.version == 2 and group.cpus and not cpus and self._is_populated(name):
            raise refused(errno.ENOSPC, path)
        if self.version == 1 and name:
            above = name.rpartition("/")[0]
            if not cpus and group.pids:
                raise refused(errno.ENOSPC, path)
            if not cpus <= (self.groups[above].cpus if above else self.online_cpus):
                raise refused(errno.EACCES, path)
            if any(not self.groups[child].cpus <= cpus for child in self._children_of(name)):
                raise refused(errno.EBUSY, path)
        group.cpus = cpus

    def _is_populated(self, name: str) -> bool:
        return any(one.pids for path, one in self.groups.items() if f"{path}/".startswith(f"{name}/"))

    def _children_of(self, name: str) -> list[str]:
        return [other for other in self.groups if other.rpartition("/")[0] == name and other]

    def _pids(self, group: str) -> str:
        return "\n".join(map(str, self.groups[group].pids))

    def _is_passed_on(self, group: str) -> bool:
        return self.version == 1 or not group or (self.groups[group.rpartition("/")[0]].passes_on)

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
                listed = ",".join((*self.controllers, "cpuacct"))
                return f"4:{listed}:/{name}\n0::/\n" if self.version == 1 else f"0::/{name}\n"
        raise refused(errno.ENOENT, path)

    def _set_limit(self, path: str, group: str, micros: int, period: int) -> None:
        quota = None if micros < 0 else micros
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
