"""Following the files while Fallow runs: what was changed takes effect, what is wrong is refused and shown.

The files are looked at once a second, and on SIGHUP read at once, in a thread of their own: neither a slow disk nor a
plugin that is slow to import keeps the loop from protecting the host.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fallow_core.config import changes
from fallow_core.config.file_stamps import FileStamps, look
from fallow_core.config.problems import Problem
from fallow_core.config.settings import Config
from fallow_core.log import event
from fallow_core.plugins.lanes import Call, Failure, Lane

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fallow_core.runtime.standalone import Standalone

log = logging.getLogger("fallow.run")

LOOK_SECONDS = 1.0
READ_SECONDS = 30.0


class Files:
    """Reads the files of a running configuration again when they have changed and come to rest, or when asked."""

    def __init__(
        self,
        config: Config,
        read_again: Callable[[Config], Config],
        clock: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self._read_again = read_again
        self._clock = clock
        self._wake = wake
        self._watch = FileStamps(config.seen)
        self._found = False
        self._asked = False
        self._next_at = clock()
        self._lane = Lane("config", clock, self._woken)
        self._call: Call[Config | None] | None = None

    def ask(self) -> None:
        """Read the files with the next step, whether they have changed or not. A signal handler may call it."""
        self._asked = True

    def step(self, config: Config) -> Config | None:
        """What the files say, if they were read anew since the last step. `config` is what is in force."""
        if self._call is not None and self._call.done:
            outcome, self._call = self._call.outcome, None
            if isinstance(outcome, Failure):
                event(log, logging.ERROR, "files_not_read", reason=outcome.reason)
            elif outcome is not None:
                return outcome
        now = self._clock()
        if self._call is None and (self._asked or now >= self._next_at):
            asked, self._asked = self._asked, False
            self._next_at = now + LOOK_SECONDS
            self._call = self._lane.submit(lambda: self._read(config, asked), READ_SECONDS, use_breaker=False)
        return None

    @property
    def overdue(self) -> bool:
        """Whether reading takes far too long: then no change is noticed."""
        return self._call is not None and self._call.overdue(self._clock())

    def close(self) -> None:
        """Look no more."""
        self._lane.close()

    def _read(self, config: Config, asked: bool) -> Config | None:
        """In the lane's thread."""
        now = look(config.file, config.clusters_dir)
        if not self._watch.settled(now) and not asked:
            return None
        self._watch.taken = now
        self._found = True
        return self._read_again(config)

    def _woken(self) -> None:
        if self._found:
            self._found = False
            self._wake()


@dataclass(slots=True)
class Refusals:
    """The files that are refused, since when (seconds since 1970), and how often files were read. Times are of the
    clock on the wall, for people. `taken_at`: when the newest configuration without a mistake was taken.
    """

    files: dict[Path, tuple[float, tuple[Problem, ...]]] = field(default_factory=dict)
    taken_at: float = 0.0
    taken: int = 0
    refused: int = 0

    def note(self, problems: Iterable[Problem], wall_now: float) -> None:
        """What was found when the files were read just now."""
        by_file: dict[Path, tuple[Problem, ...]] = {}
        for problem in problems:
            file = problem.file.absolute()
            by_file[file] = (*by_file.get(file, ()), problem)
        self.files = {
            file: (self.files[file][0] if file in self.files else wall_now, found) for file, found in by_file.items()
        }
        if not by_file:
            self.taken_at = wall_now

    def lines(self) -> list[str]:
        """One line a problem, for people."""
        return [
            f"{problem} (refused since {_moment(since)})" for since, found in self.files.values() for problem in found
        ]


def _moment(wall: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall))


def take(fallow: Standalone, read: Config) -> None:
    """Put in force what the files say now, as far as it is right."""
    old = fallow.config
    new = changes.in_force(old, read)
    fallow.config = new
    known = {problem for _, found in fallow.refusals.files.values() for problem in found}
    fallow.refusals.note(new.problems, time.time())
    for problem in new.problems:
        if problem not in known:
            event(log, logging.ERROR, "file_refused", problem=problem)
    fallow.refusals.refused += bool(new.problems)
    fallow.refusals.taken += not new.problems
    _policies(fallow, old, new)
    _clusters(fallow, old, new)
    event(log, logging.INFO, "files_read", clusters=len(new.clusters), problems=len(new.problems))


def _policies(fallow: Standalone, old: Config, new: Config) -> None:
    if changes.policy_differs(old, new):
        fallow.controller.taking_back.settle(fallow.clock())
        event(log, logging.INFO, "policy_changed", mode=new.publishing.mode)
    fallow.controller.configure(new.policies, new.publishing, new.take_back)
    fallow.agent.set_policy(new.qos)
    if new.log_level != old.log_level:
        logging.getLogger().setLevel(new.log_level.upper())


def _clusters(fallow: Standalone, old: Config, new: Config) -> None:
    wanted = {cluster.name: cluster for cluster in new.clusters}
    for name in sorted({cluster.name for cluster in old.clusters} - wanted.keys()):
        event(log, logging.INFO, "cluster_leaves", cluster=name, mode=new.on_exit)
        fallow.builds.drop(name)
        fallow.controller.remove(name, new.on_exit)
    for name, cluster in wanted.items():
        fallow.controller.name(name)
        fallow.builds.want(cluster)
        running = fallow.builds.running.get(name)
        if running is not None and running[0] is cluster:
            fallow.controller.clusters[name].configure(cluster.account, new.publishing)


def retire_departed(fallow: Standalone) -> None:
    """End the instances of clusters that were removed and have left the ledger."""
    for name in fallow.builds.running.keys() - fallow.controller.clusters.keys():
        fallow.builds.retire(name)
