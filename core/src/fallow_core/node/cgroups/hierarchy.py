"""Reads and changes the groups of one hierarchy."""

import errno
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from fallow_core.errors import CgroupError
from fallow_core.node.cgroups.files import Files

GONE = " (deleted)"
EMPTYING_ROUNDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """The mounted tree of one controller. Methods raise the `OSError` of the kernel.

    `also`: further controllers that Fallow uses in the same tree. `root`: the part of the hierarchy that is mounted, as
    a path of /proc/PID/cgroup; it is `/` except in a container.
    """

    controller: str
    version: int
    mount: str
    root: str
    files: Files
    proc_root: str
    also: tuple[str, ...] = ()

    def path(self, group: str, name: str = "") -> str:
        """The path of a group, or of a file in it.

        :raises FileNotFoundError: the path of the group leads out of the hierarchy, where no group is.
        """
        if ".." in group and ".." in group.split("/"):
            raise FileNotFoundError(errno.ENOENT, "the path leads out of the hierarchy", group)
        return "/".join(part for part in (self.mount, group, name) if part)

    def read(self, group: str, name: str) -> str:
        """The content of a file of a group, without the trailing newline."""
        return self.files.read(self.path(group, name)).strip()

    def write(self, group: str, name: str, text: str) -> None:
        """Write to a file of a group."""
        self.files.write(self.path(group, name), text or "\n")  # the kernel ignores an empty write

    def has(self, group: str, name: str) -> bool:
        """Whether a group has a file."""
        try:
            self.files.identity(self.path(group, name))
        except OSError:
            return False
        return True

    def identity(self, group: str) -> int | None:
        """A number that is unique for the group; `None` if the group does not exist."""
        try:
            return self.files.identity(self.path(group))
        except OSError:
            return None

    def children(self, group: str) -> list[str]:
        """The names of the direct children of a group; none if it is gone."""
        try:
            return self.files.folders(self.path(group))
        except OSError:
            return []

    def below(self, group: str) -> Iterator[str]:
        """All groups below a group, parents before children, without those that vanish meanwhile."""
        waiting = [group]
        while waiting:
            current = waiting.pop()
            children = [f"{current}/{name}".lstrip("/") for name in self.children(current)]
            yield from children
            waiting.extend(children)

    def processes(self, group: str) -> list[int]:
        """The pids in a group, without those of groups below it and without 0, a process of another pid namespace.

        :raises CgroupError: the format of the file is unknown.
        """
        text = self.read(group, "cgroup.procs")
        if not all(map(str.isdigit, text.split())):
            raise CgroupError(f"{self.path(group, 'cgroup.procs')}: expected pids, found {text[:80]!r}")
        return [pid for pid in map(int, text.split()) if pid]

    def move(self, pid: int, group: str) -> None:
        """Move a process with all its threads into a group."""
        self.write(group, "cgroup.procs", str(pid))

    def move_all(self, pids: Iterable[int], group: str) -> None:
        """Move processes into a group, also after one of them was refused. Ended processes are skipped.

        :raises CgroupError: the kernel refused one of them.
        """
        refused = ""
        for pid in pids:
            try:
                self.move(pid, group)
            except ProcessLookupError:
                pass  # it has ended
            except OSError as error:
                refused = f"process {pid} cannot be moved to /{group}: {error.strerror}"
        if refused:
            raise CgroupError(refused)

    def empty(self, group: str, target: str) -> None:
        """Move all processes of a group into another one, including those that start meanwhile."""
        for _ in range(EMPTYING_ROUNDS):
            pids = self.processes(group)
            if not pids:
                return
            self.move_all(pids, target)

    def group_of(self, pid: int) -> str:
        """The group of a process.

        :raises OSError: it has ended.
        :raises CgroupError: its group is gone, or is not mounted here.
        """
        return self.group_in(self.files.read(f"{self.proc_root}/{pid}/cgroup"), pid)

    def group_in(self, text: str, pid: int) -> str:
        """The group of a process, from the text of its /proc/PID/cgroup.

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
        """Create a group with the file `needed`. A cpuset group of v1 gets the sets of the group above: without them no
        process can be moved into it.

        :raises CgroupError: the group above does not pass the controller on.
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
        """Pass the controllers on to the groups below, as v1 always does; those of `also` may be missing."""
        if self.version == 2:
            self.write(group, "cgroup.subtree_control", f"+{self.controller}")
            for controller in self.also:
                with suppress(OSError):
                    self.write(group, "cgroup.subtree_control", f"+{controller}")

    def remove(self, group: str) -> None:
        """Remove an empty group."""
        self.files.remove(self.path(group))

    def _relative(self, pid: int, path: str) -> str:
        """A path of /proc/PID/cgroup relative to `root`; both are paths in the namespace of this process."""
        parts, root = _parts(path), _parts(self.root)
        if parts[: len(root)] != root or ".." in parts[len(root) :]:
            raise CgroupError(f"process {pid} is in {path}, which is not below {self.root} as mounted on {self.mount}")
        return "/".join(parts[len(root) :])


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part]
