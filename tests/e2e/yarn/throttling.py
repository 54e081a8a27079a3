"""What it takes to throttle the containers of a real NodeManager: its settings, and a Fallow that does nothing else."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.e2e.yarn import container_executor
from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.fallow_process import COMMAND, Fallow, spec_of

from fallow_core.api.control_socket import ask

ENFORCE = {"mode": "enforce"}
EXECUTOR = "yarn.nodemanager.linux-container-executor"


def linux_container_executor(tree: str) -> dict[str, str]:
    """Properties of a NodeManager that makes a group for each container below `tree`, for CPU."""
    return {
        "yarn.nodemanager.container-executor.class": "org.apache.hadoop.yarn.server.nodemanager.LinuxContainerExecutor",
        f"{EXECUTOR}.path": container_executor.__file__,
        f"{EXECUTOR}.group": "root",
        f"{EXECUTOR}.nonsecure-mode.local-user": "root",
        f"{EXECUTOR}.cgroups.hierarchy": f"/{tree}",
        f"{EXECUTOR}.cgroups.mount": "false",
        "yarn.nodemanager.resource.cpu.enabled": "true",
    }


def fallow_on(cluster: Cluster, folder: Path) -> Fallow:
    """It enforces what throttles, and nothing else."""
    fallow = Fallow(folder, {"real": spec_of(cluster.rm)}, cpu_reserved_milli=0, memory_limit_mb=4096)
    core = json.loads((folder / "fallow.yaml").read_text())
    fallow.add(
        "fallow.yaml",
        publishing={**core["publishing"], "mode": "observe"},
        node={"name": f"e2e-{os.getpid()}"},
        qos={"cpuSuppress": ENFORCE, "cgroupReconcile": ENFORCE, "cpuEvict": {"mode": "off"}},
    )
    return fallow


def throttle(fallow: Fallow) -> dict[str, Any]:
    """What `fallow explain` shows of it."""
    return dict(ask(fallow.socket, {"request": "explain"})["throttle"])


def restore(fallow: Fallow, seconds: float = 90) -> None:
    """Everything is put back as it was found."""
    command = [COMMAND, "restore", "-c", str(fallow.folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    assert done.returncode == 0, (done.stdout, done.stderr)
