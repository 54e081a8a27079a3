"""A task that looks like a NodeManager is not asked, is not believed, and spoils nobody else's list."""

import os
import select
import subprocess

import pytest
from tests.security.conftest import Attack

from fallow_hookspecs import ClusterConfig, Node, Role
from fallow_yarn.agent import YarnAgent
from fallow_yarn.nm.daemons import MAIN_CLASS
from fallow_yarn.settings.agent_model import AgentModel

NODE = Node(name="n1", addresses=("localhost",))

needs_another_user = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the attacker has to be another user")


@pytest.fixture
def agent() -> YarnAgent:
    """An agent whose NodeManagers run as root. It reads this host's own processes."""
    spec = AgentModel.model_validate({"nodeManagerUser": "root"})
    return YarnAgent(ClusterConfig(name="etl", roles=frozenset({Role.AGENT}), spec=spec))


def first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def is_ignored(agent: YarnAgent, pid: int) -> bool:
    """Whether a process is no NodeManager in a list, and no reason for it to be incomplete. Others may run here."""
    listed = agent.list_tasks(NODE, 5.0)
    return pid not in {each.process.pid for each in listed.daemons} and str(pid) not in listed.incomplete_reason


@needs_another_user
def test_a_task_that_serves_a_list_of_its_own_is_not_asked(attack: Attack, agent: YarnAgent) -> None:
    fake = attack("fake_node_manager", MAIN_CLASS.decode())
    assert MAIN_CLASS.decode() in first_line(fake)
    assert is_ignored(agent, fake.pid)
    assert fake.stdout is not None
    asked, _, _ = select.select([fake.stdout], [], [], 0)
    assert not asked


@needs_another_user
def test_thirty_silent_ports_cost_no_list_its_time(attack: Attack, agent: YarnAgent) -> None:
    silent = attack("silent_ports", MAIN_CLASS.decode())
    assert first_line(silent) == "30\n"
    assert is_ignored(agent, silent.pid)
