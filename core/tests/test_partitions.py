from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from core.tests.fake_framework import NODE, World, size

from fallow_core.api.explain import run_explanation
from fallow_core.cli.render_explain import explanation_lines
from fallow_core.ledger.partitions import elsewhere, servable
from fallow_core.ledger.rows import ZERO, Row, RowKey
from fallow_hookspecs import CapacityReport, NodeState, Pending, Resources

ALL, NOTHING = Pending(total=size(9)), Pending(total=ZERO)
PARTS = {
    "": Pending(total=size(6), smallest=Resources(1, 9), largest=size(4), detail="of ada"),
    "gpu": Pending(total=size(3), smallest=Resources(2, 8), largest=size(5), detail="of eve"),
}


def row(*partitions: str) -> Row:
    return Row(
        key=RowKey("n1", "yarn/a", f"nm:{len(partitions)}"),
        state=NodeState.RUNNING,
        unit=size(1),
        floor=ZERO,
        allocated=ZERO,
        measured_at=0,
        partitions=partitions,
    )


def test_a_node_serves_what_is_pending_in_its_partition_alone() -> None:
    assert servable(ALL, PARTS, [row("gpu")]) == PARTS["gpu"]
    assert elsewhere(ALL, PARTS["gpu"]) == size(6)


def test_a_node_of_several_partitions_serves_the_sum_of_them() -> None:
    assert servable(ALL, PARTS, [row("gpu", "")]) == Pending(
        total=size(9), smallest=Resources(1, 8), largest=size(5), detail="of ada, of eve"
    )


def test_a_smallest_request_that_is_unknown_in_one_partition_is_unknown() -> None:
    parts = PARTS | {"gpu": Pending(total=size(3))}
    found = servable(ALL, parts, [row("gpu", "")])
    assert found is not None
    assert (found.smallest, found.largest) == (None, None)
    found = servable(ALL, PARTS | {"gpu": NOTHING}, [row("gpu", "")])
    assert found is not None
    assert found.smallest == PARTS[""].smallest, "where nothing waits there is no unknown request"


def test_a_row_without_partitions_serves_everything() -> None:
    assert servable(ALL, PARTS, [row()]) == ALL
    assert servable(ALL, PARTS, [row("gpu"), row()]) == ALL
    assert servable(ALL, PARTS, []) == ALL


def test_a_partition_that_is_missing_is_unknown() -> None:
    assert servable(ALL, {"": NOTHING}, [row("gpu")]) is None
    assert elsewhere(ALL, None) == ZERO


@pytest.fixture
def labelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A cluster whose pending requests are for the default partition, and whose node here has a label; and another."""
    return World(tmp_path, monkeypatch, a={"a1": size(2)}, b={"b1": size(2)})


def reports(world: World, cluster: str, pending: Pending, by_partition: Mapping[str, Pending], *names: str) -> None:
    def spoil(report: CapacityReport) -> CapacityReport:
        rows = tuple(replace(row, partitions=names) for row in report.rows)
        return replace(report, rows=rows, pending=pending, pending_by_partition=by_partition)

    world.frameworks[cluster].spoils = spoil


def test_what_a_labelled_node_cannot_serve_is_no_demand_for_it(labelled: World) -> None:
    reports(labelled, "a", ALL, {"": ALL, "gpu": NOTHING}, "gpu")
    reports(labelled, "b", ALL, {})
    labelled.run(3)
    accounts = {a.cluster: a for a in labelled.controller.ledgers[NODE.name].memory.accounts}
    assert (accounts["alpha/a"].pending, accounts["alpha/b"].pending) == (0, size(9).memory_bytes)
    assert accounts["alpha/b"].fair > accounts["alpha/a"].fair
    reports(labelled, "a", ALL, {"": NOTHING, "gpu": ALL}, "gpu")
    labelled.run(12)
    accounts = {a.cluster: a for a in labelled.controller.ledgers[NODE.name].memory.accounts}
    assert accounts["alpha/a"].fair == accounts["alpha/b"].fair


def test_explain_says_what_a_labelled_node_cannot_serve(labelled: World) -> None:
    reports(labelled, "a", ALL, {"": ALL, "gpu": NOTHING}, "gpu")
    labelled.run(3)
    answer = run_explanation(labelled.controller, NODE.name, labelled.now, (), None)
    text = " ".join(" ".join(explanation_lines(answer)).split())
    assert "alpha/a has pending for gpu CPU, cores: 0.00, memory, GiB: 0.00" in text
    assert "this node cannot serve what is pending for other partitions: CPU, cores: 9.00, memory, GiB: 9.00" in text
