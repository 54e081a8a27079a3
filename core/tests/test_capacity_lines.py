from fallow_core.cli.capacity_lines import capacity_lines
from fallow_core.ledger.capacity import batch_capacity
from fallow_core.ledger.online_use import counted
from fallow_core.model.policy import OnlineRule, ResourcePolicy
from fallow_core.model.sample import Usage, Zone
from fallow_core.model.workload import Workload
from fallow_hookspecs import Resources


def lines(usage: Usage, policy: ResourcePolicy, *workloads: Workload) -> str:
    found = batch_capacity(usage, policy, counted(workloads, "cpu", policy.rule, 60.0), daemons=2)
    return "\n".join(capacity_lines("cpu", found, 3.0))


def test_without_pods_and_zones_three_lines_say_it_all() -> None:
    usage = Usage(measured_at=0, capacity=10_000, used=3000, batch_used=1000)
    assert lines(usage, ResourcePolicy(watermark_percent=60)) == (
        "  system  2.00 = the larger of: in use 3.00 − its batch 1.00; reserved 0.00\n"
        "  margin  4.00 = 10.00 × (100 − watermark 60) %\n"
        "  batch   4.00 = 10.00 − margin − system, from 0 to 10.00   (measured 3 s ago)"
    )


def test_pods_zones_reservations_and_the_ratio_are_shown_where_there_are_any() -> None:
    zones = (
        Zone(name="0", capacity=5000, used=3000, batch_used=0),
        Zone(name="1", capacity=5000, used=0, batch_used=0),
    )
    usage = Usage(measured_at=0, capacity=10_000, used=3000, batch_used=0, allocatable=9500, zones=zones)
    policy = ResourcePolicy(watermark_percent=100, rule=OnlineRule.MAX, reserved_per_daemon=300, overcommit_percent=150)
    pod = Workload(name="p", request=Resources(4000, 0), used={"cpu": 2000}, age_seconds=100)
    text = " ".join(lines(usage, policy, pod).split())
    assert "pods and applications 2.00; reserved 0.60 (largest of: allocatable 0.50, daemons 0.60)" in text
    assert "online 4.00 = p 4.00 (max)" in text
    assert "batch 4.70 = 10.00 − margin − system − online, from 0 to 10.00; zone 0 0.00; zone 1 4.70" in text
    assert "promised 7.05 = batch × overcommit 150 %" in text


def test_many_pods_are_not_all_named() -> None:
    usage = Usage(measured_at=0, capacity=100_000, used=0, batch_used=0)
    pods = [Workload(name=f"p{n:02}", request=Resources(100, 0), age_seconds=0) for n in range(25)]
    text = lines(usage, ResourcePolicy(watermark_percent=100), *pods)
    assert "p19 0.10 (not measured), and 5 more" in text.replace("\n      ", " ")


def test_stolen_time_has_a_line_of_its_own_and_is_not_lent() -> None:
    usage = Usage(measured_at=0, capacity=8000, used=4000, batch_used=3000, unusable={"stolen": 2000})
    text = lines(usage, ResourcePolicy(watermark_percent=90))
    assert "  stolen  2.00 = CPU time in which the hypervisor ran something else\n" in text
    assert "  batch   4.20 = 8.00 − margin − system − stolen, from 0 to 8.00" in text
