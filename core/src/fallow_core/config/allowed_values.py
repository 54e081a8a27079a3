"""What a JSON schema allows for a key. The schema may be that of a plugin, so unexpected content is no error here."""

from collections.abc import Iterator, Mapping
from typing import Any

from fallow_core.config.problems import KeyPath

_DEEPEST = 16
_TYPES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "array": "a list",
    "object": "a mapping",
}


def allowed_keys(schema: Mapping[str, Any], key: KeyPath) -> list[str]:
    """The keys that the mapping at `key` may have, sorted."""
    return sorted({name for part in _at(schema, key) for name in _mapping(part.get("properties"))})


def allowed_values(schema: Mapping[str, Any], key: KeyPath) -> str:
    """The allowed values at `key` as text; empty if the schema does not say."""
    for part in _at(schema, key):
        if "const" in part:
            return f"{part['const']!r}"
        if isinstance(part.get("enum"), list):
            return " or ".join(repr(value) for value in part["enum"])
        if part.get("type") in _TYPES:
            return _TYPES[part["type"]]
    return ""


def _at(schema: Mapping[str, Any], key: KeyPath) -> list[Mapping[str, Any]]:
    """All parts of the schema that describe the key."""
    parts = list(_alternatives(schema, schema, 0))
    for step in key:
        below = (_below(part, step) for part in parts)
        parts = [part for each in below for part in _alternatives(each, schema, 0)]
    return parts


def _below(part: Mapping[str, Any], step: str | int) -> Any:
    if isinstance(step, int):
        return part.get("items")
    return _mapping(part.get("properties")).get(step, part.get("additionalProperties"))


def _alternatives(part: Any, root: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    """The part itself with its reference followed, and every member of its unions."""
    if not isinstance(part, Mapping) or depth > _DEEPEST:
        return
    reference = part.get("$ref")
    if isinstance(reference, str):
        name = reference.removeprefix("#/$defs/")
        yield from _alternatives(_mapping(root.get("$defs")).get(name), root, depth + 1)
    yield part
    for union in ("anyOf", "oneOf", "allOf"):
        for member in part.get(union) or ():
            yield from _alternatives(member, root, depth + 1)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
