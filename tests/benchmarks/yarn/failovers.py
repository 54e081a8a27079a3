"""The active ResourceManager killed and changed over, again and again, under load: the history, judged by a model."""

from collections import Counter
from pathlib import Path

from tests.benchmarks.fleet import table
from tests.e2e.yarn.archives import build_archives
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn.sizes import SETUP
from tests.e2e.yarn_ha import failovers
from tests.e2e.yarn_ha.history import Ended
from tests.e2e.yarn_ha.model import complaints
from tests.e2e.yarn_ha.pair import Pair


def run(jars: Jars, folder: Path, turns: int) -> list[str]:
    """Print what happened in so many kills and as many failovers; what the model has against it."""
    build_archives(jars)
    folder.mkdir()
    with Pair(jars, folder / "cluster", SETUP) as pair:
        apps = failovers.start_load(pair)
        with failovers.fallow_beside(pair, folder / "fallow") as fallow:
            history = failovers.disturb(pair, fallow, apps, failovers.changes(pair, turns))
    kinds = Counter(type(fact).__name__ for fact in history)
    ends = Counter(fact.exit_code for fact in history if isinstance(fact, Ended))
    rows = [[kind, count] for kind, count in sorted(kinds.items())]
    rows += [[f"ended with {code}", count] for code, count in sorted(ends.items())]
    table.show(f"{turns} kills and {turns} failovers", ["fact", "count"], rows)
    return complaints(history, failovers.RULES)
