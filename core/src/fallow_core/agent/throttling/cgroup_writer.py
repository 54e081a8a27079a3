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
from dataclasses import replace

from fallow_core.agent.throttling.cgroup_plan import Change, Changes, Wanted, in_safe_order
from fallow_core.errors import CgroupError, FallowError, StateError
from fallow_core.log import event
from fallow_core.node.cgroups import cpuset
from fallow_core.node.cgroups.control_file import Knob, controller_of, file_of
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.state.original_values import Kept, KnobsFile

log = logging.getLogger("fallow.agent")

EMPTYING_ROUNDS = 10


class Knobs:
    """The groups that Fallow changed. `problems` says of the newest calls what could not be done, by group.

    `kept` is how they were found, `lost` why that is not known. `resets` counts what others changed back.
    """

    def __init__(self, hierarchy: Hierarchy, file: KnobsFile) -> None:
        self.problems: dict[str, str] = {}
        self.resets = 0
        self.writes = 0
        self._hierarchy = hierarchy
        self._changes = Changes(hierarchy, lambda group: self.kept.get(group, _NOTHING).originals, self._notice)
        self._controllers = (hierarchy.controller, *hierarchy.also)
        self._needed = next(file_of(k, hierarchy.version) for k in Knob if controller_of(k) == hierarchy.controller)
        self._file = file
        self._written: dict[tuple[str, Knob], str] = {}
        self.kept, self.lost = file.load()

    @property
    def lacking(self) -> Mapping[str, Knob]:
        """The knobs that a group does not have, by the path of their file."""
        return self._changes.lacking

    def apply(self, group: str, wanted: Wanted) -> None:
        """Bring one group, and what below it would be in the way, to what is wanted."""

        self._tried(group, lambda: self._apply(group, wanted))

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

        if self._hierarchy.identity(child) is None:
            return False
        self._tried(child, lambda: self._set(child, texts))
        return child not in self.problems

    def _set(self, child: str, texts: Mapping[Knob, str]) -> None:
        for knob, text in texts.items():
            file = file_of(knob, self._hierarchy.version)
            with contextlib.suppress(FileNotFoundError):  # not passed on to it
                before = self._hierarchy.read(child, file)
                change = Change(group=child, knob=knob, before=before, text=text, grows=False)
                if before != text and not (knob is Knob.MEMORY and self._changes.would_end_tasks(change)):
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
        lacking = self._changes.lacking
        self._changes.lacking = {path: knob for path, knob in lacking.items() if self._group_of(path) in groups}

    def _group_of(self, path: str) -> str:
        return path.removeprefix(self._hierarchy.path("")).rpartition("/")[0].strip("/")

    def _tried(self, group: str, act: Callable[[], None]) -> None:
        self._changes.left_out = ""
        try:
            act()
            if self._changes.left_out:
                raise CgroupError(self._changes.left_out)
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
            self._keep_on(group, wanted)
        changes = self._changes.own(group, wanted)
        if wanted.hold_limit or "cpu" not in self._controllers:
            self._carry_out(group, changes, wanted.clusters)
            return
        text = self._changes.limit_text(group, wanted.limit)
        changes.append(self._changes.of(group, Knob.LIMIT, text))
        if any(one.startswith(f"{group}/") and Knob.LIMIT in kept.originals for one, kept in self.kept.items()):
            changes += self._changes.below(group, text)
        try:
            self._carry_out(group, changes, wanted.clusters)
        except OSError as error:
            if error.errno != errno.EINVAL or self._hierarchy.version != 1:
                raise
            # A group below has more: v1 refuses that. It is rare, so nobody looks before.
            limit = self._changes.of(group, Knob.LIMIT, text)
            self._carry_out(group, [limit, *self._changes.below(group, text)], wanted.clusters)

    def _keep_on(self, group: str, wanted: Wanted) -> None:
        """The limit does not depend on it."""
        try:
            changes = self._changes.cpus(group, wanted.cpus)
            self._keep_originals(changes, wanted.clusters)
            for change in changes:
                self._write(change)
        except OSError as error:
            self._changes.left_out = f"{error.filename or self._hierarchy.path(group)}: {error.strerror}"
        except CgroupError as error:
            self._changes.left_out = str(error)

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
        made = tuple(f"{one}/" for one in there if self.kept[one].home is not None)
        for one in sorted((one for one in there if not f"{one}/".startswith(made)), key=lambda one: one.count("/")):
            for change in self._changes.cpus(one, None):
                self._write(change)
        changes = [
            self._changes.of(one, knob, None)
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

    def _notice(self, group: str, knob: Knob, found: str) -> None:
        written = self._written.get((group, knob))
        if written is not None and written != found:
            self.resets += 1
            path = self._hierarchy.path(group, file_of(knob, self._hierarchy.version))
            event(log, logging.WARNING, "group_changed_by_others", file=path, was=written, found=found)
            del self._written[group, knob]

    def _write(self, change: Change) -> None:
        name = file_of(change.knob, self._hierarchy.version)
        try:
            self._hierarchy.write(change.group, name, change.text)
        except OSError as error:
            if change.knob is not Knob.CPUS or change.text or error.errno != errno.ENOSPC:
                raise
            # v2 lets a group with processes not be without CPUs of its own again; all there are mean the same.
            self._write(replace(change, text=cpuset.text_of(cpuset.all_cpus(self._hierarchy))))
            return
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
