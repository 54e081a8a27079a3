"""The loop of a process on a node.

A full probe samples the whole node, acts on it, and computes a round. Between two full probes the loop makes quick ones
at the pace that the prober asks for, serves requests, and takes the answers of calls. Kernel events only wake it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

from fallow_core.agent.probing.prober import Prober
from fallow_core.agent.probing.schedule import ProbeDue
from fallow_core.config.settings import Config
from fallow_core.runtime.inbox import Inbox

REST_FACTOR = 4
"""Minimum pause after an on-demand probe, as a multiple of its duration."""


class Loop(ABC):
    """Runs in one thread; other threads reach it through `inbox` and `wake`."""

    def __init__(self, config: Config, clock: Callable[[], float]) -> None:
        self.config = config
        self.clock = clock
        self.inbox = Inbox()
        self.prober = Prober(config, clock, self._on_kernel_event)
        self._stopping = self._woken = self._kernel_event = self._wants_full_probe = False

    @abstractmethod
    def _interval(self) -> float:
        """The time until the next full probe if nothing calls for an earlier one."""

    @abstractmethod
    def _full_probe(self) -> bool:
        """Sample the whole node, act on it, and compute a round. Return whether another full probe is wanted soon."""

    @abstractmethod
    def _quick_probe(self) -> ProbeDue:
        """Read a few numbers of the node, and say what is due because of them."""

    @abstractmethod
    def _limit(self) -> bool:
        """Adapt the limits of batch to a changed use of CPU outside batch. Return as `_full_probe`."""

    @abstractmethod
    def _take_answers(self) -> bool:
        """Take the answers of calls, and compute a round. Return as `_full_probe`."""

    @abstractmethod
    def _list_soon(self) -> None:
        """List the tasks of all clusters: some may have come or gone."""

    def step(self) -> None:
        """Make a full probe, and serve what comes until the next one is due.

        On-demand probes take no more than a fifth of the time, except when memory has crossed its threshold. Nothing
        but a request comes before the quick probe, so that a crossed threshold does not wait for a round.
        """
        began = self.clock()
        next_at = began + self._interval()
        self._wants_full_probe = self._full_probe()
        rested_at = limit_at = self._rested_at(began)
        while not self._stopping:
            full_at = min(next_at, rested_at) if self._wants_full_probe else next_at
            answered = self._serve(
                max(0.0, min(full_at - self.clock(), self.prober.pause, self.prober.list_tasks_in_seconds))
            )
            if self.prober.list_tasks_now():
                self._list_soon()
            due, now = self._quick_probe(), self.clock()
            if due is ProbeDue.THRESHOLD_CROSSED or (due is ProbeDue.FULL_PROBE and now >= rested_at):
                self._list_soon()  # the cause may be a task that is not known yet
                return
            if self._wants_full_probe and now >= rested_at:
                return
            if due is ProbeDue.CPU_LIMIT and now >= limit_at:
                self._wants_full_probe |= self._limit()
                limit_at = self._rested_at(now)
            if answered:
                self._wants_full_probe |= self._take_answers()
            if self.clock() >= next_at:
                return

    def wake(self) -> None:
        """Take answers at once. Safe in any thread and in a signal handler."""
        self._woken = True
        self.inbox.wake()

    def _on_kernel_event(self) -> None:
        self._kernel_event = True
        self.inbox.wake()

    def _serve(self, seconds: float) -> bool:
        """Serve requests for a time. Return whether anything but a kernel event came."""
        came = self.inbox.serve(seconds)
        kernel_event, self._kernel_event = self._kernel_event, False
        woken, self._woken = self._woken, False
        return woken or (came and not kernel_event)

    def _rested_at(self, began: float) -> float:
        """The earliest time of the next on-demand probe after one that began then and ends now."""
        now = self.clock()
        return now + (now - began) * REST_FACTOR
