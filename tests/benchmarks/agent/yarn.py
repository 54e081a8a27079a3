"""What `fallow agent` costs with the YARN plugin: the containers of an embedded NodeManager sleep, on a quiet node."""

import json
import tempfile
from pathlib import Path

from tests.benchmarks.agent.cost import ENFORCED, Cost, measured
from tests.benchmarks.agent.stage import Stage

from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings

MASTER_MB, TASK_MB = 256, 128
HEARTBEAT_SECONDS = 5.0
"""At each one the embedded NodeManager reads files of all its containers: a real one uses less CPU."""


def cost(tasks: int, seconds: float) -> Cost:
    """Measure an agent with so many containers, masters included, for so long."""
    size = Settings(memory_mb=MASTER_MB + TASK_MB * tasks, vcores=tasks, heartbeat_seconds=HEARTBEAT_SECONDS)
    with (
        tempfile.TemporaryDirectory() as name,
        Stage(Path(name), qos=ENFORCED) as stage,
        EmbeddedYarn(Path(name) / "yarn", size) as yarn,
    ):
        stage.put(yarn.nodes["nm1"].pid, "batch")
        yarn.submit(containers=tasks - 1, memory_mb=TASK_MB, vcores=1, command="exec sleep 3600")
        clusters = Path(name) / "clusters.d"
        clusters.mkdir()
        cluster = {
            "apiVersion": "fallow/v1",
            "kind": "Cluster",
            "metadata": {"name": "bench"},
            "plugin": "yarn",
            "roles": ["agent"],
            "spec": {"nodeManagers": [yarn.nodes["nm1"].node_id]},
        }
        (clusters / "yarn.yaml").write_text(json.dumps(cluster))
        return measured(stage.start(tasks, still=True), tasks, seconds)
