"""The groups of one hierarchy: what is in them, and the changes that can be made to them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from fallow_core.errors import CgroupError
from fallow_core.node.cgroups.files import Files

GONE = " (deleted)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """The mounted tree of one controller. What the kernel refuses is an `OSError`.

    `also`: further controllers that Fallow uses in the same tree.
    `root`: which part of the hierarchy is mounted, as /proc/PID/cgroup would call it; it is `/` but in a container.
    """

    controller: str
    version: int
    mount: str
    root: str
    files: Files
    proc_root: str
    also: tuple[str, ...] = ()

    def path(self, group: str, name: str = "") -> str:
        """The path of a group, or of a file in it."""
        return "/".join(part for part in (self.mount, group, name) if part)

    def read(self, group: str, name: str) -> str:
        """What a file of a group says, without the line's end."""
        return self.files.read(self.path(group, name)).strip()

    def write(self, group: str, name: str, text: str) -> None:
        """Write to a file of a group."""
        self.files.write(self.path(group, name), text or "\n")  # of nothing at all the kernel would hear nothing

    def has(self, group: str, name: str) -> bool:
        """Whether a group has a file."""
        try:
            self.files.identity(self.path(group, name))
        except OSError:
            return False
        return True

    def identity(self, group: str) -> int | None:
        """What tells a group from a later one of the same path; `None` if it is not there."""
        try:
            return self.files.identity(self.path(group))
        except OSError:
            return None

    def children(self, group: str) -> list[str]:
        """The names of the groups right below one; none if it is gone."""
        try:
            return self.files.folders(self.path(group))
        except OSError:
            return []

    def below(self, group: str) -> Iterator[str]:
        """All groups below one, a parent before its children. One that vanishes meanwhile is left out."""
        waiting = [group]
        while waiting:
            current = waiting.pop()
            children = [f"{current}/{name}".lstrip("/") for name in self.children(current)]
            yield from children
            waiting.extend(children)

    def processes(self, group: str) -> list[int]:
        """The pids in a group itself, without those of groups below it; 0 would be one of another pid namespace.

        :raises CgroupError: the file holds something else.
        """
        text = self.read(group, "cgroup.procs")
        if not all(map(str.isdigit, text.split())):
            raise CgroupError(f"{self.path(group, 'cgroup.procs')}: expected pids, found {text[:80]!r}")
        return [pid for pid in map(int, text.split()) if pid]

    def move(self, pid: int, group: str) -> None:
        """Put a process with all its threads into a group."""
        self.write(group, "cgroup.procs", str(pid))

    def group_of(self, pid: int) -> str:
        """The group of a process.

        :raises OSError: it has ended.
        :raises CgroupError: its group is gone, or outside of what is mounted here.
        """
        return self.group_in(self.files.read(f"{self.proc_root}/{pid}/cgroup"), pid)

    def group_in(self, text: str, pid: int) -> str:
        """The group of a process by what its /proc/PID/cgroup says.

        :raises CgroupError: as `group_of`.
        """
        for line in text.splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if self.controller in controllers.split(",") if self.version == 1 else not controllers:
                if path.endswith(GONE):
                    raise CgroupError(f"the group of process {pid} was removed")
                return self._relative(pid, path)
        raise CgroupError(f"process {pid} is in no group of the controller {self.controller}")

    def make(self, group: str, needed: str) -> None:
        """Make a group that has the file `needed`. One of v1's cpuset gets what the one above has, else nobody could be
        put into it.

        :raises CgroupError: the controller is not passed on to it.
        """
        self.files.make(self.path(group))
        try:
            self.read(group, needed)
        except FileNotFoundError:
            self.files.remove(self.path(group))
            above = self.path(group.rpartition("/")[0])
            raise CgroupError(f"{above} does not pass {self.controller} on (cgroup.subtree_control)") from None
        if self.version == 1 and "cpuset" in (self.controller, *self.also):
            for name in ("cpuset.mems", "cpuset.cpus"):
                if not self.read(group, name):
                    self.write(group, name, self.read(group.rpartition("/")[0], name))

    def pass_on(self, group: str) -> None:
        """Let groups below one have the controller as well, which v1 always does; others as far as they are here."""
        if self.version == 2:
            self.write(group, "cgroup.subtree_control", f"+{self.controller}")
            for controller in self.also:
                with suppress(OSError):
                    self.write(group, "cgroup.subtree_control", f"+{controller}")

    def remove(self, group: str) -> None:
        """Remove an empty group."""
        self.files.remove(self.path(group))

    def _relative(self, pid: int, path: str) -> str:
        """A path of /proc/PID/cgroup below what is mounted; both are told as this process's namespace sees them."""
        parts, root = _parts(path), _parts(self.root)
        if parts[: len(root)] != root or ".." in parts[len(root) :]:
            raise CgroupError(f"process {pid} is in {path}, which is not below {self.root} as mounted on {self.mount}")
        return "/".join(parts[len(root) :])


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
