"""What `fallow agent` must not hold in memory: it runs on every node."""

import subprocess
import sys
from pathlib import Path

HEAVY = (
    "asyncio",
    "difflib",
    "grpc",
    "hashlib",
    "msgspec",
    "multiprocessing",
    "numpy",
    "prometheus_client",
    "pydantic",
    "rich",
    "urllib.request",
    "xml.etree",
    "yaml",
    "fallow_core.cli.inspect",
    "fallow_core.controller.controller",
    "fallow_core.ledger.fleet",
    "fallow_core.ledger.due_offers",
    "fallow_core.diagnostics.doctor",
    "fallow_core.runtime.standalone",
    "fallow_yarn",
)
RUNS = """
import sys
from pathlib import Path
from fallow_core.cli import agent, main
from fallow_core.runtime import config_subprocess
from fallow_core.runtime.agent import AgentProcess

Path("fallow.yaml").write_text("apiVersion: fallow/v1\\nkind: Fallow\\nstateDir: state\\nmetrics: off\\n")
process = AgentProcess(config_subprocess.Reading(Path("fallow.yaml")).result(), read_again=config_subprocess.read_again)
process.step()
process.close()
print(*sys.modules)
"""


def test_an_agent_that_runs_has_imported_nothing_that_only_others_need(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", RUNS], capture_output=True, text=True, check=True, timeout=50, cwd=tmp_path
    )
    loaded = set(done.stdout.split())
    assert "fallow_core.agent.eviction.evictor" in loaded
    assert sorted(loaded & set(HEAVY)) == []
