"""Values of the contract to messages and back, driven by the fields of the dataclasses and of the .proto file.

A field of a dataclass and the field of its message have the same name. What a message lacks gets the default of the
dataclass, or `None` where the contract requires a value; it never becomes zero. Core then refuses the value by name, as
it does for a plugin in its own process.
"""

import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from operator import attrgetter
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_Put = Callable[[Any, Any], None]
_Take = Callable[[Any], Any]


class Codec(Generic[_T]):
    """Converts between one dataclass and its message. The caller converts the fields of `by_hand` itself."""

    def __init__(self, kind: type[_T], message: Any, by_hand: tuple[str, ...] = ()) -> None:
        hints = get_type_hints(kind)
        self._kind = kind
        self._parts = [
            (each.name, *_part(hints[each.name], _default(each), message.fields_by_name[each.name]))
            for each in fields(kind)  # type: ignore[arg-type] # it is a dataclass
            if each.name not in by_hand
        ]

    def put(self, message: Any, value: _T) -> None:
        """Fill a new message.

        :raises AttributeError, KeyError, TypeError, ValueError: a field has a value that messages cannot carry.
        """
        for name, put, _ in self._parts:
            put(message, getattr(value, name))

    def take(self, message: Any, **by_hand: Any) -> _T:
        """The value of a message."""
        return self._kind(**{name: take(message) for name, _, take in self._parts}, **by_hand)


def numbers(kind: type[Enum], wire: Any) -> dict[Any, int]:
    """The number of each member. Zero means "unspecified" in messages, and has no member."""
    prefix = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", wire.name).upper()
    return {member: wire.values_by_name[f"{prefix}_{member.name}"].number for member in kind}


def members(kind: type[Enum], wire: Any) -> dict[int, Any]:
    """The member of each number."""
    return {number: member for member, number in numbers(kind, wire).items()}


def _default(field: "Field[Any]") -> Any:
    if field.default_factory is not MISSING:
        return field.default_factory()
    return field.default


def _part(hint: Any, default: Any, wire: Any) -> tuple[_Put, _Take]:
    """How one field is put into a message, and taken from it. `default` is MISSING where the value is required."""
    is_optional = get_origin(hint) in (Union, types.UnionType)
    kind: Any = get_args(hint)[0] if is_optional else hint
    if get_origin(kind) is tuple:
        return _repeated(get_args(kind)[0], wire)
    if get_origin(kind) is Mapping:
        return _mapping(get_args(kind)[1], wire)
    if is_dataclass(kind) and isinstance(kind, type):
        return _message(kind, wire, is_optional=is_optional)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _enum(kind, default, wire, is_optional=is_optional)
    return _scalar(default, wire, is_optional=is_optional)


def _scalar(default: Any, wire: Any, *, is_optional: bool) -> tuple[_Put, _Take]:
    name, left_out = wire.name, None if default is MISSING else default

    def put(message: Any, value: Any) -> None:
        if value != default and not (value is None and is_optional):
            setattr(message, name, value)

    def take(message: Any) -> Any:
        return getattr(message, name) if message.HasField(name) else left_out

    return put, take if wire.has_presence else attrgetter(name)


def _enum(kind: type[Enum], default: Any, wire: Any, *, is_optional: bool) -> tuple[_Put, _Take]:
    name, left_out = wire.name, None if default is MISSING else default
    number_of, member_of = numbers(kind, wire.enum_type), members(kind, wire.enum_type)

    def put(message: Any, value: Any) -> None:
        if value != default and not (value is None and is_optional):
            setattr(message, name, number_of[value])

    return put, lambda message: member_of.get(getattr(message, name), left_out)


def _message(kind: type, wire: Any, *, is_optional: bool) -> tuple[_Put, _Take]:
    name, its = wire.name, Codec[Any](kind, wire.message_type)

    def put(message: Any, value: Any) -> None:
        if value is None and is_optional:
            return
        part = getattr(message, name)
        its.put(part, value)
        part.SetInParent()

    def take(message: Any) -> Any:
        return None if is_optional and not message.HasField(name) else its.take(getattr(message, name))

    return put, take


def _repeated(kind: Any, wire: Any) -> tuple[_Put, _Take]:
    get = attrgetter(wire.name)
    if not (is_dataclass(kind) and isinstance(kind, type)):
        return lambda message, values: get(message).extend(values), lambda message: tuple(get(message))
    its = Codec(kind, wire.message_type)

    def put(message: Any, values: Any) -> None:
        add = get(message).add
        for value in values:
            its.put(add(), value)

    return put, lambda message: tuple(map(its.take, get(message)))


def _mapping(kind: Any, wire: Any) -> tuple[_Put, _Take]:
    get = attrgetter(wire.name)
    if not wire.message_type.GetOptions().map_entry:
        return _by_key(wire)
    if not (is_dataclass(kind) and isinstance(kind, type)):
        return lambda message, values: get(message).update(values), lambda message: dict(get(message))
    its = Codec(kind, wire.message_type.fields_by_name["value"].message_type)

    def put(message: Any, values: Any) -> None:
        entries = get(message)
        for key, value in values.items():
            its.put(entries[key], value)

    return put, lambda message: {key: its.take(value) for key, value in get(message).items()}


def _by_key(wire: Any) -> tuple[_Put, _Take]:
    """A mapping that is a message with a field for each key, in its unit: `take_back` has `cpu_milli`."""
    get = attrgetter(wire.name)
    fields = {each.name.partition("_")[0]: each.name for each in wire.message_type.fields}

    def put(message: Any, values: Any) -> None:
        for key, value in values.items():
            setattr(get(message), fields[key], value)

    return put, lambda message: {each.name.partition("_")[0]: value for each, value in get(message).ListFields()}
