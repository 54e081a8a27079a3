"""The settings of an embedded YARN."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from fallow_yarn.embedded.release import Release
from fallow_yarn.model.size import Size

MINIMUM: Final = Size(128, 1)
MAXIMUM: Final = Size(8192, 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of an embedded YARN. ValueError for invalid ones.

    `memory_mb` and `vcores` are those of each NodeManager, `custom` further resource types by the NodeManager's name
    ("nm1", "nm2", ...). `minimum` and `maximum` are the scheduler's allocations. `admins`: who beside the own user may
    change sizes; None: everybody. `ha`: a second ResourceManager as standby. `exclude_file`, `include_file`: the
    lists of hosts that both read.

    `heartbeat_seconds`: from one report of a NodeManager to the next. `change_seconds`: how long the scheduler takes
    for one change of a size, `starting_seconds`: how long a ResourceManager is up before it is active,
    `expiry_seconds`: how long a silent NodeManager counts as alive, `sigkill_seconds`: how long a container has from
    SIGTERM to SIGKILL, and the rest of it from the end of its first process.
    """

    nodes: int = 1
    memory_mb: int = 4096
    vcores: int = 4
    custom: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    minimum: Size = MINIMUM
    maximum: Size = MAXIMUM
    admins: frozenset[str] | None = None
    ha: bool = False
    exclude_file: Path | None = None
    include_file: Path | None = None
    version: str = "3.5.0"
    heartbeat_seconds: float = 0.3
    change_seconds: float = 0.01
    starting_seconds: float = 0.2
    expiry_seconds: float = 600.0
    sigkill_seconds: float = 0.25

    def __post_init__(self) -> None:
        if self.memory_mb < self.minimum.memory_mb or self.vcores < self.minimum.vcores:
            configured = f"{self.memory_mb} MB and {self.vcores} vcores"
            raise ValueError(f"nodes of {configured} are below the minimum allocation {self.minimum}: make them larger")
        if min(self.heartbeat_seconds, self.expiry_seconds) <= 0 or min(self.change_seconds, self.starting_seconds) < 0:
            raise ValueError("seconds are positive, and those of a change and of the start not negative")
        _ = self.release

    @property
    def release(self) -> Release:
        """The release of YARN that it emulates."""
        return Release(self.version)
