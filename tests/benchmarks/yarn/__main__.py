"""What HA, Kerberos, many nodes and a ResourceManager that keeps dying cost and do, on real ResourceManagers.

    tox -e bench -- yarn [sync] [quiet] [failovers] [--nodes 5000] [--rounds 5] [--turns 20]

sync       all sizes changed: with HA, and with Kerberos and each message encrypted, against neither
quiet      twice as many nodes that nobody changes, read back: CPU and memory of the plugin, CPU of the ResourceManager
failovers  the active ResourceManager killed and changed over under load: the history, judged by a model

`sync` and `quiet` simulate the NodeManagers (see rm_sync). It ends with 1 if a limit is missed. `sync` needs a Kerberos
server, as `tox -e yarn-kerberos` does; without one it does the rest.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.yarn import failovers, quiet, sync
from tests.e2e.yarn.jars import cache_folder, fetch

RELEASE = "3.5.0"
PARTS = ("sync", "quiet", "failovers")


def main() -> int:
    """Run the parts that are asked for; whether a limit was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", default=PARTS, help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=20, help="kills, and as many failovers")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    jars = fetch(RELEASE, cache_folder())
    print(f"load of this machine: {os.getloadavg()[0]:.1f} with {os.cpu_count()} CPUs")
    missed = []
    with tempfile.TemporaryDirectory(prefix="bench-yarn-") as folder:
        if "sync" in given.parts:
            missed += sync.run(jars, Path(folder), given.nodes, given.rounds)
        if "quiet" in given.parts:
            missed += quiet.run(jars, Path(folder) / "quiet", 2 * given.nodes, given.rounds)
        if "failovers" in given.parts:
            missed += failovers.run(jars, Path(folder) / "failovers", given.turns)
    print(*(f"MISSED: {each}" for each in missed), sep="\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
