"""Parses a Hadoop daemon's settings from its page /conf. Pure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from fallow_yarn.errors import ProtocolError
from fallow_yarn.http.loose_json import member, objects, text
from fallow_yarn.settings.hadoop_conf import expanded


@dataclass(frozen=True, slots=True)
class DaemonConf:
    """Values by key, as written. The methods return None for a setting that is missing or not of the type."""

    values: Mapping[str, str] = field(default_factory=dict)

    def text(self, key: str) -> str | None:
        """A value with its `${variables}` replaced; None if it, or one of them, is not set."""
        value = self.values.get(key)
        try:
            return None if value is None else expanded(value, self.values.get)
        except ValueError:
            return None

    def number(self, key: str) -> float | None:
        """A number."""
        try:
            return float(self.text(key) or "")
        except ValueError:
            return None

    def flag(self, key: str) -> bool | None:
        """True or false."""
        return {"true": True, "false": False}.get((self.text(key) or "").lower())

    def class_name(self, key: str) -> str | None:
        """The name of a Java class without its package."""
        value = self.text(key)
        return None if value is None else value.rpartition(".")[2]


def parse(page: bytes) -> DaemonConf:
    """The settings of a page in JSON or XML; ProtocolError if it is neither, or has no setting."""
    values = _json(page) if page.lstrip()[:1] in (b"{", b"[") else _xml(page)
    if not values:
        raise ProtocolError("the page /conf has no settings")
    return DaemonConf(values)


def _json(page: bytes) -> dict[str, str]:
    try:
        entries = objects(member(json.loads(page), "properties"))
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the page /conf is not valid JSON: {error}") from None
    return {text(entry.get("key")): text(entry.get("value")) for entry in entries if text(entry.get("key"))}


def _xml(page: bytes) -> dict[str, str]:
    try:
        root = ET.fromstring(page)  # noqa: S314  expat bounds what entities may grow to
    except (ET.ParseError, ValueError, LookupError) as error:  # the last for an unknown encoding
        raise ProtocolError(f"the page /conf is neither JSON nor XML: {error}") from None
    entries = ((entry.findtext("name"), entry.findtext("value")) for entry in root.iter("property"))
    return {name: value or "" for name, value in entries if name}
