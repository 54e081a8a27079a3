"""Carries out what was decided about groups, reads it back, and puts everything back as it was found.

Each group is changed in an order in which no step is refused: of a limit that shrinks the groups below come first, of
one that grows the group itself (v1 refuses a group more than the group above it has). What others changed meanwhile is
seen with the next call, since every file is read anew each time. A file that this kernel lacks is noted, and the rest
is done.
"""

import contextlib
import errno
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from fallow_core.agent.knobs_file import Kept, KnobsFile
from fallow_core.errors import CgroupError, FallowError, StateError
from fallow_core.log import event
from fallow_core.node.cgroups import cpu, cpuset, memory
from fallow_core.node.cgroups.cpuset import Cpus
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.node.cgroups.knob import Knob, controller_of, file_of

log = logging.getLogger("fallow.agent")

EMPTYING_ROUNDS = 10


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


class Knobs:
    """The groups that Fallow changed. `problems` says of the newest calls what could not be done, by group.

    `kept` is how they were found, `lost` why that is not known. `resets` counts what others changed back. `lacking`:
    knobs that a group does not have, by the path of their file.
    """

    def __init__(self, hierarchy: Hierarchy, file: KnobsFile) -> None:
        self.problems: dict[str, str] = {}
        self.lacking: dict[str, Knob] = {}
        self.resets = 0
        self.writes = 0
        self._left_out = ""
        self._hierarchy = hierarchy
        self._controllers = (hierarchy.controller, *hierarchy.also)
        self._needed = next(file_of(k, hierarchy.version) for k in Knob if controller_of(k) == hierarchy.controller)
        self._file = file
        self._written: dict[tuple[str, Knob], str] = {}
        self.kept, self.lost = file.load()

    def apply(self, group: str, wanted: Wanted) -> None:
        """Bring one group, and what below it would be in the way, to what is wanted."""

        def apply() -> None:
            self._left_out = ""
            self._apply(group, wanted)
            if self._left_out:
                raise CgroupError(self._left_out)

        self._tried(group, apply)

    def make(self, group: str, home: str, clusters: frozenset[str]) -> None:
        """Make a group that processes from `home` can be put into the children of."""

        def make() -> None:
            self._forget_if_another(group)
            if group not in self.kept:
                self._keep({**self.kept, group: Kept(identity=None, clusters=clusters, home=home)})
            try:
                self._hierarchy.make(group, self._needed)
            except CgroupError:
                self._forget_if_another(group)
                raise
            self._hierarchy.pass_on(group)
            if self.kept[group].identity is None:
                self._keep({**self.kept, group: replace(self.kept[group], identity=self._hierarchy.identity(group))})

        self._tried(group, make)

    def take_in(self, group: str, name: str, texts: Mapping[Knob, str], pids: Iterable[int]) -> None:
        """Put processes into a child of a group that was made for them. Those that end are left out."""

        child = f"{group}/{name}"

        def take_in() -> None:
            self._hierarchy.make(child, self._needed)
            self._set(child, texts)
            self._move(pids, child)

        self._tried(child, take_in)

    def set_child(self, group: str, name: str, texts: Mapping[Knob, str]) -> bool:
        """Bring a child of a group that was made to these texts; it goes with its group, so nothing is put back.

        :returns: whether it has them now.
        """
        child = f"{group}/{name}"

        def set_child() -> None:
            self._left_out = ""
            self._set(child, texts)
            if self._left_out:
                raise CgroupError(self._left_out)

        if self._hierarchy.identity(child) is None:
            return False
        self._tried(child, set_child)
        return child not in self.problems

    def _set(self, child: str, texts: Mapping[Knob, str]) -> None:
        for knob, text in texts.items():
            file = file_of(knob, self._hierarchy.version)
            with contextlib.suppress(FileNotFoundError):  # not passed on to it
                before = self._hierarchy.read(child, file)
                change = Change(group=child, knob=knob, before=before, text=text, grows=False)
                if before != text and not (knob is Knob.MEMORY and self._would_end_tasks(change)):
                    self._hierarchy.write(child, file, text)
                    self.writes += 1

    def keep(self, group: str, knob: Knob, clusters: frozenset[str]) -> bool:
        """Have it on disk how a knob was found, before somebody else changes it for a moment; whether it is."""

        def keep() -> None:
            self._forget_if_another(group)
            before = self._hierarchy.read(group, file_of(knob, self._hierarchy.version))
            self._keep_originals([Change(group=group, knob=knob, before=before, text="", grows=False)], clusters)

        self._tried(group, keep)
        return knob in self.kept.get(group, _NOTHING).originals

    def clear(self, group: str, names: Collection[str]) -> None:
        """Remove the children of a group that was made, but these, as far as nothing is in them any more."""
        for name in self._hierarchy.children(group):
            if name not in names:
                with contextlib.suppress(OSError):
                    self._hierarchy.remove(f"{group}/{name}")

    def release(self, group: str) -> None:
        """Put one group back as it was found, with all below it that was changed for it. What fails is tried again
        with the next call."""
        self._tried(group, lambda: self._release(group))

    def forget_problems_but(self, groups: Collection[str]) -> None:
        """Of other groups nothing is wanted any more."""
        self.problems = {group: why for group, why in self.problems.items() if group in groups or group in self.kept}
        self.lacking = {path: knob for path, knob in self.lacking.items() if self._group_of(path) in groups}

    def _group_of(self, path: str) -> str:
        return path.removeprefix(self._hierarchy.path("")).rpartition("/")[0].strip("/")

    def _tried(self, group: str, act: Callable[[], None]) -> None:
        try:
            act()
        except StateError as error:
            self._note(group, str(error))
        except OSError as error:
            if self._hierarchy.identity(group) is not None:
                self._note(group, f"{error.filename or self._hierarchy.path(group)}: {error.strerror}")
        except FallowError as error:
            self._note(group, str(error))
        else:
            self.problems.pop(group, None)

    def _note(self, group: str, problem: str) -> None:
        if self.problems.get(group) != problem:
            event(log, logging.WARNING, "group_not_changed", group=f"/{group}", reason=problem)
        self.problems[group] = problem

    def _apply(self, group: str, wanted: Wanted) -> None:
        self._forget_if_another(group)
        if self._hierarchy.identity(group) is None:
            return
        if "cpuset" in self._controllers:
            self._set_cpus(group, wanted.cpus, wanted.clusters)
        changes = self._others(group, wanted)
        if wanted.hold_limit or "cpu" not in self._controllers:
            self._carry_out(group, changes, wanted.clusters)
            return
        text = self._limit_text(group, wanted.limit)
        changes.append(self._change(group, Knob.LIMIT, text))
        if any(one.startswith(f"{group}/") and Knob.LIMIT in kept.originals for one, kept in self.kept.items()):
            changes += self._below(group, text)
        try:
            self._carry_out(group, changes, wanted.clusters)
        except OSError as error:
            if error.errno != errno.EINVAL or self._hierarchy.version != 1:
                raise
            # A group below has more: v1 refuses that. It is rare, so nobody looks before.
            self._carry_out(group, [self._change(group, Knob.LIMIT, text), *self._below(group, text)], wanted.clusters)

    def _set_cpus(self, group: str, cpus: Cpus | None, clusters: frozenset[str]) -> None:
        """v2 gives groups below what is left of their own sets; on v1 they are written too, in an order that works."""
        original = self.kept.get(group, _NOTHING).originals.get(Knob.CPUS)
        if cpus is None and original is None:
            return
        name = file_of(Knob.CPUS, self._hierarchy.version)
        where = self._hierarchy.path(group, name)
        try:
            now = cpuset.cpus_of(self._hierarchy, group)
        except FileNotFoundError:
            self.lacking[where] = Knob.CPUS
            return
        self._notice(group, Knob.CPUS, cpuset.text_of(now))
        target = cpuset.parse(original or "", where) if cpus is None else cpus
        if now == target:
            return
        below = list(self._hierarchy.below(group)) if self._hierarchy.version == 1 else []
        found, targets = {group: now}, {group: target}
        for one in below:
            with contextlib.suppress(FileNotFoundError):  # it is gone
                if of_one := cpuset.cpus_of(self._hierarchy, one):
                    was = self.kept.get(one, _NOTHING).originals.get(Knob.CPUS)
                    own = of_one if was is None else cpuset.parse(was, where)
                    above = targets[one.rpartition("/")[0]]
                    found[one], targets[one] = of_one, own & above or above
        changes = [
            Change(group=one, knob=Knob.CPUS, before=cpuset.text_of(found[one]), text=cpuset.text_of(to), grows=False)
            for one, to in cpuset.safe_steps(list(found), found, targets)
        ]
        self._keep_originals(changes, clusters)
        for change in changes:
            self._write(change)

    def _others(self, group: str, wanted: Wanted) -> list[Change | None]:
        """The changes of all knobs of the group itself but the limit, in their order."""
        changes: list[Change | None] = []
        known = {**self.kept.get(group, _NOTHING).originals, **wanted.texts}
        for knob in Knob:
            if knob in (Knob.LIMIT, Knob.CPUS) or knob not in known or knob in wanted.untouched:
                continue
            name = file_of(knob, self._hierarchy.version)
            try:
                change = self._change(group, knob, self._no_more(group, knob, wanted.texts.get(knob)))
            except FileNotFoundError:
                self.lacking[self._hierarchy.path(group, name)] = knob
                continue
            if knob is Knob.WEIGHT and change is not None and self._will_idle(group, changes):
                continue  # the kernel takes no weight for a group that idles
            if knob is Knob.MEMORY and change is not None and self._would_end_tasks(change):
                continue
            changes.append(change)
        return changes

    def _would_end_tasks(self, change: Change) -> bool:
        """Whether a group uses more memory than it may: v2 would end tasks in it, which is for others to decide."""
        limit = memory.limit_bytes(change.text)
        if limit is None or memory.used_bytes(self._hierarchy, change.group) <= limit:
            return False
        self._left_out = f"it uses more memory than it may: no limit of {limit >> 20} MiB yet"
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
        found = self.kept.get(group, _NOTHING).originals.get(knob) or self._hierarchy.read(group, name)
        own, wanted = memory.limit_bytes(found), memory.limit_bytes(text)
        return found if own is not None and wanted is not None and own < wanted else text

    def _carry_out(self, group: str, changes: Iterable[Change | None], clusters: frozenset[str]) -> None:
        due = [change for change in changes if change is not None]
        self._keep_originals([change for change in due if change.group == group or not change.grows], clusters)
        failed = ""
        for change in in_safe_order(due):
            try:
                self._write(change)
            except (OSError, CgroupError) as error:
                if change.knob is Knob.LIMIT:
                    raise
                path = self._hierarchy.path(change.group, file_of(change.knob, self._hierarchy.version))
                failed = failed or (f"{path}: {error.strerror}" if isinstance(error, OSError) else str(error))
        if failed:
            raise CgroupError(failed)  # the others are done

    def _release(self, group: str) -> None:
        self._forget_if_another(group)
        if group not in self.kept:
            return
        inside = [below for below in self.kept if below == group or below.startswith(f"{group}/")]
        there = [one for one in inside if self._is_there(one, self.kept[one])]
        for one in sorted(there, key=lambda one: one.count("/")):
            self._set_cpus(one, None, self.kept[one].clusters)
        changes = [
            self._change(one, knob, None)
            for one in there
            for knob in Knob
            if knob in self.kept[one].originals and knob is not Knob.CPUS
        ]
        for change in in_safe_order(change for change in changes if change is not None):
            self._write(change)
        for one in sorted(there, key=lambda one: one.count("/"), reverse=True):
            home = self.kept[one].home
            if home is not None:
                for child in (*reversed(list(self._hierarchy.below(one))), one):
                    self._empty(child, home)
                    self._hierarchy.remove(child)
        self._keep({name: value for name, value in self.kept.items() if name not in inside})

    def _empty(self, group: str, home: str) -> None:
        """Processes go back to where they came from, with all that they started here."""
        for _ in range(EMPTYING_ROUNDS):
            pids = self._hierarchy.processes(group)
            if not pids:
                return
            self._move(pids, home)

    def _move(self, pids: Iterable[int], group: str) -> None:
        """One that may not be moved keeps no other one from it."""
        refused = ""
        for pid in pids:
            try:
                self._hierarchy.move(pid, group)
            except ProcessLookupError:
                pass  # it has ended
            except OSError as error:
                refused = f"process {pid} cannot be moved to /{group}: {error.strerror}"
        if refused:
            raise CgroupError(refused)

    def _change(self, group: str, knob: Knob, text: str | None) -> Change | None:
        """What has to be written so that a knob has a text, or what it had at first; nothing if it has it already."""
        if text is None:
            text = self.kept.get(group, _NOTHING).originals.get(knob)
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

    def _limit_text(self, group: str, limit: Fraction | None) -> str | None:
        """A limit is never more than the one that was found: somebody meant it."""
        kept = self.kept.get(group, _NOTHING).originals.get(Knob.LIMIT)
        if limit is None:
            return kept
        found = kept or self._hierarchy.read(group, file_of(Knob.LIMIT, self._hierarchy.version))
        most = [cpu.limit_of(self._hierarchy, group, found), *self._above(group)]
        return cpu.limit_text(self._hierarchy, group, min([limit, *(one for one in most if one is not None)]))

    def _above(self, group: str) -> list[Fraction | None]:
        """The limits of all groups above one, where the kernel refuses it more than they have."""
        found = []
        while self._hierarchy.version == 1 and (group := group.rpartition("/")[0]):
            text = self._hierarchy.read(group, file_of(Knob.LIMIT, 1))
            found.append(cpu.limit_of(self._hierarchy, group, text))
        return found

    def _below(self, group: str, text: str | None) -> list[Change | None]:
        """Groups below keep their own limits, but no more than the one above has."""
        most = None if text is None else cpu.limit_of(self._hierarchy, group, text)
        return [self._capped(below, most) for below in self._hierarchy.below(group)]

    def _capped(self, group: str, most: Fraction | None) -> Change | None:
        try:
            now = self._hierarchy.read(group, file_of(Knob.LIMIT, self._hierarchy.version))
            original = self.kept.get(group, _NOTHING).originals.get(Knob.LIMIT, now)
            own = cpu.limit_of(self._hierarchy, group, original)
            if own is None:
                return None
            limit = own if most is None else min(own, most)
            return self._change(group, Knob.LIMIT, cpu.limit_text(self._hierarchy, group, limit))
        except OSError:
            if self._hierarchy.identity(group) is None:
                return None
            raise

    def _grows(self, group: str, knob: Knob, before: str, text: str) -> bool:
        if knob is not Knob.LIMIT:
            return False
        had, gets = (cpu.limit_of(self._hierarchy, group, one) for one in (before, text))
        return had is not None and (gets is None or gets > had)

    def _notice(self, group: str, knob: Knob, found: str) -> None:
        written = self._written.get((group, knob))
        if written is not None and written != found:
            self.resets += 1
            path = self._hierarchy.path(group, file_of(knob, self._hierarchy.version))
            event(log, logging.WARNING, "group_changed_by_others", file=path, was=written, found=found)
            del self._written[group, knob]

    def _write(self, change: Change) -> None:
        name = file_of(change.knob, self._hierarchy.version)
        self._hierarchy.write(change.group, name, change.text)
        self.writes += 1
        found = self._hierarchy.read(change.group, name)
        if found != change.text:
            path = self._hierarchy.path(change.group, name)
            raise CgroupError(f"{path}: {change.text!r} was written, and it says {found!r}")
        self._written[change.group, change.knob] = change.text
        if change.knob is Knob.IDLE:
            self._written.pop((change.group, Knob.WEIGHT), None)  # the kernel changes it as well

    def _keep_originals(self, changes: Iterable[Change], clusters: frozenset[str]) -> None:
        """How each file was found, on disk before it is written for the first time."""
        kept = dict(self.kept)
        for change in changes:
            of_group = kept.get(change.group)
            if of_group is None:
                identity = self._hierarchy.identity(change.group)
                of_group = Kept(identity=identity, clusters=clusters)
            originals = {change.knob: change.before, **of_group.originals}
            if change.knob is Knob.IDLE and Knob.WEIGHT not in originals:  # the kernel changes it as well
                name = file_of(Knob.WEIGHT, self._hierarchy.version)
                originals[Knob.WEIGHT] = self._hierarchy.read(change.group, name)
            kept[change.group] = replace(of_group, originals=originals, clusters=of_group.clusters | clusters)
        if kept != self.kept:
            alive = {name: value for name, value in kept.items() if self._is_there(name, value)}
            self._keep(alive)

    def _forget_if_another(self, group: str) -> None:
        """A group that was removed, or made anew by somebody else, has nothing to be put back."""
        kept = self.kept.get(group)
        if kept is not None and not self._is_there(group, kept):
            self._keep({name: value for name, value in self.kept.items() if name != group})

    def _is_there(self, group: str, kept: Kept) -> bool:
        identity = self._hierarchy.identity(group)
        return identity is not None and kept.identity in (None, identity)

    def _keep(self, kept: Mapping[str, Kept]) -> None:
        self._file.save(kept)
        self.kept = dict(kept)
        self._written = {key: text for key, text in self._written.items() if key[0] in kept}


_NOTHING = Kept(identity=None, clusters=frozenset())
