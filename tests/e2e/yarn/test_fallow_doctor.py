"""`fallow doctor` beside a real ResourceManager and NodeManager, rightly and wrongly addressed."""

import json
from pathlib import Path

import pytest
from tests.e2e.yarn.cluster import Cluster, StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.fallow_process import Fallow, resource_manager_spec, spec_of

pytestmark = pytest.mark.timeout(120)

SIGKILL_DELAY = "yarn.nodemanager.sleep-delay-before-sigkill.ms"


@pytest.fixture(scope="module")
def cluster(yarn_cluster: StartCluster) -> Cluster:
    return yarn_cluster(Setup())


def test_doctor_tells_what_is_well_what_is_not_known_and_what_is_wrong(cluster: Cluster, tmp_path: Path) -> None:
    rm, nm = cluster.rm, cluster.nms["nm1"]
    specs = {
        "right": spec_of(rm),
        "mixed": resource_manager_spec(rm.admin, rm.client, rm.web),
        "nodemanager": resource_manager_spec(rm.client, rm.admin, nm.web),
        "ipc": resource_manager_spec(rm.web, rm.scheduler, rm.admin),
    }
    with Fallow(tmp_path / "fallow", specs, cpu_reserved_milli=0, memory_limit_mb=1024) as fallow:
        shown, printed = fallow.call("doctor", "--json"), fallow.call("doctor")
    assert (shown.returncode, printed.returncode) == (1, 1)
    assert "Traceback" not in shown.stderr + printed.stdout + printed.stderr
    found = {(line["about"], line["subject"]): line for line in json.loads(shown.stdout)}
    right = {subject: line for (about, subject), line in found.items() if about == "yarn/right"}

    assert {subject for subject, line in right.items() if line["ok"] is False} == set()
    unknown = {"lazy preemption", "largest node", f"delay before SIGKILL of {nm.node_id}"}
    assert {subject for subject, line in right.items() if line["ok"] is None} == unknown
    for subject, words in (
        ("ResourceManager", f"{cluster.jars.version} at {rm.web} is ACTIVE"),
        ("clocks", "agree"),
        ("admin rights", "may change node sizes, and so may everyone"),
        ("scheduler", "CapacityScheduler"),
        ("minimum allocation", f"{cluster.setup.min_mb} MB and 1 vcore"),
        ("resource calculator", "DominantResourceCalculator"),
        (f"release of {nm.node_id}", cluster.jars.version),
        (f"configured size of {nm.node_id}", f"{cluster.setup.memory_mb} MB and {cluster.setup.vcores} vcores"),
        (f"port of {nm.node_id}", "fixed"),
        (f"disks of {nm.node_id}", "the limit is 100 %"),
        (f"delay before SIGKILL of {nm.node_id}", "250 ms"),
        (f"executor of {nm.node_id}", "DefaultContainerExecutor"),
        (f"process of {nm.node_id}", "found"),
    ):
        assert words in right[subject]["detail"]
    assert SIGKILL_DELAY in printed.stdout

    for about, subject, words in (
        ("mixed", "ports", "as if they were swapped"),
        ("nodemanager", "web port", "HTTP 404"),
        ("ipc", "web port", "this is a Hadoop IPC port"),
        ("ipc", "client port", "this is a web port"),
        ("ipc", "admin port", "SIMPLE authentication is not enabled"),
    ):
        line = found[f"yarn/{about}", subject]
        assert line["ok"] is False
        assert words in line["detail"]
        assert "spec.resourceManager." in line["advice"]
