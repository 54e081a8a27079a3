"""The properties of Hadoop's XML files, core-site.xml and yarn-site.xml, of one folder.

Includes, variables and final properties have the meaning that they have for Hadoop.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fallow_yarn.settings.conf_xml import ConfXml, ConfXmlError
from fallow_yarn.settings.file_uri import local_path

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

FILES: Final = ("core-site.xml", "yarn-site.xml")
"""In the order in which Hadoop's daemons read them: the values of a later file replace those of an earlier one."""

EXPECTED: Final = "expected the directory with the cluster's yarn-site.xml, on this host"
EXCLUDE_KEY: Final = "yarn.resourcemanager.nodes.exclude-path"
INCLUDE_KEY: Final = "yarn.resourcemanager.nodes.include-path"
MOST_EXPANSIONS: Final = 20  # as Hadoop's own reader
MOST_INCLUDES: Final = 10
_INCLUDE: Final = "{http://www.w3.org/2001/XInclude}include"
_FALLBACK: Final = "{http://www.w3.org/2001/XInclude}fallback"
_VARIABLE: Final = re.compile(r"\$\{([^${}\s]+)\}")
_ENVIRONMENT: Final = re.compile(r"env\.(?P<name>[^:-]+)(?:(?P<kind>:?-)(?P<default>.*))?")


class HadoopConfError(Exception):
    """Hadoop's configuration files cannot be read, or lack a value that is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A value as written, and its file."""

    value: str
    file: Path
    final: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Properties:
    """The properties of a folder by key. `environment` has the values of variables `${env.NAME}`."""

    folder: Path
    found: Mapping[str, Property]
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def text(self, key: str, default: str = "") -> str:
        """A value with its `${variables}` replaced, or else the default with its own ones.

        :raises HadoopConfError: a variable is not set, or is circular.
        """
        known = self.found.get(key)
        try:
            return expanded(default if known is None else known.value, self._meant)
        except ValueError as error:
            raise HadoopConfError(f"{self.source(key)}: {error}") from None

    def flag(self, key: str) -> bool:
        """Whether a value is `true`; false if it is missing."""
        return self.text(key).lower() == "true"

    def words(self, key: str, known: Collection[str]) -> list[str]:
        """The words of a value, between commas, in lower case.

        :raises HadoopConfError: one of them is not known.
        """
        words = [word.strip() for word in self.text(key).lower().split(",") if word.strip()]
        for word in words:
            if word not in known:
                raise HadoopConfError(f"{self.source(key)}: {word!r} is not one of {', '.join(known)}")
        return words

    def source(self, key: str) -> str:
        """The source of a value, for messages."""
        known = self.found.get(key)
        return f"{key}, Hadoop's default" if known is None else f"{key} in {known.file}"

    def _meant(self, name: str) -> str | None:
        environment = _ENVIRONMENT.fullmatch(name)
        if environment is not None:
            value = self.environment.get(environment["name"])
            wants_default = value is None or (value == "" and environment["kind"] == ":-")
            return environment["default"] if wants_default else value
        known = self.found.get(name)
        return None if known is None else known.value


def expanded(value: str, lookup: Callable[[str], str | None]) -> str:
    """A value with its `${variables}` replaced; ValueError if one is not set, or is circular."""
    value = value.strip()
    for _ in range(MOST_EXPANSIONS):
        variable = _VARIABLE.search(value)
        if variable is None:
            return value
        meant = lookup(variable[1])
        if meant is None:
            raise ValueError(f"${{{variable[1]}}} in {value!r} is not set")
        value = value[: variable.start()] + meant.strip() + value[variable.end() :]
    raise ValueError(f"{value!r} has more than {MOST_EXPANSIONS} nested variables")


def read_folder(folder: str) -> Properties:
    """The properties of core-site.xml and yarn-site.xml. Of the two, core-site.xml may be missing.

    :raises HadoopConfError: a file cannot be read or is no Hadoop configuration.
    """
    path = Path(folder)
    found: dict[str, Property] = {}
    try:
        is_folder, has_file = path.is_dir(), (path / FILES[-1]).is_file()
    except OSError as error:
        raise HadoopConfError(f"{folder}: it cannot be read: {error.strerror}") from None
    if not is_folder:
        raise HadoopConfError(f"{folder}: there is no such directory; {EXPECTED}")
    if not has_file:
        raise HadoopConfError(f"{folder}: there is no {FILES[-1]} in it; {EXPECTED}")
    conf = ConfXml()
    for name in FILES:
        if (path / name).exists():
            for key, given in _read(path / name, MOST_INCLUDES, conf):
                if key not in found or not found[key].final:
                    found[key] = given
    return Properties(folder=path, found=found)


def _read(file: Path, includes_left: int, conf: ConfXml) -> Iterator[tuple[str, Property]]:
    try:
        root = conf.root(file)
    except ConfXmlError as error:
        raise HadoopConfError(f"{file}: {error}") from None
    except OSError as error:
        raise HadoopConfError(f"{file}: it cannot be read: {error.strerror}") from None
    if root.tag != "configuration":
        raise HadoopConfError(f"{file}: it begins with <{root.tag}>, expected <configuration>")
    yield from _properties(root, file, includes_left, conf)


def _properties(element: "Element", file: Path, includes_left: int, conf: ConfXml) -> Iterator[tuple[str, Property]]:
    for child in element:
        if child.tag == _INCLUDE:
            yield from _included(child, file, includes_left, conf)
        elif child.tag == "configuration":
            yield from _properties(child, file, includes_left, conf)
        elif child.tag == "property":
            texts = {part.tag: (part.text or "") for part in child} | dict(child.attrib)
            name = texts.get("name", "").strip()
            if name and "value" in texts:
                final = texts.get("final", "").strip() == "true"
                yield name, Property(value=texts["value"], file=file, final=final)


def _included(include: "Element", file: Path, includes_left: int, conf: ConfXml) -> Iterator[tuple[str, Property]]:
    href = include.get("href", "")
    try:
        target = file.parent / local_path(href)
    except ValueError as error:
        raise HadoopConfError(f"{file}: it includes {href}: {error}") from None
    fallback = include.find(_FALLBACK)
    if includes_left <= 0:
        raise HadoopConfError(f"{file}: more than {MOST_INCLUDES} nested includes, the last one of {target}")
    if target.is_file():
        yield from _read(target, includes_left - 1, conf)
    elif fallback is not None:
        yield from _properties(fallback, file, includes_left, conf)
    else:
        raise HadoopConfError(f"{file}: it includes {target}, which does not exist")
