"""Whether the files of the state directory can be read. It changes none of them."""

from collections.abc import Iterator
from pathlib import Path

from fallow_core.errors import StateError
from fallow_core.state import original_values, publish_journal
from fallow_core.state.lost_files import COMMAND, LostFile
from fallow_core.state.terminations_file import TerminationsFile
from fallow_hookspecs import Finding

SUBJECT = "state"


def findings(state_dir: Path) -> Iterator[Finding]:
    """One finding for each file that cannot be read, or one that says that all can."""
    try:
        lost = list(lost_files(state_dir))
    except (StateError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        yield Finding(subject=SUBJECT, ok=False, detail=f"{state_dir} cannot be read: {reason}", advice="set stateDir")
        return
    for each, advice in lost:
        yield Finding(subject=SUBJECT, ok=False, detail=f"{each.path} {each.why}: {each.effect}", advice=advice)
    if not lost:
        yield Finding(subject=SUBJECT, ok=True, detail="every file of the state directory can be read")


def lost_files(state_dir: Path) -> Iterator[tuple[LostFile, str]]:
    """Each file that cannot be read, and what to do about it.

    :raises StateError, OSError: the directory cannot be read.
    """
    decided = list(publish_journal.load(state_dir).lost)
    decided += [
        lost for path in sorted(state_dir.glob(original_values.PATTERN)) if (lost := original_values.lost(path))
    ]
    for each in decided:
        yield each, f"{each.advice}, or give the file up: {COMMAND} --why REASON"
    terminations = TerminationsFile(state_dir)
    terminations.load(0.0)
    if terminations.lost is not None:
        yield terminations.lost, "nothing: the next start of Fallow renames the file"
