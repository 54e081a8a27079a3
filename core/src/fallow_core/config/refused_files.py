"""The files that are refused, and how often files were read: for status and metrics."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fallow_core.config.problems import Problem


@dataclass(slots=True)
class Refusals:
    """The files that are refused, with the time of the first refusal (seconds since 1970).

    `taken` and `refused` count the times that files were read again without and with a mistake. `taken_at`: when the
    newest configuration without a mistake was read, in seconds since 1970.
    """

    files: dict[Path, tuple[float, tuple[Problem, ...]]] = field(default_factory=dict)
    taken_at: float = 0.0
    taken: int = 0
    refused: int = 0

    def note(self, problems: Iterable[Problem], wall_now: float) -> None:
        """Replace the refused files with those of the newest read."""
        by_file: dict[Path, tuple[Problem, ...]] = {}
        for problem in problems:
            file = problem.file.absolute()
            by_file[file] = (*by_file.get(file, ()), problem)
        self.files = {
            file: (self.files[file][0] if file in self.files else wall_now, found) for file, found in by_file.items()
        }
        if not by_file:
            self.taken_at = wall_now

    @property
    def problems(self) -> set[Problem]:
        """Every mistake of the refused files."""
        return {problem for _, found in self.files.values() for problem in found}

    def lines(self) -> list[str]:
        """One line for each problem."""
        return [
            f"{problem} (refused since {_moment(since)})" for since, found in self.files.values() for problem in found
        ]


def _moment(wall: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(wall))
