"""Breaks the ledger on purpose, each time in one place of a copy of the tree, and shows which test finds it.

    python tools/breakages.py [--only WORD]

The tree itself is never touched. It fails where a break is found by no test, and where its text is no longer in the
source exactly once. Takes a few minutes.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEDGER = "core/src/fallow_core/ledger"
MANY = "core/tests/test_ledger_histories.py::test_ten_thousand_histories_lend_nothing_twice"
TAKING_BACK = "core/tests/test_ledger_histories.py::test_what_is_taken_back_stays_within_the_blast_radius"
ALONE = "core/tests/test_ledger_histories.py::test_nothing_is_lent_twice"
UNKNOWN = "core/tests/test_planner_round.py::test_while_the_memory_is_unknown_sizes_shrink_and_never_grow"
EQUAL = "core/tests/test_fleet_equal.py"
NO_SHRINKING = """
from hypothesis import Phase

settings.register_profile("breakages", settings.get_profile("fallow"), phases=(Phase.explicit, Phase.generate))
settings.load_profile("breakages")
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakage:
    """A rule that is broken: in which file, what stands there, what instead, and the tests that have to find it."""

    rule: str
    path: str
    old: str
    new: str
    tests: str = MANY

    def problem(self, root: Path) -> str:
        """Why it cannot be done any more; empty if it can."""
        count = (root / self.path).read_text().count(self.old)
        return "" if count == 1 else f"{self.path}: found {count} times, expected once: {self.old!r}"

    def apply(self, root: Path) -> None:
        """Break a tree."""
        file = root / self.path
        file.write_text(file.read_text().replace(self.old, self.new))


BREAKAGES = (
    Breakage(
        rule="sizes in flight are believed",
        path=f"{LEDGER}/rows.py",
        old="        for sent in self.in_flight:\n            most = max(most, sent.size.amount(resource))\n",
        new="",
    ),
    Breakage(
        rule="an answered size is believed until a report shows it",
        path=f"{LEDGER}/rows.py",
        old="(replace(s, size=size, ended_at=now, answered=True) if s.of_call(sent_at) else s for s in row.in_flight)",
        new="(s for s in row.in_flight if not s.of_call(sent_at))",
    ),
    Breakage(
        rule="a call without an answer may still be carried out",
        path=f"{LEDGER}/rows.py",
        old="ended = (replace(s, ended_at=now) if s.of_call(sent_at) else s for s in kept)",
        new="ended = (s for s in kept if not s.of_call(sent_at))",
    ),
    Breakage(
        rule="what an earlier process had in flight is believed",
        path=f"{LEDGER}/rows.py",
        old="for size in sizes)\n    return replace(row, in_flight=(*old, *row.in_flight)",
        new="for size in sizes)\n    return replace(row, in_flight=row.in_flight",
    ),
    Breakage(
        rule="a report older than the newest changes nothing",
        path=f"{LEDGER}/rows.py",
        old="    if row is not None and asked_at < row.measured_at:\n        return row\n",
        new="",
    ),
    Breakage(
        rule="a size in flight twice is settled by no report",
        path=f"{LEDGER}/rows.py",
        old="told_apart = newest is not None and [s.size for s in row.in_flight].count(newest.size) == 1",
        new="told_apart = True",
    ),
    Breakage(
        rule="sizes in flight are told apart",
        path=f"{LEDGER}/due_offers.py",
        old="        taken = {row.in_force, *(sent.size for sent in row.in_flight[:-1])}\n",
        new="        taken = set()\n",
    ),
    Breakage(
        rule="growth is held",
        path=f"{LEDGER}/growth_delay.py",
        old="        return next(target for at, target in self.targets if at >= now - seconds)\n",
        new="        return self.targets[-1][1]\n",
        tests=EQUAL,
    ),
    Breakage(
        rule="growth comes out of what nobody else may believe",
        path=f"{LEDGER}/node_ledger.py",
        old="    if shared and not unknown:\n        allowed = wanted\n",
        new="    if not unknown:\n        allowed = wanted\n",
        tests=ALONE,
    ),
    Breakage(
        rule="nothing grows while a row of before is awaited",
        path=f"{LEDGER}/node_ledger.py",
        old="    unknown = awaited or any(",
        new="    unknown = any(",
        tests=ALONE,
    ),
    Breakage(
        rule="what is believed is rounded up to units before something grows beside it",
        path=f"{LEDGER}/sharing.py",
        old="kept = [-(-belief // unit) * unit for belief, unit in zip(beliefs, units, strict=True)]",
        new="kept = [belief // unit * unit for belief, unit in zip(beliefs, units, strict=True)]",
        tests=ALONE,
    ),
    Breakage(
        rule="nobody gets less than the floor",
        path=f"{LEDGER}/node_ledger.py",
        old="max(size, floor), size < want",
        new="size, size < want",
        tests=ALONE,
    ),
    Breakage(
        rule="nothing grows while the memory is unknown",
        path="core/src/fallow_core/planner/nodes.py",
        old="_without_growth(due, counted) if state.memory_unknown else due",
        new="due",
        tests=UNKNOWN,
    ),
    Breakage(
        rule="a size found while the memory is unknown is not the one found first",
        path="core/src/fallow_core/planner/state.py",
        old="{} if self.memory_unknown else self.memory.originals",
        new="self.memory.originals",
        tests="core/tests/test_lost_state.py",
    ),
    Breakage(
        rule="nothing grows on an old sample or report",
        path=f"{LEDGER}/node_ledger.py",
        old="        if seconds >= inputs.publishing.degrade_after_seconds:\n",
        new="        if seconds >= inputs.publishing.withdraw_after_seconds:\n",
        tests=ALONE,
    ),
    Breakage(
        rule="in columns: what schedulers may promise too much falls at once",
        path=f"{LEDGER}/fleet/due_offers.py",
        old="            why = TOO_LARGE if side.falls[s, i] else why\n",
        new="            why = NOT_DUE if side.falls[s, i] else why\n",
        tests=EQUAL,
    ),
    Breakage(
        rule="the blast radius bounds what is taken back",
        path=f"{LEDGER}/blast_radius.py",
        old="    return max(most - lately, 0)\n",
        new="    return max(most, 1 << 60)\n",
        tests=TAKING_BACK,
    ),
    Breakage(
        rule="application masters are never taken back",
        path=f"{LEDGER}/take_back.py",
        old="max(entry.allocated - over, situation.masters, entry.allocated - allowed)",
        new="max(entry.allocated - over, entry.allocated - allowed)",
        tests=TAKING_BACK,
    ),
    Breakage(
        rule="what was there at first is adopted",
        path=f"{LEDGER}/take_back.py",
        old="    if not state.fitted:\n",
        new="    if now < 0:\n",
        tests=TAKING_BACK,
    ),
    Breakage(
        rule="an update that is no take-back moves a stored deadline far away",
        path="plugins/yarn/src/fallow_yarn/rm/admin.py",
        old="FAR_TIMEOUT_MS: Final = MAX_INT32\n",
        new="FAR_TIMEOUT_MS: Final = -1\n",
        tests="plugins/yarn/tests/test_publishing_publisher.py",
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Break, test, show; 1 if a break was not found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only rules with this word")
    only = parser.parse_args(argv).only
    found = [_shown(breakage) for breakage in BREAKAGES if only in breakage.rule]
    return 0 if all(found) else 1


def _shown(breakage: Breakage) -> bool:
    """Try one break, and print what found it."""
    began = time.monotonic()
    problem = breakage.problem(ROOT)
    by = "" if problem else found_by(breakage)
    print(f"{'found' if by else 'NOT FOUND':9}  {time.monotonic() - began:4.0f} s  {breakage.rule}", flush=True)
    print(f"{'':19}{by or problem or breakage.tests}", flush=True)
    return bool(by)


def found_by(breakage: Breakage) -> str:
    """The test that fails in a broken copy of the tree, with its first words; empty if none does."""
    with tempfile.TemporaryDirectory(prefix="fallow-breakage-") as folder:
        root = Path(folder)
        for name in ("hookspecs", "core", "plugins", "tests"):
            shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        for name in ("conftest.py", "pyproject.toml"):
            shutil.copy(ROOT / name, root / name)
        with (root / "conftest.py").open("a") as conftest:
            conftest.write(NO_SHRINKING)
        breakage.apply(root)
        sources = [str(root), *(str(root / name / "src") for name in ("hookspecs", "core", "plugins/yarn"))]
        environment = {**os.environ, "CI": "true", "PYTHONPATH": os.pathsep.join(sources)}
        command = [sys.executable, "-m", "pytest", "-xq", "-p", "no:cacheprovider", breakage.tests]
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):  # neither passed nor failed
            raise SystemExit(f"{breakage.rule}: {' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        failed = re.search(r"^FAILED [^:\n]*::(.*)$", done.stdout, re.MULTILINE)
        return failed[1][:200] if failed else ""


if __name__ == "__main__":
    sys.exit(main())
