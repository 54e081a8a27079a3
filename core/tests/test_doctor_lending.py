from core.tests.fake_framework import CAPACITY, size
from core.tests.fake_standalone import FakeHost

from fallow_core.diagnostics import lending
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import NodePolicy, ResourcePolicy
from fallow_hookspecs import Finding, Node, ResourceName

HALF = NodePolicies(
    default=NodePolicy(cpu=ResourcePolicy(watermark_percent=50), memory=ResourcePolicy(watermark_percent=50))
)


def found(host: FakeHost, policies: NodePolicies = HALF, **batch_used: int) -> dict[str, Finding]:
    names: dict[ResourceName, int] = {"cpu": batch_used.get("cpu", 0), "memory": batch_used.get("memory", 0)}
    measured = lending.measured(policies, Node(name="n1"), names, host, lambda _: None)
    return {each.subject: each for each in lending.findings(measured)}


def busy(shares_of_ten: int) -> FakeHost:
    host = FakeHost()
    host.used = size(shares_of_ten)
    return host


def test_the_sizes_of_this_test_are_tenths_of_the_host() -> None:
    assert size(10) == CAPACITY


def test_a_host_below_its_watermark_can_lend() -> None:
    cpu = found(busy(3))["CPU to lend"]
    assert (cpu.ok, cpu.detail) == (
        True,
        "20 % of this host can be lent; the watermark is 50 %, use besides batch is 30 %",
    )


def test_a_host_above_its_watermark_is_told_what_to_set() -> None:
    memory = found(busy(7))["memory to lend"]
    why = "nothing, because of the watermark alone: the watermark is 50 %, use besides batch is 70 %"
    assert (memory.ok, memory.detail) == (None, why)
    assert memory.advice == "to lend now, set capacity.memory.watermark above 70% for this node, its pool, or all nodes"


def test_use_by_batch_is_no_reason() -> None:
    assert found(busy(7), cpu=CAPACITY.cpu_milli * 4 // 10)["CPU to lend"].ok is True


def test_a_full_host_lends_nothing_whatever_its_watermark() -> None:
    cpu = found(busy(10))["CPU to lend"]
    assert (cpu.ok, cpu.detail) == (None, "nothing: use and reservations take 100 % of this host")


def test_a_resource_that_cannot_be_measured_is_not_known() -> None:
    host = busy(1)
    host.lacks = {"cpu": "no counters"}
    assert found(host)["CPU to lend"].detail == "not known: no counters"


def test_plugins_are_told_what_can_be_lent_by_the_policy_of_the_host() -> None:
    host = busy(3)
    assert lending.amounts(lending.measured(HALF, Node(name="n1"), {}, host, lambda _: None)) == size(2)
    host.lacks = {"cpu": "no counters"}
    assert lending.amounts(lending.measured(HALF, Node(name="n1"), {}, host, lambda _: None)) is None
