"""Answers as JSON values, and back. The types in this package are the schema: of the control socket and of `--json`."""

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from fallow_core.errors import ControlError

T = TypeVar("T")


def to_json(answer: Struct) -> dict[str, Any]:
    """The answer as what `json.dumps` takes."""
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(answer))
    return values


def from_json(kind: type[T], values: Any) -> T:
    """The answer in JSON values. Fields that the type does not have are ignored.

    :raises ControlError: a field is missing or has another type.
    """
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise ControlError(f"the running Fallow is of another version: {error}; restart it, or use --json") from error
