"""A plugin answers the same in Fallow's process and through the copilot."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.integration.copilot_plugin import PLUGIN
from tests.integration.copilot_stage import Copilot, build, lay_out, outcome, through

from fallow_core.model.plugin import LoadedPlugin, PluginSource
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Failure, FailureKind
from fallow_hookspecs import CapacityReport, KillOrder, Node, Offer, Pod, Resources

Ask = Callable[[PluginInstance, Node], Any]
OFFERS = (
    Offer(node="n", framework_node="n:1", total=Resources(0, 2**33), take_back={"cpu": 0, "memory": 2**33}),
    Offer(node="n", framework_node="unknown:1", total=Resources(500, 0), take_back={"cpu": 500}),
    Offer(node="n", framework_node="n:2", total=Resources(500, 1)),
)
ORDER = KillOrder(task_ids=tuple(f"t{index}" for index in range(8)), reason="memory is short", force=True)
HOOKS: dict[str, Ask] = {
    "report": lambda asked, node: asked.start_report((node,), 10.0),
    "publish": lambda asked, node: asked.start_publish((node,), OFFERS, 10.0),
    "list": lambda asked, node: asked.start_list_tasks(node, 10.0),
    "kill": lambda asked, node: asked.start_kill_tasks(node, ORDER, 10.0),
    "place": lambda asked, node: asked.start_set_cgroup_parent(node, "batch", 10.0),
}
PLAIN = Node(name="n", addresses=("n.example.com", "10.0.0.1"))
RICH = Node(
    name="ñ",
    labels={"pool": "batch", "": ""},
    annotations={"note": "x\ny"},
    pods=(Pod(uid="u", namespace="d", name="p", labels={"a": "b"}, annotations={"c": "d"}, addresses=("10.1.1.1",)),),
)


@pytest.fixture(scope="module")
def copilot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copilot]:
    folder = tmp_path_factory.mktemp("copilot")
    site = lay_out(folder / "site", "copilot_fake", "tests.integration.copilot_plugin:PLUGIN")
    made = Copilot(folder, "copilot_fake", {}, path=(site,))
    made.start()
    yield made
    assert made.terminate() == 0
    assert "not carried but for its names" in made.output.read_text()


@pytest.fixture(scope="module")
def both(copilot: Copilot) -> Iterator[Callable[[], tuple[PluginInstance, PluginInstance]]]:
    """`both()`: an instance in this process, and one behind the copilot."""
    opened: list[PluginInstance] = []
    source = PluginSource(name="copilot_fake", distribution="tests", version="1", target="tests:PLUGIN")

    def make() -> tuple[PluginInstance, PluginInstance]:
        pair = (build(LoadedPlugin(plugin=PLUGIN, source=source), {}), through(copilot))
        opened.extend(pair)
        return pair

    yield make
    for each in opened:
        outcome(each.close(5.0))


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("node", [PLAIN, RICH], ids=["plain", "rich"])
def test_answers_are_the_same(both: Any, hook: str, node: Node) -> None:
    here, there = both()
    expected = outcome(HOOKS[hook](here, node))
    assert not isinstance(expected, Failure)
    assert outcome(HOOKS[hook](there, node)) == expected


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("name", ["later", "broken", "refused", "fault"])
def test_failures_mean_the_same(both: Any, hook: str, name: str) -> None:
    here, there = both()
    expected = outcome(HOOKS[hook](here, Node(name=name)))
    assert isinstance(expected, Failure)
    assert outcome(HOOKS[hook](there, Node(name=name))) == expected


def test_the_time_that_a_plugin_asks_for_arrives(both: Any) -> None:
    _, there = both()
    failure = outcome(there.start_report((Node(name="later"),), 5.0))
    assert failure == Failure(kind=FailureKind.TRY_LATER, reason="the manager is starting", retry_after_seconds=2.5)


@pytest.mark.parametrize("hook", ["report", "list"])
def test_no_answer_is_a_wrong_answer(both: Any, hook: str) -> None:
    _, there = both()
    failure = outcome(HOOKS[hook](there, Node(name="nothing")))
    assert isinstance(failure, Failure)
    assert "gave a wrong answer: a NoneType" in failure.reason


def test_a_row_that_cannot_be_carried_spoils_no_other(both: Any) -> None:
    here, there = both()
    expected: CapacityReport = outcome(here.start_report((Node(name="wrong"),), 5.0))
    found: CapacityReport = outcome(there.start_report((Node(name="wrong"),), 5.0))
    assert found.rows[:2] == expected.rows[:2]
    assert (found.rows[2].node, found.rows[2].framework_node) == ("wrong", "wrong:1")
    assert found.rows[2].age_seconds is None  # and so core refuses it by its name


def test_an_operator_sees_the_socket_and_what_the_plugin_finds(both: Any, copilot: Copilot) -> None:
    here, there = both()
    expected = outcome(here.start_diagnose((PLAIN,), 5.0))
    socket, who, *rest = outcome(there.start_diagnose((PLAIN,), 5.0))
    assert tuple(rest) == expected
    assert str(copilot.socket) in socket.detail
    assert "0660) in a directory of its own" in socket.detail
    assert who.detail == "plugin 'copilot_fake' of fallow-copilot_fake 1.2"
