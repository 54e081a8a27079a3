from fallow_core.ledger.due_offers import DueOffer
from fallow_core.ledger.rows import Row, RowKey
from fallow_core.model.policy import AccountPolicy, KeepLargest
from fallow_core.planner.largest_node import guard
from fallow_core.planner.observations import ClusterObservation
from fallow_core.planner.state import ClusterState
from fallow_hookspecs import NodeState, Pending, Resources

KEY = RowKey("n1", "yarn/a", "n1")
SHRINK = DueOffer(key=KEY, size=Resources(1, 10), urgent=True, why="")


def cluster(keep: KeepLargest, largest: Resources | None) -> ClusterObservation:
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
    return ClusterObservation(policy=policy, rows={KEY: row}, changed=(), reported=True, pending=pending)


def test_a_warning_is_said_once_and_again_after_it_had_gone() -> None:
    state, told = ClusterState(), []
    for waits in (True, True, False, True):
        largest = Resources(4, 40) if waits else None
        due, events = guard("yarn/a", state, cluster(KeepLargest.WARN, largest), [SHRINK])
        assert due == (SHRINK,)
        told += [event.name for event in events]
    assert told == ["largest_node"] * 2


def test_a_node_keeps_its_size_for_its_own_cluster() -> None:
    due, _ = guard("yarn/a", ClusterState(), cluster(KeepLargest.KEEP, Resources(4, 40)), [SHRINK])
    assert [d.size for d in due] == [Resources(4, 40)]
