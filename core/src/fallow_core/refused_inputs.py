"""Inputs that were refused because they cannot be true: what, of which node, and why."""

import logging
from collections.abc import Mapping

from fallow_core.log import event

log = logging.getLogger("fallow.inputs")


class Refused:
    """What is refused now of one source, such as a cluster. Told when it begins, when it changes, and when it is over.

    `now` goes by kind of input and name of what it is about: a node, a task.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.now: dict[tuple[str, str], str] = {}
        self.count = 0

    def note(self, kind: str, found: Mapping[str, str]) -> None:
        """All that is refused now of one kind of input, by name; of other kinds nothing changes."""
        before = {key: why for key, why in self.now.items() if key[0] == kind}
        after = {(kind, name): why for name, why in found.items()}
        for key in after.keys() - before.keys():
            self.count += 1
            event(log, logging.WARNING, "input_refused", source=self.source, kind=kind, of=key[1], why=after[key])
        for key in before.keys() - after.keys():
            event(log, logging.INFO, "input_taken_again", source=self.source, kind=kind, of=key[1])
        self.now = {key: why for key, why in self.now.items() if key[0] != kind} | after

    def lines(self) -> list[str]:
        """One line for each, for people."""
        return [f"{self.source}: {kind} of {name} is refused: {why}" for (kind, name), why in sorted(self.now.items())]
