"""Batch is throttled by this host's kernel as the online load rises, and everything is put back afterwards."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.e2e.host_cgroups.stage import CPUS, Stage, until

from fallow_core.node.cgroups.hierarchy import Hierarchy

pytestmark = pytest.mark.timeout(180)
ENFORCE = {"cpuSuppress": {"mode": "enforce"}, "cgroupReconcile": {"mode": "enforce"}}


def environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def used_cores(stage: Stage, pids: list[int], seconds: float = 2.0) -> float:
    began, before = time.monotonic(), stage.cpu_seconds(pids)
    time.sleep(seconds)
    return (stage.cpu_seconds(pids) - before) / (time.monotonic() - began)


def test_hogs_are_throttled_when_the_online_load_rises_and_all_is_put_back_after_kill_9(
    hierarchy: Hierarchy, tmp_path: Path
) -> None:
    with Stage(hierarchy, tmp_path, **ENFORCE) as stage:
        stage.hogs(2 * CPUS)
        before = stage.control_files()
        stage.start()
        until(lambda: (stage.quota_cores() or 0) > 0.8 * CPUS, "a limit that leaves batch nearly all")
        tasks = {name: hierarchy.processes(f"{stage.own}/{name}") for name in hierarchy.children(stage.own)}
        hogs = [pid for pids in tasks.values() for pid in pids]
        assert all(name.encode() in environment(pids[0]) for name, pids in tasks.items())
        assert len(tasks) == 2 * CPUS + 1  # and the application master
        assert {hierarchy.read(f"{stage.own}/{name}", "cpu.shares") for name in tasks} == {"512"}  # of 500 milli-cores
        assert hierarchy.read(stage.own, "cpu.shares") == "2"

        stage.load.percent = 70
        until(lambda: (stage.quota_cores() or 9) < 0.35 * CPUS, "a small limit")
        assert used_cores(stage, hogs) < 0.45 * CPUS
        throttled = stage.throttle()
        assert [group["group"] for group in throttled["groups"]] == [f"/{stage.own}"]
        assert throttled["problems"] == []
        assert throttled["groups"][0]["throttled_seconds"] >= 0
        manager = stage.yarn.nodes["nm1"].pid
        others = {pid: hierarchy.group_of(pid) for pid in (manager, os.getpid())}
        assert others == {manager: stage.home, os.getpid(): hierarchy.group_of(os.getpid())}
        assert {name: text for name, text in stage.control_files().items() if name in before and "/" in name} == {
            name: text for name, text in before.items() if "/" in name
        }

        hierarchy.write(stage.own, "cpu.cfs_quota_us", "-1")  # as a NodeManager does when it starts
        until(lambda: stage.quota_cores() is not None, "the limit to be back")

        stage.load.percent = 0
        until(lambda: (stage.quota_cores() or 0) > 0.8 * CPUS, "the limit to grow again")
        stage.end(signal.SIGKILL)
        held = stage.quota_cores()
        stage.start()  # it takes over what it finds
        assert (held is not None, stage.quota_cores() is not None) == (True, True)
        until(lambda: stage.throttle()["groups"], "its tasks")
        stage.end(signal.SIGKILL)
        assert f"control group /{stage.own}: put back as it was found" in stage.restore()
        after = stage.control_files()
        assert {key: after[key] for key in before} == before
        assert after.keys() - before.keys() == set()


def test_observing_changes_nothing_and_an_orderly_stop_leaves_nothing_if_it_is_to_release(
    hierarchy: Hierarchy, tmp_path: Path
) -> None:
    with Stage(hierarchy, tmp_path) as stage:
        stage.hogs(CPUS)
        before = stage.control_files()
        stage.start(whole_host=True)
        until(lambda: any(group["limit_milli"] for group in stage.throttle()["groups"]), "a limit")
        (group,) = stage.throttle()["groups"]
        assert (group["group"], group["enforced"], group["in_force_milli"]) == (f"/{stage.own}", False, None)
        assert group["to_move"] >= CPUS
        assert stage.end(signal.SIGTERM) == 0
        assert stage.control_files() == before

        stage.qos = {**ENFORCE, "onExit": "release"}
        stage.start(whole_host=True)
        until(lambda: stage.quota_cores() is not None, "a limit in force")
        assert stage.end(signal.SIGTERM) == 0
        assert stage.control_files() == before
