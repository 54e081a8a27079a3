"""The ResourceManager is killed and changed over under load: what happened is recorded, and judged by a model."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.yarn.application import containers_ended
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn.sizes import SETUP
from tests.e2e.yarn_ha import failovers
from tests.e2e.yarn_ha.history import Disturbed, InForce, Sent
from tests.e2e.yarn_ha.model import complaints
from tests.e2e.yarn_ha.pair import Pair


@pytest.fixture
def pair(hadoop_jars: Jars, tmp_path: Path) -> Iterator[Pair]:
    with Pair(hadoop_jars, tmp_path / "cluster", SETUP) as pair:
        yield pair


@pytest.mark.timeout(400, func_only=True)  # the first fixture may fetch jars
def test_after_kills_and_failovers_under_load_sizes_are_right_in_time_and_nothing_was_ended(
    pair: Pair, tmp_path: Path
) -> None:
    apps = failovers.start_load(pair)
    with failovers.fallow_beside(pair, tmp_path / "fallow") as fallow:
        history = failovers.disturb(pair, fallow, apps, failovers.changes(pair, 2))
    kinds = {type(fact) for fact in history}
    assert kinds >= {Disturbed, InForce, Sent}
    assert len(containers_ended(apps[1])) > 5, "there was no load"
    found = complaints(history, failovers.RULES)
    assert found == [], "\n".join(found)
