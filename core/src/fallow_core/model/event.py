"""One line for the log, as pure functions return it; `fallow_core.log.write` writes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`logger` is the part after `fallow.`; `warning`: somebody should look at it."""

    logger: str
    name: str
    fields: Mapping[str, object] = field(default_factory=dict)
    warning: bool = False
