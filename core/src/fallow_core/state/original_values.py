"""The original values of the control files that Fallow changes, saved before the first write to restore them later.

The groups of a host are new after a restart, so the file is then ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fallow_core.errors import StateError
from fallow_core.model.control_file import ControlFile
from fallow_core.state import values
from fallow_core.state.boot_file import BootFile
from fallow_core.state.lost_files import LostFile

PATTERN = "original-values*.json"
EFFECT = "the original values of control files are unknown, so no control group is changed or put back"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedGroup:
    """A group that Fallow changed, with the original texts of its files.

    `identity` distinguishes it from a later group of the same path; `None` until it is created. `clusters`: whose tasks
    are in it. `home`: Fallow created it, and its processes came from this group.
    """

    identity: int | None
    clusters: frozenset[str]
    originals: Mapping[ControlFile, str] = field(default_factory=dict)
    home: str | None = None


class OriginalValuesFile:
    """One file in the state directory for the hierarchy of each controller; on v1 each has groups of its own."""

    def __init__(self, state_dir: Path, boot_id: str | None = None, controller: str = "cpu") -> None:
        name = "original-values.json" if controller == "cpu" else f"original-values-{controller}.json"
        self._file = _file(state_dir / name, boot_id)

    @property
    def lost(self) -> LostFile | None:
        """The file, if it cannot be read: then nothing is saved, and so no group is changed."""
        return self._file.lost

    def load(self) -> dict[str, ChangedGroup]:
        """The groups changed since this host was started; none if that is unknown, which `lost` says."""
        return self._file.load(_groups, {})

    def given_up(self) -> None:
        """The lost file was renamed: what groups have now counts as original."""
        self._file.given_up()

    def save(self, groups: Mapping[str, ChangedGroup]) -> None:
        """Write the groups; they are on the disk when this returns.

        :raises StateError: they cannot be written.
        """
        try:
            self._file.save({name: _plain(group) for name, group in groups.items()})
        except StateError as error:
            raise StateError(f"{error}; no control group is changed") from error


def lost(path: Path) -> LostFile | None:
    """A file with original values, if it cannot be read."""
    file = _file(path, None)
    file.load(_groups, dict[str, ChangedGroup]())
    return file.lost


def _file(path: Path, boot_id: str | None) -> BootFile:
    return BootFile(path, "groups", boot_id, EFFECT)


def _plain(group: ChangedGroup) -> dict[str, Any]:
    return {
        "identity": group.identity,
        "clusters": sorted(group.clusters),
        "originals": dict(group.originals),
        "home": group.home,
    }


def _groups(data: Any) -> dict[str, ChangedGroup]:
    return {_path(name): _group(value) for name, value in values.of(dict, data).items()}


def _group(data: Any) -> ChangedGroup:
    """A group. What is written to a control file is a text as it is, and not made of anything else."""
    identity, home = data["identity"], data["home"]
    return ChangedGroup(
        identity=None if identity is None else values.of(int, identity),
        clusters=frozenset(map(values.text, values.of(list, data["clusters"]))),
        originals={ControlFile(file): values.text(text) for file, text in values.of(dict, data["originals"]).items()},
        home=None if home is None else _path(home),
    )


def _path(data: Any) -> str:
    """The path of a group below the mounted hierarchy."""
    if ".." in (path := values.text(data)).split("/") or "\0" in path:
        raise ValueError(f"{path!r:.80} is no path of a group")
    return path
