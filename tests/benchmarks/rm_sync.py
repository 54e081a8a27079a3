"""What Fallow costs a ResourceManager with thousands of nodes: a real one, the NodeManagers are simulated.

    tox -e bench -- rm_sync [--nodes 5000] [--pairs 5] [--only pairs quiet day order memory]

pairs   all sizes changed, by Fallow and by a connection and call a node, in turn
quiet   nodes that nobody changes are read back
day     a day of noisy load: what Fallow sends against sending every change
order   all sizes changed in different orders and portions
memory  the plugin's memory, with twice as many nodes

The ResourceManager is Hadoop 3.5.0 without asynchronous scheduling. Wall-clock times are those of this machine now:
compare within a run.
"""

import argparse
import os
import tempfile
from pathlib import Path

from tests.benchmarks.fleet import day, memory, order, pairs, quiet, replay
from tests.benchmarks.fleet.cluster import Fleet
from tests.e2e.yarn.jars import cache_folder, fetch

RELEASE = "3.5.0"
PARTS = ("pairs", "quiet", "day", "order", "memory")


def main() -> None:
    """Run the parts that are asked for, on one cluster; memory has a larger one of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--day-nodes", type=int, default=6, help="nodes whose day is simulated; the others have it too")
    given = parser.parse_args()
    jars = fetch(RELEASE, cache_folder())
    print(f"load of this machine: {os.getloadavg()[0]:.1f} with {os.cpu_count()} CPUs")
    days = day.simulate(given.day_nodes) if "day" in given.only else None
    with tempfile.TemporaryDirectory(prefix="rm-sync-") as folder:
        if set(given.only) - {"memory"}:
            with Fleet(jars, Path(folder) / "cluster", given.nodes) as fleet:
                if "pairs" in given.only:
                    pairs.run(fleet, given.pairs)
                if "quiet" in given.only:
                    quiet.run(fleet, given.pairs)
                if days is not None:
                    replay.run(fleet, days)
                if "order" in given.only:
                    order.run(fleet, given.pairs)
        if "memory" in given.only:
            with Fleet(jars, Path(folder) / "large", 2 * given.nodes, containers_each=0) as fleet:
                memory.run(fleet)


if __name__ == "__main__":
    main()
