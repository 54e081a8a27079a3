"""Inputs that are refused because they cannot be true: what, of which node, and why. Pure."""

from collections.abc import Collection, Mapping

from fallow_core.model.event import Event


class RefusedInputs:
    """The inputs of one source, such as a cluster, that are refused now.

    `now` goes by kind of input and by the name of what it is about: a node, a task. `count`: how many were refused.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.now: dict[tuple[str, str], str] = {}
        self.count = 0

    def note(self, kind: str, found: Mapping[str, str], among: Collection[str] | None = None) -> list[Event]:
        """Replace what is refused of one kind of input. Returns an event for each refusal that begins, changes or ends.

        :param found: the reason of each refusal, by name.
        :param among: the names that were checked; by default all of this kind.
        """
        before = {key for key in self.now if key[0] == kind and (among is None or key[1] in among)}
        events = []
        for name, why in found.items():
            if (kind, name) not in before:
                self.count += 1
                events.append(self._event("input_refused", kind, name, warning=True, why=why))
        after = {(kind, name) for name in found}
        events += [self._event("input_taken_again", *key) for key in before - after]
        for key in before - after:
            del self.now[key]
        self.now |= {(kind, name): why for name, why in found.items()}
        return events

    def lines(self) -> list[str]:
        """One line for each refusal, for people."""
        return [f"{self.source}: {kind} of {name} is refused: {why}" for (kind, name), why in sorted(self.now.items())]

    def _event(self, name: str, kind: str, of: str, *, warning: bool = False, **fields: str) -> Event:
        return Event(
            logger="inputs", name=name, fields={"source": self.source, "kind": kind, "of": of} | fields, warning=warning
        )
