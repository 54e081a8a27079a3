"""What has to be written so that groups have what is wanted: each file is read anew, and nothing is changed here.

A limit is never more than the one that was found, since somebody meant it, and never one that would terminate tasks.
What this kernel lacks, or what cannot be now, is left out and noted, and the rest is done.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from fallow_core.node.cgroups import cpu, cpuset, memory
from fallow_core.node.cgroups.control_file import Knob, file_of
from fallow_core.node.cgroups.cpuset import Cpus
from fallow_core.node.cgroups.hierarchy import Hierarchy

Originals = Mapping[Knob, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What one group is to have: a limit in cores, CPUs, and the texts of other knobs. What is not in it: as found.

    `hold_limit`: whatever limit it has stays. `untouched`: knobs that something else changes at this moment.
    """

    clusters: frozenset[str]
    limit: Fraction | None = None
    hold_limit: bool = False
    texts: Mapping[Knob, str] = field(default_factory=dict)
    cpus: Cpus | None = None
    untouched: frozenset[Knob] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file to be written. `grows`: it gives more than it has now."""

    group: str
    knob: Knob
    before: str
    text: str
    grows: bool


def in_safe_order(changes: Iterable[Change]) -> list[Change]:
    """First what shrinks, the deepest groups first, then what grows, the deepest ones last."""
    return sorted(changes, key=lambda change: (change.grows, change.group.count("/") * (1 if change.grows else -1)))


class Changes:
    """The changes that are due. `lacking`: knobs that a group does not have, by the path of their file.

    `originals` tells how a group was found, `notice` is told what a file says. `left_out`: what was left out, and why.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        originals: Callable[[str], Originals],
        notice: Callable[[str, Knob, str], None],
    ) -> None:
        self.lacking: dict[str, Knob] = {}
        self.left_out = ""
        self._hierarchy = hierarchy
        self._originals = originals
        self._notice = notice

    def own(self, group: str, wanted: Wanted) -> list[Change | None]:
        """The changes of all knobs of the group itself but the limit, in their order."""
        changes: list[Change | None] = []
        known = {**self._originals(group), **wanted.texts}
        for knob in Knob:
            if knob in (Knob.LIMIT, Knob.CPUS) or knob not in known or knob in wanted.untouched:
                continue
            name = file_of(knob, self._hierarchy.version)
            try:
                change = self.of(group, knob, self._no_more(group, knob, wanted.texts.get(knob)))
            except FileNotFoundError:
                self.lacking[self._hierarchy.path(group, name)] = knob
                continue
            if knob is Knob.WEIGHT and change is not None and self._will_idle(group, changes):
                continue  # the kernel takes no weight for a group that idles
            if knob is Knob.MEMORY and change is not None and self.would_end_tasks(change):
                continue
            changes.append(change)
        return changes

    def of(self, group: str, knob: Knob, text: str | None) -> Change | None:
        """What has to be written so that a knob has a text, or what it had at first; nothing if it has it already."""
        if text is None:
            text = self._originals(group).get(knob)
        if text is None:
            return None
        try:
            before = self._hierarchy.read(group, file_of(knob, self._hierarchy.version))
        except OSError:
            if self._hierarchy.identity(group) is None:
                return None
            raise
        self._notice(group, knob, before)
        if before == text:
            return None
        return Change(group=group, knob=knob, before=before, text=text, grows=self._grows(group, knob, before, text))

    def limit_text(self, group: str, limit: Fraction | None) -> str | None:
        """A limit is never more than the one that was found: somebody meant it."""
        kept = self._originals(group).get(Knob.LIMIT)
        if limit is None:
            return kept
        found = kept or self._hierarchy.read(group, file_of(Knob.LIMIT, self._hierarchy.version))
        most = [cpu.limit_of(self._hierarchy, group, found), *self._above(group)]
        return cpu.limit_text(self._hierarchy, group, min([limit, *(one for one in most if one is not None)]))

    def below(self, group: str, text: str | None) -> list[Change | None]:
        """Groups below keep their own limits, but no more than the one above has."""
        most = None if text is None else cpu.limit_of(self._hierarchy, group, text)
        return [self._capped(below, most) for below in self._hierarchy.below(group)]

    def cpus(self, group: str, cpus: Cpus | None) -> list[Change]:
        """The changes of a group's CPUs, in their order; `None`: as it was found.

        v2 gives groups below what is left of their own sets; on v1 they have to be written too.
        """
        original = self._originals(group).get(Knob.CPUS)
        if cpus is None and original is None:
            return []
        name = file_of(Knob.CPUS, self._hierarchy.version)
        where = self._hierarchy.path(group, name)
        try:
            now = cpuset.cpus_of(self._hierarchy, group)
        except FileNotFoundError:
            self.lacking[where] = Knob.CPUS
            return []
        self._notice(group, Knob.CPUS, cpuset.text_of(now))
        target = cpuset.parse(original or "", where) if cpus is None else cpus
        if now == target or (not target and now == cpuset.all_cpus(self._hierarchy)):
            return []
        below = list(self._hierarchy.below(group)) if self._hierarchy.version == 1 else []
        found, targets = {group: now}, {group: target}
        for one in below:
            with contextlib.suppress(FileNotFoundError):  # it is gone
                if of_one := cpuset.cpus_of(self._hierarchy, one):
                    was = self._originals(one).get(Knob.CPUS)
                    own = of_one if was is None else cpuset.parse(was, where)
                    above = targets[one.rpartition("/")[0]]
                    found[one], targets[one] = of_one, own & above or above
        return [
            Change(group=one, knob=Knob.CPUS, before=cpuset.text_of(found[one]), text=cpuset.text_of(to), grows=False)
            for one, to in cpuset.safe_steps(list(found), found, targets)
        ]

    def would_end_tasks(self, change: Change) -> bool:
        """Whether a group uses more memory than it may: v2 would kill tasks in it, which is for others to decide."""
        limit = memory.limit_bytes(change.text)
        if limit is None or memory.used_bytes(self._hierarchy, change.group) <= limit:
            return False
        self.left_out = f"it uses more memory than it may: no limit of {limit >> 20} MiB yet"
        return True

    def _will_idle(self, group: str, changes: Iterable[Change | None]) -> bool:
        written = [change.text for change in changes if change is not None and change.knob is Knob.IDLE]
        if written:
            return written[0] == "1"
        name = file_of(Knob.IDLE, self._hierarchy.version)
        return self._hierarchy.has(group, name) and self._hierarchy.read(group, name) == "1"

    def _no_more(self, group: str, knob: Knob, text: str | None) -> str | None:
        """A limit of memory is never more than the one that was found: somebody meant it."""
        if text is None or knob is not Knob.MEMORY:
            return text
        name = file_of(knob, self._hierarchy.version)
        found = self._originals(group).get(knob) or self._hierarchy.read(group, name)
        own, wanted = memory.limit_bytes(found), memory.limit_bytes(text)
        return found if own is not None and wanted is not None and own < wanted else text

    def _above(self, group: str) -> list[Fraction | None]:
        """The limits of all groups above one, where the kernel refuses it more than they have."""
        found = []
        while self._hierarchy.version == 1 and (group := group.rpartition("/")[0]):
            text = self._hierarchy.read(group, file_of(Knob.LIMIT, 1))
            found.append(cpu.limit_of(self._hierarchy, group, text))
        return found

    def _capped(self, group: str, most: Fraction | None) -> Change | None:
        try:
            now = self._hierarchy.read(group, file_of(Knob.LIMIT, self._hierarchy.version))
            original = self._originals(group).get(Knob.LIMIT, now)
            own = cpu.limit_of(self._hierarchy, group, original)
            if own is None:
                return None
            limit = own if most is None else min(own, most)
            return self.of(group, Knob.LIMIT, cpu.limit_text(self._hierarchy, group, limit))
        except OSError:
            if self._hierarchy.identity(group) is None:
                return None
            raise

    def _grows(self, group: str, knob: Knob, before: str, text: str) -> bool:
        if knob is not Knob.LIMIT:
            return False
        had, gets = (cpu.limit_of(self._hierarchy, group, one) for one in (before, text))
        return had is not None and (gets is None or gets > had)
