"""The terminations on disk, so that a kill in the middle of a grace neither lengthens nor forgets it.

Times are those of the kernel's monotonic clock, which goes on over a restart of Fallow and begins anew with the host.
After a restart of the host the tasks have gone, and the file is of no more use.
"""

import json
from pathlib import Path

from fallow_core.errors import StateError
from fallow_core.qos.termination import Terminations
from fallow_core.qos.termination_json import from_json, to_json
from fallow_core.state import durable

FILE_NAME = "terminations.json"
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class TerminationsFile:
    """One file in the state directory, written whole and synced before an order is given."""

    def __init__(self, state_dir: Path, boot_id: str | None = None) -> None:
        self._path = state_dir / FILE_NAME
        self._boot_id = BOOT_ID.read_text().strip() if boot_id is None else boot_id

    def load(self, now: float) -> tuple[Terminations, str]:
        """The terminations of this boot, and why there are none where the file says otherwise."""
        try:
            values = json.loads(self._path.read_bytes())
            if values["boot_id"] != self._boot_id:
                return Terminations(), ""
            return from_json(values["terminations"], 0.0, now), ""
        except FileNotFoundError:
            return Terminations(), ""
        except (OSError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
            return Terminations(), f"{self._path} is unreadable ({error}): terminations under way are forgotten"

    def save(self, terminations: Terminations) -> None:
        """Write the terminations so that they are on the disk when this returns.

        :raises StateError: they cannot be written.
        """
        text = json.dumps({"boot_id": self._boot_id, "terminations": to_json(terminations, 0.0)})
        try:
            durable.write(self._path, text)
        except OSError as error:
            raise StateError(f"cannot write {self._path}: {error.strerror}") from error
