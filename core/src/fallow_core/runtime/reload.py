"""Follows the configuration files while Fallow runs: takes good changes, refuses wrong ones.

A thread of its own checks the files once a second, and reads them at once on SIGHUP: neither a slow disk nor a plugin
that is slow to import may delay the protection of the host.
"""

import logging
import time
from collections.abc import Callable

from fallow_core.config import changes
from fallow_core.config.file_stamps import FileStamps, look
from fallow_core.config.refused_files import Refusals
from fallow_core.config.settings import Config
from fallow_core.log import event
from fallow_core.plugins.lanes import Call, Failure, Lane

log = logging.getLogger("fallow.run")

LOOK_SECONDS = 1.0
READ_SECONDS = 30.0


class Files:
    """Reads the files of a configuration again after a change, once they are stable, or on request."""

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
        """Read the files with the next step even if they did not change. Safe in a signal handler."""
        self._asked = True

    def step(self, config: Config) -> Config | None:
        """The configuration in the files if they were read since the last step. `config` is the one in force."""
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
        """Whether a read has exceeded its time: until it ends no change is noticed."""
        return self._call is not None and self._call.overdue(self._clock())

    def close(self) -> None:
        """End the thread."""
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


def taken(old: Config, read: Config, refusals: Refusals) -> Config:
    """The configuration from now on, after the files were read again. A mistake is logged when it is first found."""
    new, known = changes.in_force(old, read), refusals.problems
    refusals.note(new.problems, time.time())
    for problem in new.problems:
        if problem not in known:
            event(log, logging.ERROR, "file_refused", problem=problem)
    refusals.refused += bool(new.problems)
    refusals.taken += not new.problems
    if new.log_level != old.log_level:
        logging.getLogger().setLevel(new.log_level.upper())
    event(log, logging.INFO, "files_read", clusters=len(new.clusters), problems=len(new.problems))
    return new
