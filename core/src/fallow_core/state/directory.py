"""The state directory: whoever can write in it decides what is lent and what is written to control files."""

import os
from pathlib import Path

from fallow_core.errors import StateError
from fallow_hookspecs import trusted_path

MODE = 0o700


def prepare(state_dir: Path, user: int | None = None) -> None:
    """Make the directory if it is missing, and check that only root and a user can change what is in it.

    :param user: `None`: the user of this process.
    :raises StateError: others can, or it cannot be made.
    """
    try:
        trusted_path.make_folder(state_dir, MODE, user)
    except OSError as error:
        raise unusable(state_dir, error) from error


def user_of(state_dir: Path) -> int:
    """The user whose state it is: root may act for the user of a service, and everybody else for himself."""
    own = os.geteuid()
    try:
        return state_dir.stat().st_uid if own == 0 else own
    except OSError:
        return own


def unusable(state_dir: Path, error: OSError) -> StateError:
    """The error that says so."""
    return StateError(f"cannot use the state directory {state_dir}: {error.strerror}; set stateDir")
