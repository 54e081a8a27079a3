"""What take-back costs batch, and how closely sizes follow a load, on a real ResourceManager and NodeManager.

- `oscillation`: a load that takes memory and gives it back. Work lost and charged, with take-back and with signals.
- `ramp`: online memory rises and falls at 100 MB/s while containers come and go. How long sizes are above what they
  should be, containers that start on an overdrawn node, and the warning of those that are ended.
- `kills`: the same while the ResourceManager is killed every 20 s.

    tox -e bench -- take_back [--only ramp] [--seconds 600] [--base SOURCE_TREE]

With `--base`, which may be repeated, Fallow of that source tree is measured too. The aims hold for this one alone.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.fleet import table
from tests.benchmarks.take_back import oscillation, ramp, report
from tests.benchmarks.take_back.load import LENT_MB
from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.jars import Jars, cache_folder, fetch

RELEASE = "3.5.0"
Columns = dict[str, Mapping[str, object]]
SCENARIOS = ("oscillation", "ramp", "kills")
SOURCES = (".", "core/src", "hookspecs/src", "plugins/yarn/src")
SETUP = Setup(
    memory_mb=LENT_MB,
    vcores=100,
    heartbeat_ms=1000,
    capacity={"resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"},
)


@contextmanager
def source_tree(tree: Path | None) -> Iterator[None]:
    """Start Fallow from the sources below this folder; without one, from those of this process."""
    before = os.environ.get("PYTHONPATH")
    if tree is not None:
        os.environ["PYTHONPATH"] = os.pathsep.join(str((tree / each).resolve()) for each in SOURCES)
    try:
        yield
    finally:
        os.environ.pop("PYTHONPATH", None)
        if before is not None:
            os.environ["PYTHONPATH"] = before


def measure(scenario: str, folder: Path, jars: Jars, options: argparse.Namespace) -> tuple[Columns, list[str]]:
    """Run one scenario with each source tree: the measures by tree and variant, and the aims that this tree missed."""
    columns: Columns = {}
    missed: list[str] = []
    trees: dict[str, Path | None] = {tree.resolve().name: tree for tree in options.base}
    for name, tree in (trees | {"this": None}).items():
        for variant, settings in oscillation.VARIANTS.items() if scenario == "oscillation" else [("", {})]:
            label = f"{name} {variant}".strip()
            home = folder / label.replace(" ", "-")
            with source_tree(tree), Cluster(jars, home / "yarn", SETUP) as cluster:
                if scenario == "oscillation":
                    columns[label] = oscillation.run(cluster, home, settings, options.seconds, options.period)
                    continue
                kills = scenario == "kills"
                run = ramp.run(cluster, home, options.seconds, options.blast_percent, kills=kills)
            columns[label] = report.measures(run)
            missed += [] if tree else report.missed(run, kills=kills)
    return columns, missed


def main() -> None:
    """Run the scenarios, each on a cluster of its own, and print a table of each; exit with 1 if an aim is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=SCENARIOS, action="append", help="may be repeated; all without it")
    parser.add_argument("--seconds", type=float, default=600, help="of each run")
    parser.add_argument("--period", type=float, default=150, help="seconds of one oscillation")
    parser.add_argument("--blast-percent", type=int, default=5, help="the blast radius of ramp and kills")
    parser.add_argument("--base", type=Path, action="append", default=[], help="a source tree to compare with")
    parser.add_argument("--keep", type=Path, help="a new folder for logs and samples, which are removed without it")
    options = parser.parse_args()
    jars = fetch(RELEASE, cache_folder())
    all_missed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        for scenario in options.only or SCENARIOS:
            columns, missed = measure(scenario, (options.keep or Path(work)) / scenario, jars, options)
            names = next(iter(columns.values()))
            rows = [[name, *(column[name] for column in columns.values())] for name in names]
            table.show(f"{scenario}, {options.seconds:.0f} s", ["", *columns], rows)
            all_missed += [f"{scenario}: {each}" for each in missed]
    if all_missed:
        sys.exit("\n".join(["", "missed:", *all_missed]))


if __name__ == "__main__":
    main()
