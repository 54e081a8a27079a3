"""A cluster under load whose active ResourceManager is killed and changed over, again and again."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from tests.e2e.yarn.application import Application, containers_ended, containers_running
from tests.e2e.yarn.fallow_process import DEAD_BAND_PERCENT, VCORE_MILLI, Fallow
from tests.e2e.yarn.rest import USER, wait_for
from tests.e2e.yarn.sizes import (
    CONTAINER_MB,
    CONTAINERS,
    LENT_MB,
    MASTER_MB,
    RESERVED_CPU_MILLI,
    SECONDS,
    SETUP,
    are_lent,
    wait_for_sizes,
)
from tests.e2e.yarn_ha import idle_host
from tests.e2e.yarn_ha.history import History
from tests.e2e.yarn_ha.model import SEEN_LATE_SECONDS, Rules
from tests.e2e.yarn_ha.pair import Pair
from tests.e2e.yarn_ha.recording import Recorder

INTERVAL_SECONDS = 2
RULES = Rules(interval_seconds=INTERVAL_SECONDS)
SETTLE_SECONDS = 2 * INTERVAL_SECONDS + 2 * SEEN_LATE_SECONDS
FLOORS_MB = (SETUP.node_managers * SETUP.min_mb, SETUP.node_managers * (SETUP.min_mb + 1))
LENT_RANGE_MB = (LENT_MB * 88 // 100, LENT_MB * 112 // 100)
SHORT_TASKS, SHORT_MB = 5000, 256
# The applications never have more than can be lent. A limit takes nothing back: the sizes would follow what they have.
SHORT_AT_ONCE = (LENT_MB - CONTAINERS * CONTAINER_MB - 2 * MASTER_MB) // SHORT_MB

Change = tuple[str, Callable[[], AbstractContextManager[None]]]


@contextmanager
def fallow_beside(pair: Pair, folder: Path) -> Iterator[Fallow]:
    """`fallow run` that knows both by the cluster's own files, and may take back.

    It measures no load of this host: what it lends follows no other program.
    """
    spec = {"hadoopConfDir": str(pair.folder / "client"), "user": USER, "vcoreMilli": VCORE_MILLI}
    fallow = Fallow(folder, {"real": spec}, cpu_reserved_milli=RESERVED_CPU_MILLI, memory_limit_mb=LENT_MB)
    fallow.command = [sys.executable, idle_host.__file__, str(folder)]
    interval = f"{INTERVAL_SECONDS}s"
    fallow.add(
        "fallow.yaml",
        publishing={
            "mode": "enforce",
            "growthDelay": "3s",
            "deadBand": f"{DEAD_BAND_PERCENT}%",
            "interval": interval,
            "reportInterval": interval,
            "inFlight": "10s",
        },
        takeBack={"mode": "enforce", "after": "10s", "notice": "60s"},
    )
    with fallow:
        fallow.start()
        yield fallow


def changes(pair: Pair, turns: int) -> Sequence[Change]:
    """So many kills, and as many failovers, in turn."""
    return [("kill -9", pair.killed), ("failover", pair.failed_over)] * turns


def start_load(pair: Pair) -> tuple[Application, Application]:
    """An application whose containers stay, and one whose containers come and go until the cluster ends."""
    stays = pair.submit(CONTAINERS, CONTAINER_MB, 1, "exec sleep 36000")
    wait_for(lambda: len(containers_running(stays)) == CONTAINERS, 60, "the containers")
    comes_and_goes = pair.submit(SHORT_TASKS, SHORT_MB, 1, "exec sleep 0.5", at_once=SHORT_AT_ONCE)
    wait_for(lambda: containers_ended(comes_and_goes) != [], SECONDS, "the first one to end")
    return stays, comes_and_goes


def disturb(pair: Pair, fallow: Fallow, apps: Sequence[Application], what: Sequence[Change]) -> History:
    """Do all of it, and say what happened.

    At half of the times it is decided right before that nothing is lent any more; at the others what is lent stays.
    """
    with Recorder(pair, fallow) as recorder:
        for turn, (how, change) in enumerate(what):
            lends = turn // 2 % 2 == 0  # both ways to change get both decisions
            fallow.succeed("switch", "lend" if lends else "drain", "real")
            if lends:
                wait_for_sizes(pair, fallow, are_lent, "what can be lent")
            recorder.wanted(*(LENT_RANGE_MB if lends else FLOORS_MB))
            pair.when_down = partial(recorder.disturbed, how)
            with change():
                wait_for(lambda: len(recorder.shown()) == SETUP.node_managers, SECONDS, "the nodes to come back")
                time.sleep(SETTLE_SECONDS)
            print(f"{turn + 1}: {how}, {'lent' if lends else 'drained'}", flush=True)
        return recorder.history(apps)
