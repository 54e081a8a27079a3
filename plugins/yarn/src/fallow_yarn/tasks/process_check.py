"""Verifies that a process belongs to a container now: asks the kernel after a pidfd holds the process."""

from pathlib import Path

from fallow_hookspecs import Process
from fallow_yarn.nm.procfs import (
    Stat,
    own_cgroups,
    read_cgroups,
    read_environment,
    read_named,
    read_stat,
    read_user,
)
from fallow_yarn.tasks.process_tree import INIT_PID


class ProcessCheck:
    """Verifies the processes of one container one after the other, the oldest first.

    A process belongs to the container if it is the process that was found, in the same session, and

    - its cgroup is the container's, or
    - its user is that of a root of the container, and one of these holds: the leader of its session or its parent was
      verified and still lives; its environment or command line names the container; for a root, the command line of
      its launcher does.
    """

    def __init__(self, proc_root: Path, container_id: str) -> None:
        self._proc_root = proc_root
        self._container_id = container_id
        self._verified: dict[int, Process] = {}
        self._users: set[int] = set()

    def is_still_there(self, stat: Stat) -> bool:
        """Whether the process that was found still lives."""
        now = read_stat(self._proc_root, stat.pid)
        return now is not None and now.is_alive and now.process == stat.process

    def belongs(self, stat: Stat, *, is_root: bool) -> bool:
        """Whether the process belongs to the container. `is_root`: none of its ancestors does."""
        now, user = read_stat(self._proc_root, stat.pid), read_user(self._proc_root, stat.pid)
        if now is None or user is None or (now.process, now.session) != (stat.process, stat.session):
            return False
        if not own_cgroups(self._container_id, read_cgroups(self._proc_root, stat.pid)):
            if not is_root and user not in self._users:
                return False
            if not (self._is_kin(now) or self._is_named(now) or (is_root and self._is_launched(now))):
                return False
        if is_root:
            self._users.add(user)
        self._verified[stat.pid] = stat.process
        return True

    def _is_kin(self, now: Stat) -> bool:
        """Whether the leader of its session or its parent was verified. They are read after it, so they still live."""
        return any(self._still_verified(pid) for pid in {now.session, now.parent_pid} - {now.pid})

    def _still_verified(self, pid: int) -> bool:
        verified = self._verified.get(pid)
        if verified is None:
            return False
        now = read_stat(self._proc_root, pid)
        return now is not None and now.process == verified

    def _is_named(self, now: Stat) -> bool:
        environment = read_environment(self._proc_root, now.pid)
        if environment is not None and environment.container_id == self._container_id:
            return True
        return self._container_id in read_named(self._proc_root, now.pid)

    def _is_launched(self, now: Stat) -> bool:
        """Whether the command line of its parent, the launcher, names the container."""
        return now.parent_pid > INIT_PID and self._container_id in read_named(self._proc_root, now.parent_pid)
