"""What is tried of `kill_tasks`."""

import time

import pytest

from fallow_hookspecs.tasks import KillAnswer, KillOrder, KillOutcome, KillResult
from fallow_hookspecs.testing.base import Suite, tries
from fallow_hookspecs.testing.calling import Called, wait_until
from fallow_hookspecs.testing.framework import Framework

REASON = "conformance 7f3a: the services need it"
WITH_A_REASON = {KillResult.SPARED, KillResult.NO_ACCESS, KillResult.FAILED}


class KillSuite(Suite):
    """The clauses `kill.*`."""

    @tries("call.shape")
    def test_an_outcome_has_the_types_of_the_contract(self, ready: Framework, called: Called) -> None:
        called.kill(ready.nodes[0], _order(*ready.start_tasks(1)))  # the answer is compared with the contract

    @tries("kill.one-answer")
    def test_each_task_has_one_answer(self, ready: Framework, called: Called) -> None:
        (runs,), (gone,) = ready.start_tasks(1), _gone(ready)
        for tasks in ((), (runs,), (gone, runs)):
            assert called.kill(ready.nodes[0], _order(*tasks)).answers.keys() == set(tasks)

    @tries("kill.only-these")
    def test_no_other_task_is_ended(self, ready: Framework, called: Called) -> None:
        victim, *others = ready.start_tasks(3)
        self._end(ready, called, victim)
        time.sleep(ready.settle_seconds)
        assert set(others) <= ready.tasks(), f"{set(others) - ready.tasks()} ended with {victim}"

    @tries("kill.ends")
    def test_a_task_ends_when_it_is_to_end_now(self, ready: Framework, called: Called) -> None:
        victims = ready.start_tasks(2, stubborn=True)
        self._end(ready, called, *victims)

    @tries("kill.gone")
    def test_a_task_that_has_gone_is_gone_already(self, ready: Framework, called: Called) -> None:
        (gone,) = _gone(ready)
        ready.start_tasks(1)
        for force in (False, True):
            answer = called.kill(ready.nodes[0], _order(gone, force=force)).answers[gone]
            assert answer.result is KillResult.ALREADY_GONE, answer

    @tries("kill.twice")
    def test_asking_twice_is_harmless(self, ready: Framework, called: Called) -> None:
        victim, other = ready.start_tasks(2)
        for _ in range(3):
            answer = called.kill(ready.nodes[0], _order(victim, force=True)).answers[victim]
            _skip_without_access(answer)
            assert answer.result in (KillResult.TERMINATING, KillResult.ALREADY_GONE), answer
        _wait_gone(ready, victim)
        assert other in ready.tasks(), f"{other} ended with {victim}"

    @tries("kill.spoils-no-other")
    def test_one_that_cannot_be_ended_spoils_no_other(self, ready: Framework, called: Called) -> None:
        (gone,) = _gone(ready)
        (victim,) = ready.start_tasks(1)
        answers = called.kill(ready.nodes[0], _order("no-such-task", gone, victim, force=True)).answers
        _skip_without_access(answers[victim])
        assert answers[victim].result is KillResult.TERMINATING, answers
        _wait_gone(ready, victim)

    @tries("kill.at-once")
    def test_nobody_waits_for_the_end(self, ready: Framework, called: Called) -> None:
        (victim,) = ready.start_tasks(1, stubborn=True)
        answer = called.kill(ready.nodes[0], _order(victim)).answers[victim]  # given up on when it is overdue
        if answer.result is KillResult.TERMINATING:
            assert victim in ready.tasks(), "it was stubborn, and had gone when the answer came"

    @tries("kill.gracefully")
    def test_without_force_a_task_has_time(self, ready: Framework, called: Called) -> None:
        (victim,) = ready.start_tasks(1, stubborn=True)
        answer = called.kill(ready.nodes[0], _order(victim)).answers[victim]
        _skip_without_access(answer)
        time.sleep(ready.settle_seconds)
        assert victim in ready.tasks(), f"it was not to be forced, and has gone: {answer}"

    @tries("kill.why")
    def test_who_is_not_ended_is_told_why(self, ready: Framework, called: Called) -> None:
        (task,) = ready.start_tasks(1)
        ready.protect(task)
        for force in (False, True):
            answer = called.kill(ready.nodes[0], _order(task, force=force)).answers[task]
            assert answer.result in WITH_A_REASON, f"it cannot be terminated: {answer}"
            assert answer.reason, f"no reason: {answer}"
        time.sleep(ready.settle_seconds)
        assert task in ready.tasks(), "it was not to be terminated, and has gone"

    @tries("kill.reason")
    def test_the_reason_reaches_the_user(self, ready: Framework, called: Called) -> None:
        (victim,) = ready.start_tasks(1)
        ready.told(victim)
        self._end(ready, called, victim)
        assert REASON in ready.told(victim), f"told is {ready.told(victim)!r}"

    @tries("kill.evict")
    def test_eviction_is_for_pods(self, ready: Framework, called: Called) -> None:
        ready.start_tasks(1)
        for task in called.list_tasks(ready.nodes[0]).tasks:
            answer = called.kill(ready.nodes[0], _order(task.id)).answers[task.id]
            assert answer.result is not KillResult.EVICT or task.pod_uid, f"it is no pod: {task}"

    @staticmethod
    def _end(ready: Framework, called: Called, *task_ids: str) -> KillOutcome:
        outcome = called.kill(ready.nodes[0], _order(*task_ids, force=True))
        for task_id in task_ids:
            _skip_without_access(outcome.answers[task_id])
            assert outcome.answers[task_id].result in (KillResult.TERMINATING, KillResult.ALREADY_GONE), outcome
        _wait_gone(ready, *task_ids)
        return outcome


def _order(*task_ids: str, force: bool = False) -> KillOrder:
    return KillOrder(task_ids=task_ids, reason=REASON, force=force)


def _gone(framework: Framework) -> tuple[str, ...]:
    tasks = framework.start_tasks(1)
    framework.finish(tasks)
    return tasks


def _wait_gone(framework: Framework, *task_ids: str) -> None:
    wait_until(
        lambda: framework.tasks().isdisjoint(task_ids), framework.patience_seconds, f"{task_ids} hold nothing any more"
    )


def _skip_without_access(answer: KillAnswer) -> None:
    if answer.result is KillResult.NO_ACCESS:
        pytest.skip(f"no access from here: {answer.reason}")
