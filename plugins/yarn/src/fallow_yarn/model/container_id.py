"""Container ids: `container_[eEPOCH_]TIMESTAMP_APPLICATION_ATTEMPT_NUMBER`."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

REMEMBERED: Final = 1024
"""Ids that are parsed once: those of a node come again with each list."""
_ID = re.compile(
    r"container_(?:e(?P<epoch>\d{2,9})_)?(?P<timestamp>\d{1,18})_(?P<application>\d{4,10})_(?P<attempt>\d{2,10})"
    r"_(?P<number>\d{6,18})",
    re.ASCII,
)
_WORD = re.compile(rb"(?<![A-Za-z0-9_-])container_[e0-9_]+(?![A-Za-z0-9_-])")


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerId:
    """One container. `number` counts from 1 within the attempt of the application.

    `epoch` counts the restarts of the ResourceManager with work-preserving recovery.
    """

    text: str
    application_id: str
    cluster_timestamp: int
    application: int
    attempt: int
    epoch: int
    number: int

    @classmethod
    @lru_cache(maxsize=REMEMBERED)
    def parse(cls, text: str) -> Self | None:
        """The parsed id; `None` if the text is not one."""
        match = _ID.fullmatch(text)
        if match is None:
            return None
        found = cls(
            text=text,
            application_id=f"application_{match['timestamp']}_{match['application']}",
            cluster_timestamp=int(match["timestamp"]),
            application=int(match["application"]),
            attempt=int(match["attempt"]),
            epoch=int(match["epoch"] or 0),
            number=int(match["number"]),
        )
        fits = max(found.application, found.attempt) < 1 << 31 and found.epoch < 1 << 23 and found.number < 1 << 40
        return found if fits else None

    @property
    def is_first(self) -> bool:
        """Whether it is the first of its attempt: as a rule, the application master."""
        return self.number == 1


def named_in(raw: bytes) -> set[str]:
    """The ids that are whole words of a text, such as components of a path."""
    return {word for match in _WORD.findall(raw) if ContainerId.parse(word := match.decode()) is not None}
