"""What a process answers is what the types say: nothing more, nothing less, and in their units."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_agent_process import Started
from core.tests.fake_framework import Framework, size
from core.tests.fake_standalone import FakeHost, config, running, standalone, until

from fallow_core.api.control_socket import Peer
from fallow_core.api.encoding import from_json, to_json
from fallow_core.api.explain import Explanation
from fallow_core.api.operations import Adopted, Forgotten, Switched
from fallow_core.api.status import Status, watermark_problem
from fallow_core.api.tasks import Tasks
from fallow_core.errors import ControlError
from fallow_core.ledger.capacity import batch_capacity
from fallow_core.model.policy import ResourcePolicy
from fallow_core.model.sample import Usage
from fallow_core.runtime.standalone import Standalone

ROOT = Peer(uid=0, name="root")
READ: dict[str, type[Any]] = {"status": Status, "explain": Explanation, "tasks": Tasks}


@pytest.fixture
def fallow(tmp_path: Path) -> Iterator[Standalone]:
    framework = Framework(time.monotonic, a1=size(8))
    framework.delay_seconds = 0.05
    host = FakeHost()
    host.used = size(4)
    fallow = standalone(config(tmp_path, {"etl": framework}), host)
    until(fallow, lambda: framework.sizes() == {"a1": size(6)})
    with running(fallow):
        yield fallow
    fallow.close()


@pytest.mark.parametrize("name", READ)
def test_an_answer_of_run_has_exactly_the_fields_of_its_type(fallow: Standalone, name: str) -> None:
    answer = fallow.requests.answer(ROOT, {"request": name})
    assert to_json(from_json(READ[name], answer)) == answer


@pytest.mark.parametrize("name", READ)
def test_an_answer_of_an_agent_has_exactly_the_fields_of_its_type(started: Started, name: str) -> None:
    started.steps(2)
    answer = started.ask(request=name)
    assert to_json(from_json(READ[name], answer)) == answer


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        (Switched, {"request": "switch", "state": "hold", "scope": "etl"}),
        (Adopted, {"request": "adopt", "cluster": "etl"}),
        (Forgotten, {"request": "forget", "cluster": "etl"}),
    ],
)
def test_an_answer_to_a_change_has_exactly_the_fields_of_its_type(
    fallow: Standalone, kind: type[Any], request_: dict[str, str]
) -> None:
    answer = fallow.requests.answer(ROOT, request_)
    assert to_json(from_json(kind, answer)) == answer


def test_a_field_that_a_newer_fallow_adds_is_ignored_and_one_of_another_type_is_a_clear_error() -> None:
    assert from_json(Switched, {"scope": "all", "state": "hold", "new": 1}).scope == "all"
    with pytest.raises(ControlError, match=r"of another version: Expected `str`, got `int` - at `\$.scope`"):
        from_json(Switched, {"scope": 1, "state": "hold"})


# The watermark


def problem(used: int, batch_used: int = 0, reserved: int = 0, cap_percent: int = 100) -> str:
    usage = Usage(measured_at=0, capacity=10_000, used=used, batch_used=batch_used)
    policy = ResourcePolicy(watermark_percent=60, reserved=reserved, cap_percent=cap_percent)
    return watermark_problem("cpu", batch_capacity(usage, policy))


def test_a_node_that_only_the_watermark_keeps_from_lending_says_so() -> None:
    assert problem(6500) == "nothing to lend: 65 % of CPU is in use and the watermark is 60 %"
    assert problem(7500, 1000) == "nothing to lend: 65 % of CPU is in use without batch and the watermark is 60 %"
    reserved = "nothing to lend: 70 % of CPU is in use or reserved and the watermark is 60 %"
    assert problem(100, reserved=7000) == reserved


def test_a_node_that_lends_or_is_full_or_may_lend_nothing_says_nothing_of_the_watermark() -> None:
    assert problem(5900) == ""
    assert problem(10_000) == ""
    assert problem(6500, cap_percent=0) == ""
