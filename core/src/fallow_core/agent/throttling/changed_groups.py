"""The groups that Fallow changed in one hierarchy, with their original values, saved before the first write."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from fallow_core.agent.throttling.cgroup_plan import Change
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.node.cgroups.hierarchy import Hierarchy
from fallow_core.state.original_values import ChangedGroup, OriginalValuesFile


class ChangedGroups:
    """`groups`: by path; none while `file` is lost. Then nothing can be saved, and so no group is changed."""

    def __init__(self, hierarchy: Hierarchy, file: OriginalValuesFile) -> None:
        self._hierarchy = hierarchy
        self.file = file
        self.groups = file.load()

    def originals(self, group: str) -> Mapping[ControlFile, str]:
        """The original values of a group; empty if it was not changed."""
        changed = self.groups.get(group)
        return {} if changed is None else changed.originals

    def save_originals(self, changes: Iterable[Change], clusters: frozenset[str]) -> None:
        """Save the original value of each file that is changed for the first time.

        :raises StateError: they cannot be saved.
        """
        groups = dict(self.groups)
        for change in changes:
            group = groups.get(change.group)
            if group is None:
                group = ChangedGroup(identity=self._hierarchy.identity(change.group), clusters=clusters)
            originals = {change.file: change.before, **group.originals}
            if change.file is ControlFile.IDLE and ControlFile.WEIGHT not in originals:  # the kernel changes it too
                name = file_name(ControlFile.WEIGHT, self._hierarchy.version)
                originals[ControlFile.WEIGHT] = self._hierarchy.read(change.group, name)
            groups[change.group] = replace(group, originals=originals, clusters=group.clusters | clusters)
        if groups != self.groups:
            self._save({name: group for name, group in groups.items() if self._is_there(name, group)})

    def replace_original(self, group: str, file: ControlFile, text: str) -> None:
        """Take a value that somebody else chose meanwhile for the original one.

        :raises StateError: it cannot be saved.
        """
        changed = self.groups[group]
        self._save({**self.groups, group: replace(changed, originals={**changed.originals, file: text})})

    def save(self, group: str, changed: ChangedGroup) -> None:
        """Add a group, or replace its entry.

        :raises StateError: it cannot be saved.
        """
        self._save({**self.groups, group: changed})

    def remove(self, groups: Iterable[str]) -> None:
        """Remove groups that were restored or never created.

        :raises StateError: the others cannot be saved.
        """
        removed = set(groups)
        self._save({name: group for name, group in self.groups.items() if name not in removed})

    def forget_if_replaced(self, group: str) -> bool:
        """Forget a group that others removed, and perhaps created again: its original values are void.

        The file keeps it until the next save; its identity says that it is not this group.
        """
        if group not in self.groups or self.is_there(group):
            return False
        self.groups = {name: other for name, other in self.groups.items() if name != group}
        return True

    def is_there(self, group: str) -> bool:
        """Whether a changed group still exists."""
        return self._is_there(group, self.groups[group])

    def _is_there(self, group: str, changed: ChangedGroup) -> bool:
        identity = self._hierarchy.identity(group)
        return identity is not None and changed.identity in (None, identity)

    def _save(self, groups: dict[str, ChangedGroup]) -> None:
        self.file.save(groups)
        self.groups = groups
