"""Plans which control files have to be written so that a group reaches its target. It reads files and writes none.

A limit is never raised above the value that was found, since somebody chose that value, and a memory limit is never
set below what the group uses. A change that this kernel does not support, or that is not possible at the moment, is
skipped and noted; the other changes are planned.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.node.cgroups import cpu, cpuset, memory
from fallow_core.node.cgroups.cpuset import Cpus
from fallow_core.node.cgroups.hierarchy import Hierarchy

Originals = Mapping[ControlFile, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTarget:
    """The target of one group: a limit in cores, CPUs, and texts of other files. Files without a target are restored.

    `keep_limit`: the present limit stays. `untouched`: files that another thread changes at this moment.
    """

    clusters: frozenset[str]
    limit: Fraction | None = None
    keep_limit: bool = False
    texts: Mapping[ControlFile, str] = field(default_factory=dict)
    cpus: Cpus | None = None
    untouched: frozenset[ControlFile] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One file to write. `grows`: the new value gives the group more than it has now."""

    group: str
    file: ControlFile
    before: str
    text: str
    grows: bool


def in_safe_order(changes: Iterable[Change]) -> list[Change]:
    """First what shrinks, the deepest groups first; then what grows, the deepest groups last."""
    return sorted(changes, key=lambda change: (change.grows, change.group.count("/") * (1 if change.grows else -1)))


class CgroupPlan:
    """Compares groups with their targets. `lacking`: files that a group does not have, by their path.

    `originals` returns the original values of a group; `notice` is called with each value that was read.
    `skipped`: why a change was left out.
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        originals: Callable[[str], Originals],
        notice: Callable[[str, ControlFile, str], None],
    ) -> None:
        self.lacking: dict[str, ControlFile] = {}
        self.skipped = ""
        self._hierarchy = hierarchy
        self._originals = originals
        self._notice = notice

    def changes(self, group: str, target: GroupTarget) -> list[Change | None]:
        """The changes of all files of the group itself, except its CPU limit and its CPUs, in their order."""
        changes: list[Change | None] = []
        known = {**self._originals(group), **target.texts}
        for file in ControlFile:
            if file in (ControlFile.LIMIT, ControlFile.CPUS) or file not in known or file in target.untouched:
                continue
            try:
                change = self.change(group, file, self._at_most_original(group, file, target.texts.get(file)))
            except FileNotFoundError:
                self.lacking[self._hierarchy.path(group, self._name(file))] = file
                continue
            if file is ControlFile.WEIGHT and change is not None and self._will_idle(group, changes):
                continue  # the kernel accepts no weight for an idle group
            if file is ControlFile.MEMORY and change is not None and self.uses_more(change):
                continue
            changes.append(change)
        return changes

    def change(self, group: str, file: ControlFile, text: str | None) -> Change | None:
        """The change that gives a file this text, or its original value; `None` if it has it already."""
        if text is None:
            text = self._originals(group).get(file)
        if text is None:
            return None
        try:
            before = self._read(group, file)
        except OSError:
            if self._hierarchy.identity(group) is None:
                return None
            raise
        self._notice(group, file, before)
        if before == text:
            return None
        return Change(group=group, file=file, before=before, text=text, grows=self._grows(group, file, before, text))

    def limit_text(self, group: str, limit: Fraction | None) -> str | None:
        """The text for a CPU limit, at most the original limit and, on v1, the limits of the groups above."""
        original = self._originals(group).get(ControlFile.LIMIT)
        if limit is None:
            return original
        found = original or self._read(group, ControlFile.LIMIT)
        most = [cpu.limit_of(self._hierarchy, group, found), *self._limits_above(group)]
        return cpu.limit_text(self._hierarchy, group, min([limit, *(one for one in most if one is not None)]))

    def limits_below(self, group: str, text: str | None) -> list[Change | None]:
        """The changes by which each group below has its own limit, but at most that of the group."""
        most = None if text is None else cpu.limit_of(self._hierarchy, group, text)
        return [self._capped(below, most) for below in self._hierarchy.below(group)]

    def cpu_changes(self, group: str, cpus: Cpus | None) -> list[Change]:
        """The changes of a group's CPUs, in their order; `None` restores the original set.

        On v2 groups below get what remains of their own sets; on v1 these have to be written too.
        """
        original = self._originals(group).get(ControlFile.CPUS)
        if cpus is None and original is None:
            return []
        where = self._hierarchy.path(group, self._name(ControlFile.CPUS))
        try:
            now = cpuset.cpus_of(self._hierarchy, group)
        except FileNotFoundError:
            self.lacking[where] = ControlFile.CPUS
            return []
        self._notice(group, ControlFile.CPUS, cpuset.text_of(now))
        target = cpuset.parse(original or "", where) if cpus is None else cpus
        if now == target or (not target and now == cpuset.all_cpus(self._hierarchy)):
            return []
        below = list(self._hierarchy.below(group)) if self._hierarchy.version == 1 else []
        found, targets = {group: now}, {group: target}
        for one in below:
            with contextlib.suppress(FileNotFoundError):  # it is gone
                if of_one := cpuset.cpus_of(self._hierarchy, one):
                    was = self._originals(one).get(ControlFile.CPUS)
                    own = of_one if was is None else cpuset.parse(was, where)
                    above = targets[one.rpartition("/")[0]]
                    found[one], targets[one] = of_one, own & above or above
        return [
            Change(
                group=one,
                file=ControlFile.CPUS,
                before=cpuset.text_of(found[one]),
                text=cpuset.text_of(to),
                grows=False,
            )
            for one, to in cpuset.safe_steps(list(found), found, targets)
        ]

    def uses_more(self, change: Change) -> bool:
        """Whether a group uses more memory than its new limit, or its use is unreadable: v2 would kill tasks then."""
        limit = memory.limit_bytes(change.text)
        try:
            if limit is None or memory.used_bytes(self._hierarchy, change.group) <= limit:
                return False
        except CgroupError as error:
            self.skipped = str(error)
            return True
        self.skipped = f"it uses more memory than it may: no limit of {limit >> 20} MiB yet"
        return True

    def _name(self, file: ControlFile) -> str:
        return file_name(file, self._hierarchy.version)

    def _read(self, group: str, file: ControlFile) -> str:
        return self._hierarchy.read(group, self._name(file))

    def _will_idle(self, group: str, changes: Iterable[Change | None]) -> bool:
        written = [change.text for change in changes if change is not None and change.file is ControlFile.IDLE]
        if written:
            return written[0] == "1"
        return self._hierarchy.has(group, self._name(ControlFile.IDLE)) and self._read(group, ControlFile.IDLE) == "1"

    def _at_most_original(self, group: str, file: ControlFile, text: str | None) -> str | None:
        """The text, or the original value if that is a lower memory limit."""
        if text is None or file is not ControlFile.MEMORY:
            return text
        found = self._originals(group).get(file) or self._read(group, file)
        own, wanted = memory.limit_bytes(found), memory.limit_bytes(text)
        return found if own is not None and wanted is not None and own < wanted else text

    def _limits_above(self, group: str) -> list[Fraction | None]:
        """The limits of all groups above: v1 refuses a group more than these have."""
        found = []
        while self._hierarchy.version == 1 and (group := group.rpartition("/")[0]):
            found.append(cpu.limit_of(self._hierarchy, group, self._read(group, ControlFile.LIMIT)))
        return found

    def _capped(self, group: str, most: Fraction | None) -> Change | None:
        try:
            now = self._read(group, ControlFile.LIMIT)
            own = cpu.limit_of(self._hierarchy, group, self._originals(group).get(ControlFile.LIMIT, now))
            if own is None:
                return None
            limit = own if most is None else min(own, most)
            return self.change(group, ControlFile.LIMIT, cpu.limit_text(self._hierarchy, group, limit))
        except OSError:
            if self._hierarchy.identity(group) is None:
                return None
            raise

    def _grows(self, group: str, file: ControlFile, before: str, text: str) -> bool:
        if file is not ControlFile.LIMIT:
            return False
        had, gets = (cpu.limit_of(self._hierarchy, group, one) for one in (before, text))
        return had is not None and (gets is None or gets > had)
