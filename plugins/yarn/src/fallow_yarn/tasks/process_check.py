"""Whether a process is a container's at this moment: asked of the kernel after the process is held by a pidfd."""

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


class Proof:
    """Shows the processes of one container one after the other, the oldest first.

    A process is the container's if it is who was found, in the same session, and

    - its cgroup is the container's, or
    - its user is one of the container's roots', and its session's leader or its parent has been shown and still lives,
      or its environment or command line names the container, or, for a root, its launcher's command line does.
    """

    def __init__(self, proc_root: Path, container_id: str) -> None:
        self._proc_root = proc_root
        self._container_id = container_id
        self._shown: dict[int, Process] = {}
        self._users: set[int] = set()

    def is_still_there(self, stat: Stat) -> bool:
        """Whether it is the process that was found, and lives."""
        now = read_stat(self._proc_root, stat.pid)
        return now is not None and now.is_alive and now.process == stat.process

    def shows(self, stat: Stat, *, is_root: bool) -> bool:
        """Whether the process is the container's. `is_root`: it is below no other one of them."""
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
        self._shown[stat.pid] = stat.process
        return True

    def _is_kin(self, now: Stat) -> bool:
        """Whether the leader of its session or its parent has been shown. They are read after it: they live on."""
        return any(self._still_shown(pid) for pid in {now.session, now.parent_pid} - {now.pid})

    def _still_shown(self, pid: int) -> bool:
        shown = self._shown.get(pid)
        if shown is None:
            return False
        now = read_stat(self._proc_root, pid)
        return now is not None and now.process == shown

    def _is_named(self, now: Stat) -> bool:
        environment = read_environment(self._proc_root, now.pid)
        if environment is not None and environment.container_id == self._container_id:
            return True
        return self._container_id in read_named(self._proc_root, now.pid)

    def _is_launched(self, now: Stat) -> bool:
        """Whether its parent, which is no part of the container, names it."""
        return now.parent_pid > INIT_PID and self._container_id in read_named(self._proc_root, now.parent_pid)
