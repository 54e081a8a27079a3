"""Two hundred containers that start and end by themselves while some of them are terminated: nothing else is
signalled.
"""

import random
import signal
import subprocess

import pytest
from tests.e2e.yarn.application import containers_ended, events
from tests.e2e.yarn.cluster import StartCluster
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.protocol.test_yarn_tasks import NODE, instance, kill, listed
from tests.e2e.yarn.rest import wait_for

from fallow_hookspecs import KillResult, TaskRole

CONTAINERS = 200


@pytest.mark.timeout(300)
def test_while_200_containers_start_and_end_only_those_that_were_named_are_signalled(
    yarn_cluster: StartCluster,
) -> None:
    cluster = yarn_cluster(Setup(node_managers=1, memory_mb=4096, vcores=60))
    yarn = instance(cluster.rm)
    yarn.report_capacity((NODE,), (), 10.0)
    bystanders = [subprocess.Popen(["sleep", "600"]) for _ in range(5)]
    chance, ordered = random.Random(7), set[str]()
    app = cluster.submit(CONTAINERS, 16, 1, "sleep 2")
    try:

        def is_over() -> bool:
            workers = [task.id for task in listed(yarn).tasks if task.role is TaskRole.WORKER]
            victims = chance.sample(workers, min(3, len(workers)))
            answers = kill(yarn, *victims)
            ordered.update(task for task, answer in answers.items() if answer.result is KillResult.TERMINATING)
            return any(event.kind == "finished" for event in events(app))

        wait_for(is_over, 240, "the end of the application")
        codes = {ended.container: ended.exit_code for ended in containers_ended(app)}
        assert len(codes) == CONTAINERS
        assert {container for container, code in codes.items() if code != 0} <= ordered
        assert set(codes.values()) <= {0, 128 + signal.SIGTERM}
        assert 128 + signal.SIGTERM in codes.values(), "some of them were terminated"
        assert [bystander.poll() for bystander in bystanders] == [None] * len(bystanders)
    finally:
        yarn.close()
        for bystander in bystanders:
            bystander.kill()
            bystander.wait()
