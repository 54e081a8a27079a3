"""What is tried of `report_capacity` as the call that carries out offers."""

import time
from dataclasses import replace

import pytest

from fallow_hookspecs.capacity import (
    RESOURCE_NAMES,
    CapacityReport,
    NodeState,
    Offer,
    OfferAnswer,
    Refusal,
    ReportRow,
    Resources,
)
from fallow_hookspecs.testing.base import Suite, first_row, offer_of, rows_of, smaller_by, tries, wait_for_size
from fallow_hookspecs.testing.calling import Called, wait_until
from fallow_hookspecs.testing.framework import Framework

NO_SUCH_NODE = "no-such-node:1"


class OfferSuite(Suite):
    """The clauses `offer.*`."""

    @tries("call.shape")
    def test_answers_have_the_types_of_the_contract(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        called.publish(ready.nodes, (offer_of(row, _size(ready, row)),))  # the answer is compared with the contract

    @tries("offer.one-answer")
    def test_each_offer_has_one_answer(self, ready: Framework, called: Called) -> None:
        rows = rows_of(called, ready)
        offers = [offer_of(row, smaller_by(_size(ready, row), 1, row)) for row in rows.values()]
        offers.append(Offer(node=ready.nodes[0].name, framework_node=NO_SUCH_NODE, total=offers[0].total))
        answers = called.publish(ready.nodes, tuple(offers)).answers
        given = sorted((answer.node, answer.framework_node) for answer in answers)
        assert given == sorted((offer.node, offer.framework_node) for offer in offers)

    @tries("offer.in-force")
    def test_what_is_accepted_comes_into_force(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        for units in (1, 0):
            accepted = _accepted(called, ready, offer_of(row, smaller_by(_size(ready, row), units, row)))
            wait_for_size(ready, row.framework_node, accepted)
            _wait_reported(called, ready, row.framework_node, accepted)

    @tries("offer.not-above")
    def test_no_more_is_accepted_than_offered(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        total = _between_units(ready, row)
        accepted = _accepted(called, ready, offer_of(row, total))
        assert accepted.cpu_milli <= total.cpu_milli, f"{accepted} of {total}"
        assert accepted.memory_bytes <= total.memory_bytes, f"{accepted} of {total}"

    @tries("offer.why-other")
    def test_another_size_has_a_reason(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        offer = offer_of(row, _between_units(ready, row))
        answer = _only(called.publish(ready.nodes, (offer,)))
        assert answer.accepted == offer.total or answer.reason, f"no reason why it is not {offer.total}: {answer}"

    @tries("offer.why-refused")
    def test_an_offer_is_accepted_or_refused_with_a_reason(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        good = offer_of(row, _size(ready, row))
        for offer in (good, replace(good, framework_node=NO_SUCH_NODE), replace(good, total=Resources(-1, -1))):
            answer = _only(called.publish(ready.nodes, (offer,)))
            assert (answer.accepted is None) == (answer.refusal is not None), f"neither this nor that: {answer}"
            assert answer.accepted is not None or answer.reason, f"refused without a reason: {answer}"

    @tries("offer.unknown-node")
    def test_an_unknown_node_is_refused(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        offer = replace(offer_of(row, _size(ready, row)), framework_node=NO_SUCH_NODE)
        answer = _only(called.publish(ready.nodes, (offer,)))
        assert answer.refusal is Refusal.UNKNOWN_NODE, answer

    @tries("offer.bad-value")
    def test_a_size_that_cannot_be_is_refused(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        before = _size(ready, row)
        answer = _only(called.publish(ready.nodes, (offer_of(row, Resources(-1000, -(1 << 30))),)))
        assert answer.refusal is Refusal.BAD_VALUE, answer
        time.sleep(ready.settle_seconds)
        assert _size(ready, row) == before, "it was refused and carried out"

    @tries("offer.spoils-no-other")
    def test_a_bad_offer_spoils_no_other(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        good = offer_of(row, smaller_by(_size(ready, row), 1, row))
        answers = called.publish(ready.nodes, (replace(good, framework_node=NO_SUCH_NODE), good)).answers
        assert [each.accepted for each in answers if each.framework_node == row.framework_node] == [good.total], answers
        wait_for_size(ready, row.framework_node, good.total)

    @tries("offer.repeat")
    def test_repeating_is_harmless(self, ready: Framework, called: Called) -> None:
        tasks = ready.start_tasks(1)
        row = first_row(called, ready)
        offer = offer_of(row, smaller_by(_size(ready, row), 1, row))
        first = _only(called.publish(ready.nodes, (offer,)))
        wait_for_size(ready, row.framework_node, offer.total)
        for _ in range(3):
            assert _only(called.publish(ready.nodes, (offer,))) == first, "it is answered in another way"
        time.sleep(ready.settle_seconds)
        assert _size(ready, row) == offer.total, "another size is in force"
        assert set(tasks) <= ready.tasks(), "a task has ended"

    @tries("offer.ends-nothing")
    def test_an_offer_below_what_is_allocated_ends_nothing(self, ready: Framework, called: Called) -> None:
        tasks = ready.start_tasks(2)
        row = first_row(called, ready)
        accepted = _accepted(called, ready, offer_of(row, row.floor))
        wait_for_size(ready, row.framework_node, accepted)
        time.sleep(ready.settle_seconds)
        assert set(tasks) <= ready.tasks(), f"of {tasks} only {set(tasks) & ready.tasks()} are left"
        allocated = rows_of(called, ready)[row.framework_node].allocated
        assert allocated == ready.allocated()[row.framework_node], f"{ready.allocated()} are allocated, not {allocated}"

    @tries("offer.floor")
    def test_a_node_is_kept_at_its_floor(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        assert _accepted(called, ready, offer_of(row, row.floor)) == row.floor
        wait_for_size(ready, row.framework_node, row.floor)
        time.sleep(ready.settle_seconds)
        assert rows_of(called, ready)[row.framework_node].state is NodeState.RUNNING

    @tries("offer.take-back")
    def test_work_is_taken_back_as_far_as_an_offer_says(self, ready: Framework, called: Called) -> None:
        _, offer = self._take_back(ready, called)
        self._taken_back(ready, called, offer)

    @tries("offer.no-further")
    def test_what_is_above_the_offer_and_not_taken_back_goes_on(self, ready: Framework, called: Called) -> None:
        tasks, offer = self._take_back(ready, called)
        row = first_row(called, ready)
        self._taken_back(ready, called, replace(offer, total=row.floor))
        time.sleep(ready.settle_seconds)
        left = set(tasks) & ready.tasks()
        assert len(left) == len(tasks) - 1, f"one of {tasks} had to go, and {left} are left"

    @tries("offer.no-take-back")
    def test_what_it_does_not_take_back_is_refused(self, ready: Framework, called: Called) -> None:
        row = first_row(called, ready)
        capabilities = called.report(ready.nodes).capabilities
        offer = offer_of(row, _size(ready, row))
        asked = 0
        for name in RESOURCE_NAMES:
            if not (capabilities.cpu if name == "cpu" else capabilities.memory).takes_back:
                asked += 1
                taking = replace(offer, take_back={name: offer.total.amount(name)})
                answer = _only(called.publish(ready.nodes, (taking,)))
                assert answer.accepted is None, f"it does not take back {name}, and accepts to: {answer}"
        if not asked:
            pytest.skip("it takes back both resources")

    @staticmethod
    def _take_back(ready: Framework, called: Called) -> tuple[tuple[str, ...], Offer]:
        """Tasks that run, and an offer that takes the last one back, in memory."""
        if not called.report(ready.nodes).capabilities.memory.takes_back:
            pytest.skip("it says that it does not take back memory")
        tasks = ready.start_tasks(2)
        row = first_row(called, ready)
        allocated = ready.allocated()[row.framework_node].memory_bytes
        memory = (allocated - 1) // row.unit.memory_bytes * row.unit.memory_bytes
        total = Resources(_size(ready, row).cpu_milli, memory)
        return tasks, replace(offer_of(row, total), take_back={"memory": memory})

    @staticmethod
    def _taken_back(ready: Framework, called: Called, offer: Offer) -> None:
        _accepted(called, ready, offer)
        most = offer.take_back["memory"]
        wait_until(
            lambda: ready.allocated()[offer.framework_node].memory_bytes <= most,
            ready.patience_seconds,
            f"no more memory is allocated than {most}",
        )


def _size(framework: Framework, row: ReportRow) -> Resources:
    return framework.sizes()[row.framework_node]


def _between_units(framework: Framework, row: ReportRow) -> Resources:
    """A size that is no whole number of units, unless a unit is the smallest amount there is."""
    lower = smaller_by(_size(framework, row), 1, row)
    return Resources(lower.cpu_milli + row.unit.cpu_milli - 1, lower.memory_bytes + row.unit.memory_bytes - 1)


def _only(report: CapacityReport) -> OfferAnswer:
    assert len(report.answers) == 1, f"one offer, and the answers {report.answers}"
    return report.answers[0]


def _accepted(called: Called, framework: Framework, offer: Offer) -> Resources:
    answer = _only(called.publish(framework.nodes, (offer,)))
    assert answer.accepted is not None, f"{offer} is refused: {answer.refusal}, {answer.reason}"
    return answer.accepted


def _wait_reported(called: Called, framework: Framework, framework_node: str, size: Resources) -> None:
    wait_until(
        lambda: rows_of(called, framework)[framework_node].in_force in (size, None),
        framework.patience_seconds,
        f"the report has {size} in force",
    )
