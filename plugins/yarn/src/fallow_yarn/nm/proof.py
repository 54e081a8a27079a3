"""Which processes that look like NodeManagers are proven to be. Any process can have the main class as an argument.

A NodeManager is never below another one, and never below, or left over from, a container. It runs as the configured
user. Without one, processes of system users, of root and of Fallow's own user are believed; where there are none of
these, processes of the one other user that runs any. Containers of a LinuxContainerExecutor run as other users, by
default never as a system user. A task that runs as the NodeManager's own user can control the NodeManager itself.
"""

import os
import pwd
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fallow_hookspecs import PluginError, Process
from fallow_yarn.nm.procfs import Stat, ancestors, container_of, read_cgroups, read_environment, read_user

FIRST_TASK_UID: Final = 1000
"""`min.user.id` of container-executor.cfg by default: users below it run no containers."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The facts about a process that looks like a NodeManager. `of_container`: its cgroup or environment names one."""

    uid: int
    of_container: bool


class Proof:
    """Proves NodeManagers. It remembers the user of those that were proven, also after they have ended.

    `uid`: the configured user. `unsure`: why none is proven although some look like one; empty otherwise.
    """

    def __init__(self, proc_root: Path, uid: int | None = None) -> None:
        self.unsure = ""
        self._proc_root = proc_root
        self._uid = uid
        self._claims: dict[Process, Claim] = {}
        self._user_before: int | None = None

    def proven(
        self, candidates: Collection[Stat], stats: Mapping[int, Stat], of_containers: Container[Process]
    ) -> tuple[Process, ...]:
        """The NodeManagers among the candidates. `of_containers`: processes that belong to containers."""
        looking = {stat.pid for stat in candidates}
        apart = [
            stat
            for stat in candidates
            if stat.process not in of_containers and looking.isdisjoint(s.pid for s in ancestors(stat, stats))
        ]
        self._claims = {each.process: claim for each in apart if (claim := self._claim(each.process)) is not None}
        claims = {process: claim for process, claim in self._claims.items() if not claim.of_container}
        believed = self._believed({claim.uid for claim in claims.values()})
        return tuple(process for process, claim in claims.items() if claim.uid in believed)

    def _claim(self, process: Process) -> Claim | None:
        """Read once: neither a user that may not change its own, nor the first environment, changes."""
        known = self._claims.get(process)
        uid = known.uid if known is not None else read_user(self._proc_root, process.pid)
        if known is not None or uid is None:
            return known
        named = read_environment(self._proc_root, process.pid) is not None
        return Claim(uid, named or container_of(read_cgroups(self._proc_root, process.pid)) is not None)

    def _believed(self, uids: set[int]) -> set[int]:
        self.unsure = ""
        if self._uid is not None:
            return {self._uid}
        believed = {uid for uid in uids if uid < FIRST_TASK_UID or uid == os.geteuid()}
        if not believed and self._user_before is not None:
            believed = {self._user_before}
        elif not believed and len(uids) == 1:
            believed = set(uids)
        elif not believed and uids:
            users = ", ".join(map(str, sorted(uids)))
            self.unsure = f"processes of several users look like NodeManagers (uids {users}): set nodeManagerUser"
        others = {uid for uid in believed & uids if uid >= FIRST_TASK_UID}
        self._user_before = next(iter(others), self._user_before)
        return believed


def uid_of(user: str | None) -> int | None:
    """The number of a configured user, by its name or number.

    :raises PluginError: this host has no such user.
    """
    if user is None or user.isdigit():
        return None if user is None else int(user)
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        raise PluginError(f"spec.nodeManagerUser: this host has no user {user}") from None
