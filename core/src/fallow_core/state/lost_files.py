"""Files of the state directory that cannot be read: what they hold is unknown, which is not the same as empty.

Such a file stays where it is, so each start finds it again, and a person can repair or replace it. It counts until a
person gives it up; then it is renamed, never deleted.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fallow_core.errors import StateError
from fallow_core.state import values
from fallow_hookspecs import trusted_path

COMMAND = "fallow accept-lost-state"
LONGEST_REASON = 160
LARGEST_BYTES = 64 << 20
"""The journal of 20,000 nodes is a tenth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostFile:
    """A file that cannot be read: why, what follows from that, and what a person can do besides giving it up."""

    path: Path
    why: str
    effect: str
    advice: str = "repair or replace the file and start Fallow again"


class NotReadableError(StateError):
    """The content of a state file makes no sense, or is of another version."""


class NewerVersionError(NotReadableError):
    """A state file was written by a newer Fallow."""


@contextmanager
def reading() -> Iterator[None]:
    """Turn what goes wrong while a file is read or decoded into an error that says what is wrong with it.

    :raises NotReadableError: it cannot be read.
    :raises FileNotFoundError: there is no such file.
    """
    try:
        yield
    except (FileNotFoundError, NotReadableError):
        raise
    except OSError as error:
        raise NotReadableError(f"cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise NotReadableError(f"makes no sense ({type(error).__name__}: {error!s:.{LONGEST_REASON}})") from error


def text_of(path: Path) -> bytes:
    """The bytes of a file that has some. Neither a link is followed nor is a pipe waited for.

    :raises NotReadableError: it is empty, or too large.
    :raises OSError: it cannot be read, or is no regular file.
    """
    with os.fdopen(trusted_path.open_regular(path), "rb") as file:
        text = file.read(LARGEST_BYTES + 1)
    if len(text) > LARGEST_BYTES:
        raise NotReadableError(f"is larger than {LARGEST_BYTES} bytes, and no Fallow writes such a file")
    if not text.strip():
        raise NotReadableError("is empty")
    return text


def decoded(line: bytes, where: str = "") -> Any:
    """The value of a JSON text.

    :param where: where in the file it is, for the error message, such as "line 3: ".
    :raises NotReadableError: it is not JSON.
    """
    if b"\0" in line:
        raise NotReadableError(f"contains NUL bytes{where}, as after a power cut")
    try:
        return json.loads(line, parse_constant=_refuse, parse_float=values.finite)
    except (ValueError, RecursionError) as error:
        raise NotReadableError(f"is not JSON{where} ({error!s:.{LONGEST_REASON}})") from error


def check_version(found: object, newest: int) -> None:
    """Accept the versions 1 to `newest`.

    :raises NewerVersionError: it is a newer one.
    :raises NotReadableError: it is none.
    """
    if type(found) is not int or found < 1:
        raise NotReadableError(f"has no version that there ever was: {found!r:.{LONGEST_REASON}}")
    if found > newest:
        raise NewerVersionError(f"was written by a newer Fallow: version {found}, this one knows up to {newest}")


def lost(path: Path, error: NotReadableError, effect: str) -> LostFile:
    """The file, with what to do about it."""
    if isinstance(error, NewerVersionError):
        return LostFile(path=path, why=str(error), effect=effect, advice="start that one")
    return LostFile(path=path, why=str(error), effect=effect)


def name_when_given_up(path: Path) -> Path:
    """A name beside the file that is free: what was given up is kept."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    names = (path.with_name(f"{path.name}.lost-{stamp}{more}") for more in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(name for name in names if not os.path.lexists(name))


def give_up(names: Iterable[tuple[Path, Path]]) -> None:
    """Rename files; one that is gone by now was given up already.

    :raises StateError: one cannot be renamed.
    """
    for path, kept in names:
        try:
            path.rename(kept)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise StateError(f"cannot rename {path} to {kept.name}: {error.strerror}") from error


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")
