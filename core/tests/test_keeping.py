import logging
from types import SimpleNamespace
from typing import cast

import pytest

from fallow_core.controller.keeping import Keeping
from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import AccountPolicy, KeepLargest
from fallow_core.plugins.session import ClusterSession
from fallow_hookspecs import NodeState, Pending, Resources

KEY = RowKey("n1", "yarn/a", "n1")
FALL = DueOffer(key=KEY, size=Resources(1, 10), urgent=True, why="")
OTHER = DueOffer(key=RowKey("n1", "yarn/b", "n1"), size=Resources(1, 10), urgent=True, why="")


def cluster(keep: KeepLargest, largest: Resources | None) -> ClusterSession:
    row = Row(
        key=KEY,
        state=NodeState.RUNNING,
        unit=Resources(1, 1),
        floor=Resources(0, 0),
        allocated=Resources(0, 0),
        measured_at=0,
        in_force=Resources(8, 80),
    )
    pending = None if largest is None else Pending(total=largest, largest=largest)
    policy = AccountPolicy(keep_largest=keep)
    return cast(
        ClusterSession, SimpleNamespace(rows={KEY: row}, policy=policy, pending=pending, largest_elsewhere=None)
    )


def test_a_warning_is_said_once_and_again_after_it_had_gone(caplog: pytest.LogCaptureFixture) -> None:
    keeping = Keeping()
    with caplog.at_level(logging.WARNING, "fallow.keep_largest"):
        for waits in (True, True, False, True):
            largest = Resources(4, 40) if waits else None
            assert keeping.step([FALL], {"yarn/a": cluster(KeepLargest.WARN, largest)}, []) == [FALL]
    assert len(caplog.records) == 2


def test_a_node_is_held_for_its_own_cluster_alone() -> None:
    none = cast(ClusterSession, SimpleNamespace(rows={}, policy=AccountPolicy(), pending=None, largest_elsewhere=None))
    clusters = {"yarn/a": cluster(KeepLargest.KEEP, Resources(4, 40)), "yarn/b": none}
    found = Keeping().step([FALL, OTHER], clusters, [])
    assert [(d.key.cluster, d.size) for d in found] == [("yarn/a", Resources(4, 40)), ("yarn/b", Resources(1, 10))]
