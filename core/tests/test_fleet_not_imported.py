import subprocess
import sys

import pytest

_ONE_NODE = [
    "fallow_core.cli.main",
    "fallow_core.cli.run",
    "fallow_core.runtime.standalone",
    "fallow_core.controller.controller",
    "fallow_core.agent.eviction.evictor",
]


@pytest.mark.parametrize("module", _ONE_NODE)
def test_who_computes_one_node_does_not_import_numpy(module: str) -> None:
    code = f"import sys, {module}; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=50)
    assert done.stdout.strip() == "False"
