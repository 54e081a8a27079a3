"""Writes the control files of groups, reads them back, and restores their original values.

The order of writes is such that the kernel refuses none: when a limit shrinks, the groups below are written first; when
it grows, the group itself (v1 refuses a group more than the group above it has). Every file is read anew with each
call, so changes by others are noticed. Only the original value of a file is saved before its first write. A limit that
somebody else sets later is the original one from then on, so the lower one of theirs and ours is in force.
"""

import contextlib
import errno
import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from fallow_core.agent.throttling.cgroup_plan import CgroupPlan, Change, GroupTarget, in_safe_order
from fallow_core.agent.throttling.changed_groups import ChangedGroups
from fallow_core.agent.throttling.refusals import Refusals
from fallow_core.errors import CgroupError, FallowError
from fallow_core.log import event
from fallow_core.model.control_file import ControlFile, controller_of, file_name
from fallow_core.node.cgroups import cpuset
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.state.original_values import ChangedGroup, OriginalValuesFile

log = logging.getLogger("fallow.agent")

REPEAT_SECONDS = 600.0
"""How often the same problem of a group, or the same change by others, is logged."""
_CHOSEN = {
    ControlFile.LIMIT: re.compile(r"-1|\d{1,15}|(max|\d{1,15}) \d{1,7}"),
    ControlFile.MEMORY: re.compile(r"max|\d{1,19}"),
    ControlFile.CPUS: re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*"),
}
"""The texts of limits that somebody may have chosen: anything else is not taken for an original value."""


class CgroupWriter:
    """Changes the groups of one hierarchy. `problems`: by group, why the last change of it failed.

    `writes` and `resets` count values that were written, and values that others changed afterwards.
    """

    def __init__(
        self, hierarchy: Hierarchy, file: OriginalValuesFile, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.problems: dict[str, str] = {}
        self.resets = 0
        self.writes = 0
        self._hierarchy = hierarchy
        self._changed = ChangedGroups(hierarchy, file)
        self._plan = CgroupPlan(hierarchy, self._changed.originals, self._notice)
        self._controllers = (hierarchy.controller, *hierarchy.also)
        self._needed = next(self._name(file) for file in ControlFile if controller_of(file) == hierarchy.controller)
        self._written: dict[tuple[str, ControlFile], str] = {}
        self._clock = clock
        self._refusals = Refusals(clock)
        self._logged: dict[tuple[str, str], float] = {}

    @property
    def changed_groups(self) -> Mapping[str, ChangedGroup]:
        """The groups that Fallow changed, with their original values."""
        return self._changed.groups

    @property
    def originals_file(self) -> OriginalValuesFile:
        """Where the original values are saved. While it is lost no group is changed."""
        return self._changed.file

    @property
    def lacking(self) -> Mapping[str, ControlFile]:
        """The files that a group does not have, by their path."""
        return self._plan.lacking

    def apply(self, group: str, target: GroupTarget) -> None:
        """Bring one group to its target, with the groups below it where their limits or CPUs are in the way."""
        with self._noting(group):
            self._apply(group, target)

    def make(self, group: str, home: str, clusters: frozenset[str]) -> None:
        """Create a group, so that processes of the group `home` can be moved into its children."""
        with self._noting(group):
            self._forget_if_replaced(group)
            created = self.changed_groups.get(group)
            if created is None:
                created = ChangedGroup(identity=None, clusters=clusters, home=home)
                self._changed.save(group, created)
            try:
                self._hierarchy.make(group, self._needed)
            except CgroupError:
                if not self._changed.is_there(group):
                    self._changed.remove((group,))
                raise
            self._hierarchy.pass_on(group)
            if created.identity is None:
                self._changed.save(group, replace(created, identity=self._hierarchy.identity(group)))

    def move_into_child(self, group: str, name: str, texts: Mapping[ControlFile, str], pids: Iterable[int]) -> None:
        """Create a child of a group that Fallow created, and move processes into it. Ended processes are skipped."""
        child = f"{group}/{name}"
        with self._noting(child):
            self._hierarchy.make(child, self._needed)
            self._write_child(child, texts)
            self._hierarchy.move_all(pids, child)

    def set_child(self, group: str, name: str, texts: Mapping[ControlFile, str]) -> bool:
        """Write these texts to a child of a group that Fallow created; it is removed with its group, never restored.

        :returns: whether it has them now.
        """
        child = f"{group}/{name}"
        if self._hierarchy.identity(child) is None:
            return False
        with self._noting(child):
            self._write_child(child, texts)
        return child not in self.problems

    def save_original(self, group: str, file: ControlFile, clusters: frozenset[str]) -> bool:
        """Save the original value of a file before another thread changes it for a moment; whether it is saved."""
        with self._noting(group):
            self._forget_if_replaced(group)
            before = self._hierarchy.read(group, self._name(file))
            self._changed.save_originals(
                [Change(group=group, file=file, before=before, text="", grows=False)], clusters
            )
        return file in self._changed.originals(group)

    def remove_children(self, group: str, keep: Collection[str]) -> None:
        """Remove the empty children of a group that Fallow created, except those to `keep`."""
        for name in self._hierarchy.children(group):
            if name not in keep:
                with contextlib.suppress(OSError):
                    self._hierarchy.remove(f"{group}/{name}")

    def release(self, group: str) -> None:
        """Restore a group, and the groups below it that were changed for it. The next call retries what failed."""
        with self._noting(group):
            self._release(group)

    def forget_problems_except(self, groups: Collection[str]) -> None:
        """Forget the problems of all groups but these and those that are changed."""
        known = {*groups, *self.changed_groups}
        self.problems = {group: why for group, why in self.problems.items() if group in known}
        self._plan.lacking = {path: file for path, file in self.lacking.items() if self._group_of(path) in groups}

    def _name(self, file: ControlFile) -> str:
        return file_name(file, self._hierarchy.version)

    def _forget_if_replaced(self, group: str) -> None:
        if self._changed.forget_if_replaced(group):
            self._written = {key: text for key, text in self._written.items() if key[0] != group}
            self._refusals.forget(group)

    def _group_of(self, path: str) -> str:
        return path.removeprefix(self._hierarchy.path("")).rpartition("/")[0].strip("/")

    @contextlib.contextmanager
    def _noting(self, group: str) -> Iterator[None]:
        """Turn errors into a problem of the group; success removes its problem."""
        self._plan.skipped = ""
        try:
            yield
            if self._plan.skipped:
                raise CgroupError(self._plan.skipped)
        except OSError as error:
            if self._hierarchy.identity(group) is not None:
                self._note(group, self._reason(group, error))
        except FallowError as error:
            self._note(group, str(error))
        else:
            self.problems.pop(group, None)

    def _reason(self, group: str, error: OSError) -> str:
        return f"{error.filename or self._hierarchy.path(group)}: {error.strerror}"

    def _note(self, group: str, problem: str) -> None:
        if self._is_news(group, problem):
            event(log, logging.WARNING, "group_not_changed", group=f"/{group}", reason=problem)
        self.problems[group] = problem

    def _is_news(self, group: str, text: str) -> bool:
        """Whether to log a text about a group. Numbers in it differ each time, and say nothing new."""
        now, key = self._clock(), (group, re.sub(r"\d+", "N", text))
        self._logged = {key: at for key, at in self._logged.items() if now - at < REPEAT_SECONDS}
        return self._logged.setdefault(key, now) == now

    def _apply(self, group: str, target: GroupTarget) -> None:
        self._forget_if_replaced(group)
        if self._hierarchy.identity(group) is None:
            return
        self._adopt_limits(group, target)
        if "cpuset" in self._controllers:
            self._set_cpus(group, target)
        changes = self._plan.changes(group, target)
        if target.keep_limit or "cpu" not in self._controllers:
            self._carry_out(group, changes, target.clusters)
            return
        text = self._plan.limit_text(group, target.limit)
        changes.append(self._plan.change(group, ControlFile.LIMIT, text))
        below = (one for one in self.changed_groups if one.startswith(f"{group}/"))
        if any(ControlFile.LIMIT in self._changed.originals(one) for one in below):
            changes += self._plan.limits_below(group, text)
        try:
            self._carry_out(group, changes, target.clusters)
        except OSError:
            # v1 refuses the limit because a group below has a higher one. This is rare, so it is not checked before.
            limit = self._plan.change(group, ControlFile.LIMIT, text)
            changes = [limit, *self._plan.limits_below(group, text)]
            self._carry_out(group, changes, target.clusters, again=True)

    def _adopt_limits(self, group: str, target: GroupTarget) -> None:
        """Take limits that others set since Fallow's last write for the original ones. On v1 this includes CPU limits
        of the groups below, which Fallow may have had to lower.
        """
        below = (one for one in self.changed_groups if one.startswith(f"{group}/"))
        limits = [(group, file) for file in _CHOSEN if file not in target.untouched]
        limits += [(one, ControlFile.LIMIT) for one in below]
        for one, file in limits:
            if file not in self._changed.originals(one):
                continue
            with contextlib.suppress(FileNotFoundError):
                found = self._hierarchy.read(one, self._name(file))
                if self._written.setdefault((one, file), found) != found and _CHOSEN[file].fullmatch(found):
                    self._notice(one, file, found)
                    self._changed.replace_original(one, file, found)

    def _set_cpus(self, group: str, target: GroupTarget) -> None:
        """A failure does not prevent the other changes."""
        try:
            changes = self._plan.cpu_changes(group, target.cpus)
            self._changed.save_originals(changes, target.clusters)
            self._write_all(changes)
        except OSError as error:
            self._plan.skipped = self._reason(group, error)
        except CgroupError as error:
            self._plan.skipped = str(error)

    def _carry_out(
        self, group: str, changes: Iterable[Change | None], clusters: frozenset[str], *, again: bool = False
    ) -> None:
        """Write what is due, and after a failure the rest.

        :param again: a CPU limit that is refused is refused for good; on v1 it may be for a group below, which the next
            attempt writes too.
        """
        due = [change for change in changes if change is not None]
        self._changed.save_originals([change for change in due if change.group == group or not change.grows], clusters)
        tries_again = self._hierarchy.version == 1 and not again
        self._write_all(in_safe_order(due), ends=ControlFile.LIMIT, tries_limits_again=tries_again)

    def _release(self, group: str) -> None:
        self._forget_if_replaced(group)
        if group not in self.changed_groups:
            return
        inside = [one for one in self.changed_groups if one == group or one.startswith(f"{group}/")]
        there = [one for one in inside if self._changed.is_there(one)]
        self._restore_files(there)
        for one in sorted(there, key=lambda one: one.count("/"), reverse=True):
            home = self.changed_groups[one].home
            if home is not None:
                for child in (*reversed(list(self._hierarchy.below(one))), one):
                    self._hierarchy.empty(child, home)
                    self._hierarchy.remove(child)
        self._changed.remove(inside)
        self._written = {key: text for key, text in self._written.items() if key[0] not in inside}

    def _restore_files(self, groups: Collection[str]) -> None:
        created = tuple(f"{one}/" for one in groups if self.changed_groups[one].home is not None)
        for one in sorted((one for one in groups if not f"{one}/".startswith(created)), key=lambda one: one.count("/")):
            self._write_all(self._plan.cpu_changes(one, None))
        changes = [
            self._plan.change(one, file, None)
            for one in groups
            for file in ControlFile
            if file in self._changed.originals(one) and file is not ControlFile.CPUS
        ]
        self._write_all(in_safe_order(change for change in changes if change is not None))

    def _notice(self, group: str, file: ControlFile, found: str) -> None:
        """Count and log a value that is not the one that was written."""
        written = self._written.get((group, file))
        if written is not None and written != found:
            self.resets += 1
            path = self._hierarchy.path(group, self._name(file))
            if self._is_news(group, f"{path} {written} {found}"):
                event(log, logging.WARNING, "group_changed_by_others", file=path, was=written, found=found)
            del self._written[group, file]

    def _write_all(
        self, changes: Iterable[Change], *, ends: ControlFile | None = None, tries_limits_again: bool = False
    ) -> None:
        """Write changes in this order. One that fails, or whose group vanished, leaves no other one undone.

        :param ends: a failure of this file leaves the rest undone.
        :raises OSError: with `tries_limits_again`, a CPU limit was refused, which is not noted.
        :raises CgroupError: some failed, or are not tried as the kernel refused them before.
        """
        failed = ""
        for change in changes:
            if refused := self._refusals.why(change.group, change.file):
                failed = failed or refused
                continue
            path = self._hierarchy.path(change.group, self._name(change.file))
            try:
                self._write(change)
            except OSError as error:
                if self._hierarchy.identity(change.group) is None:
                    continue
                if change.file is ControlFile.LIMIT and tries_limits_again and error.errno == errno.EINVAL:
                    raise
                reason = self._refusals.note(change.group, change.file, error, path)
                if change.file is ends:
                    raise CgroupError(reason) from error
                failed = failed or reason
            except CgroupError as error:
                failed = failed or str(error)
            else:
                self._refusals.taken(change.group, change.file)
        if failed:
            raise CgroupError(failed)

    def _write(self, change: Change) -> None:
        name = self._name(change.file)
        try:
            self._hierarchy.write(change.group, name, change.text)
        except OSError as error:
            if change.file is not ControlFile.CPUS or change.text or error.errno != errno.ENOSPC:
                raise
            # v2 refuses an empty set to a group with processes that had a set; all CPUs mean the same.
            self._write(replace(change, text=cpuset.text_of(cpuset.all_cpus(self._hierarchy))))
            return
        self.writes += 1
        found = self._hierarchy.read(change.group, name)
        if found != change.text:
            path = self._hierarchy.path(change.group, name)
            raise CgroupError(f"{path}: {change.text!r} was written, and it says {found!r}")
        self._written[change.group, change.file] = change.text
        if change.file is ControlFile.IDLE:
            self._written.pop((change.group, ControlFile.WEIGHT), None)  # the kernel changes it too

    def _write_child(self, child: str, texts: Mapping[ControlFile, str]) -> None:
        for file, text in texts.items():
            name = self._name(file)
            with contextlib.suppress(FileNotFoundError):  # its controller is not passed on to the child
                before = self._hierarchy.read(child, name)
                change = Change(group=child, file=file, before=before, text=text, grows=False)
                if before == text or (file is ControlFile.MEMORY and self._plan.uses_more(change)):
                    continue
                if refused := self._refusals.why(child, file):
                    self._plan.skipped = refused
                    continue
                try:
                    self._hierarchy.write(child, name, text)
                except OSError as error:
                    raise CgroupError(
                        self._refusals.note(child, file, error, self._hierarchy.path(child, name))
                    ) from error
                self._refusals.taken(child, file)
                self.writes += 1
