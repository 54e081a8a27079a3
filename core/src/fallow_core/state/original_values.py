"""What Fallow changed in the control groups of this host, on disk before it is changed, so that it can be put back.

A group's values begin anew with the host: after a restart of it the file is of no more use.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fallow_core.errors import StateError
from fallow_core.node.cgroups.control_file import Knob
from fallow_core.state import durable
from fallow_core.state.terminations_file import BOOT_ID

FILE_NAME = "knobs.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How a group was found. `originals` are the texts of its files.

    `identity` tells it from a later group of the same path; `None` until it is made. `clusters`: whose tasks are in it.
    `home`: Fallow made it, and its processes came from there.
    """

    identity: int | None
    clusters: frozenset[str]
    originals: Mapping[Knob, str] = field(default_factory=dict)
    home: str | None = None


class KnobsFile:
    """One file in the state directory, written whole and synced before what it tells of is done.

    :param controller: whose hierarchy it tells of; on v1 each has groups of its own.
    """

    def __init__(self, state_dir: Path, boot_id: str | None = None, controller: str = "cpu") -> None:
        self._path = state_dir / (FILE_NAME if controller == "cpu" else f"knobs-{controller}.json")
        self._boot_id = BOOT_ID.read_text().strip() if boot_id is None else boot_id

    def load(self) -> tuple[dict[str, Kept], str]:
        """The groups changed since this host was started, and why there are none where the file says otherwise."""
        try:
            values = json.loads(self._path.read_bytes())
            if values["boot_id"] != self._boot_id:
                return {}, ""
            return {str(group): _kept(value) for group, value in values["groups"].items()}, ""
        except FileNotFoundError:
            return {}, ""
        except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            return {}, f"{self._path} is unreadable ({error}): what control groups were like before Fallow is lost"

    def save(self, groups: Mapping[str, Kept]) -> None:
        """Write the groups so that they are on the disk when this returns.

        :raises StateError: they cannot be written.
        """
        values = {group: _values(kept) for group, kept in groups.items()}
        try:
            durable.write(self._path, json.dumps({"boot_id": self._boot_id, "groups": values}))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise StateError(f"cannot write {self._path}: {reason}; no control group is changed") from error


def _values(kept: Kept) -> dict[str, Any]:
    return {
        "identity": kept.identity,
        "clusters": sorted(kept.clusters),
        "originals": dict(kept.originals),
        "home": kept.home,
    }


def _kept(value: Mapping[str, Any]) -> Kept:
    identity, home = value["identity"], value["home"]
    return Kept(
        identity=None if identity is None else int(identity),
        clusters=frozenset(map(str, value["clusters"])),
        originals={Knob(knob): str(text) for knob, text in value["originals"].items()},
        home=None if home is None else str(home),
    )
