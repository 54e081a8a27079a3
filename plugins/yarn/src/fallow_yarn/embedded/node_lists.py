"""The excluded and included hosts of a ResourceManager, as it last read them from its files."""

from pathlib import Path
from typing import Final

from fallow_yarn.lifecycle.list_entries import addresses_of, counted
from fallow_yarn.lifecycle.list_file import ListFile

DEFAULT_GRACE_SECONDS: Final = 3600


class NodeLists:
    """Excluded and included hosts, by the files' own graces. Without a file, or with an empty one of included hosts,
    every host is taken.
    """

    def __init__(self, exclude_file: Path | None, include_file: Path | None) -> None:
        self._exclude = None if exclude_file is None else ListFile(exclude_file)
        self._include = None if include_file is None else ListFile(include_file)
        self._excluded: dict[str, int | None] = {}
        self._included: dict[str, int | None] = {}

    def read(self) -> None:
        """Read the files again."""
        self._excluded = {} if self._exclude is None else self._exclude.hosts()
        self._included = {} if self._include is None else self._include.hosts()

    def takes(self, host: str) -> bool:
        """Whether a node of this host may register, or stay."""
        if counted(host, self._excluded, addresses_of):
            return False
        return not self._included or bool(counted(host, self._included, addresses_of))

    def grace_seconds(self, host: str, given: int | None) -> int:
        """How long a node of this host may stay that is taken out gracefully, for a call with this grace."""
        own = self._excluded.get(host)
        return own if own is not None else DEFAULT_GRACE_SECONDS if given is None else given
