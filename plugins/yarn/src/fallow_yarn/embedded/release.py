"""What differs between the releases of YARN that the embedded one can be."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Release:
    """A release by its version, such as `3.5.0`. ValueError if that is none."""

    version: str

    def __post_init__(self) -> None:
        if not all(part.isdecimal() for part in self.version.split(".")) or self.version.count(".") != 2:
            raise ValueError(f"{self.version!r} is no version of Hadoop; expected one such as 3.5.0")

    @property
    def takes_back(self) -> bool:
        """Ends containers when an over-commit timeout runs out, tells nodes their new sizes, takes sizes by REST."""
        return self._number >= (3, 3)

    @property
    def shows_pending(self) -> bool:
        """Has the pending memory and vcores among the cluster's metrics."""
        return self._number >= (3, 3)

    @property
    def names_queue_paths(self) -> bool:
        """Calls a queue by its path."""
        return self._number >= (3, 4)

    @property
    def is_asynchronous(self) -> bool:
        """Allocates in threads of its own, and not with the heartbeats of nodes."""
        return self._number >= (3, 5)

    @property
    def answers_new_size(self) -> bool:
        """Answers a size sent by REST with that size, and not with the one of before."""
        return self._number >= (3, 5)

    @property
    def _number(self) -> tuple[int, int]:
        major, minor, _ = self.version.split(".")
        return int(major), int(minor)
