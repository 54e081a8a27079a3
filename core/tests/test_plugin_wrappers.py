"""Wrappers of third parties: they look on, veto and refuse, and what fails in them loses no call."""

import logging
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_agent import CLUSTER, Host
from core.tests.fake_framework import cluster_config, plugin_of

from fallow_core.api.decisions import decisions
from fallow_core.cli.main import main
from fallow_core.errors import PluginLoadError
from fallow_core.model.plugin import LoadedPlugin, PluginSource
from fallow_core.plugins.instance import PluginInstance
from fallow_core.plugins.lanes import Call, Failure
from fallow_hookspecs import (
    ClusterConfig,
    KillAnswer,
    KillOrder,
    KillOutcome,
    KillResult,
    Node,
    Plugin,
    PluginError,
    Role,
    Veto,
    hookimpl,
)

NODE = Node(name="n1")
TERMINATING = KillAnswer(result=KillResult.TERMINATING)
Killing = Generator[None, KillOutcome, KillOutcome]


class Killer:
    """A plugin that ends what it is told to, and remembers it."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.failure: Exception | None = None

    @hookimpl
    def kill_tasks(self, order: KillOrder) -> KillOutcome:
        if self.failure is not None:
            raise self.failure
        self.ended += order.task_ids
        return KillOutcome(answers=dict.fromkeys(order.task_ids, TERMINATING))

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[()]:
        return ()

    def close(self) -> None: ...


class Around:
    """A wrapper of `kill_tasks` that does `before` and `after`, and remembers what it saw."""

    def __init__(
        self,
        before: Callable[[KillOrder], None] = lambda order: None,
        after: Callable[[KillOutcome], Any] = lambda outcome: outcome,
    ) -> None:
        self.before, self.after = before, after
        self.seen: list[object] = []

    @hookimpl(wrapper=True)
    def kill_tasks(self, order: KillOrder) -> Killing:
        self.before(order)
        try:
            outcome = yield
        except Exception as error:
            self.seen.append(error)
            raise
        self.seen.append(outcome)
        answer: KillOutcome = self.after(outcome)
        return answer


def raising(error: Exception) -> Callable[[Any], Any]:
    def act(_: object) -> None:
        raise error

    return act


def vetoing(*task_ids: str) -> Callable[[KillOrder], None]:
    def act(order: KillOrder) -> None:
        if spared := {task: "it is the payroll" for task in order.task_ids if task in task_ids}:
            raise Veto(spared)

    return act


def instance(killer: Killer, *wrappers: object) -> PluginInstance:
    plugin = Plugin(name="alpha", api_levels=(0, 0), config_model=lambda: dict, build=lambda _: killer)  # type: ignore[arg-type, return-value]
    source = PluginSource(name="alpha", distribution="fallow-alpha", version="1.2", target="fake_alpha:PLUGIN")
    config = ClusterConfig(name="etl", roles=frozenset(Role), spec={})
    named = {f"w{number}": wrapper for number, wrapper in enumerate(wrappers)}
    return PluginInstance(LoadedPlugin(plugin=plugin, source=source), config, clock=lambda: 0.0, wrappers=named)


def killed(made: PluginInstance, *task_ids: str) -> KillOutcome | Failure:
    call = made.start_kill_tasks(NODE, KillOrder(task_ids=task_ids, reason="memory"), 5.0)
    outcome = ended(call)
    made.close(1.0)
    return outcome


def ended(call: Call[KillOutcome] | None) -> KillOutcome | Failure:
    assert call is not None
    end = time.monotonic() + 5.0
    while not call.done:
        assert time.monotonic() < end, "the call does not end"
        time.sleep(0.001)
    return call.outcome


def test_a_veto_spares_its_tasks_with_its_reason_and_the_others_end() -> None:
    killer, audit, guard = Killer(), Around(), Around(before=vetoing("b", "c"))
    outcome = killed(instance(killer, audit, guard), "a", "b", "c")
    spared = KillAnswer(result=KillResult.SPARED, reason="it is the payroll (wrapper w1)")
    assert outcome == KillOutcome(answers={"a": TERMINATING, "b": spared, "c": spared})
    assert killer.ended == ["a"]
    assert [type(each) for each in audit.seen] == [Veto, KillOutcome], "the outer one sees the veto, and what follows"


def test_a_veto_of_all_tasks_asks_the_plugin_nothing() -> None:
    killer = Killer()
    outcome = killed(instance(killer, Around(before=vetoing("a"))), "a")
    assert isinstance(outcome, KillOutcome)
    assert outcome.answers["a"].result is KillResult.SPARED
    assert killer.ended == []


def test_two_wrappers_may_both_veto() -> None:
    killer = Killer()
    outcome = killed(instance(killer, Around(before=vetoing("a")), Around(before=vetoing("b"))), "a", "b", "c")
    assert isinstance(outcome, KillOutcome)
    assert [outcome.answers[task].reason for task in "abc"] == [
        "it is the payroll (wrapper w0)",
        "it is the payroll (wrapper w1)",
        "",
    ]
    assert killer.ended == ["c"]


class Silent:
    @hookimpl(wrapper=True)
    def kill_tasks(self) -> Killing:
        if self is None:
            yield  # type: ignore[unreachable] # what makes it a generator
        return KillOutcome()


@pytest.mark.parametrize(
    ("wrapper", "why"),
    [
        (Around(before=raising(ZeroDivisionError("oops"))), "ZeroDivisionError: oops"),
        (Around(after=raising(ZeroDivisionError("oops"))), "ZeroDivisionError: oops"),
        (Around(after=lambda outcome: None), "returned a NoneType, not a KillOutcome"),
        (Around(before=raising(Veto({"z": "not here"}))), "Veto: z: not here"),
        (Around(before=raising(PluginError("not now"))), "PluginError: not now"),
        (Silent(), "did not yield"),
    ],
)
def test_a_failing_wrapper_is_reported_and_loses_no_call(
    wrapper: object, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    killer = Killer()
    made = instance(killer, wrapper)
    with caplog.at_level(logging.WARNING):
        assert killed(made, "a") == KillOutcome(answers={"a": TERMINATING})
    assert killer.ended == ["a"]
    assert made.health().wrappers == {"w0": why}
    assert f"wrapper w0: {why}" in caplog.text


def test_a_wrapper_that_works_again_is_no_longer_reported() -> None:
    wrapper = Around(after=raising(ZeroDivisionError("oops")))
    made = instance(Killer(), wrapper)
    for after, failures in ((wrapper.after, 1), (lambda outcome: outcome, 0)):
        wrapper.after = after
        ended(made.start_kill_tasks(NODE, KillOrder(task_ids=("a",), reason="memory"), 5.0))
        assert len(made.health().wrappers) == failures
    made.close(1.0)


def test_a_wrapper_sees_a_failed_call_and_cannot_hide_it() -> None:
    killer, audit = Killer(), Around()
    killer.failure = PluginError("the framework is gone")
    outcome = killed(instance(killer, audit), "a")
    assert isinstance(outcome, Failure)
    assert outcome.reason == "the framework is gone"
    assert audit.seen == [killer.failure]


def test_a_wrapper_may_add_to_an_answer() -> None:
    added = KillOutcome(answers={"a": KillAnswer(result=KillResult.TERMINATING, reason="noted")})
    assert killed(instance(Killer(), Around(after=lambda outcome: added)), "a") == added


class Plain:
    @hookimpl
    def kill_tasks(self, order: KillOrder) -> None: ...


class Lists:
    @hookimpl(wrapper=True)
    def list_tasks(self) -> Killing:
        return (yield)


class Misnamed:
    @hookimpl(wrapper=True)
    def kill_tasks(self, orders: KillOrder) -> Killing:
        return (yield)


@pytest.mark.parametrize(
    ("wrapper", "text"),
    [
        (Plain(), "wrapper 'w0': kill_tasks is no generator marked with @hookimpl(wrapper=True)"),
        (Lists(), "wrapper 'w0' wraps list_tasks; what can be wrapped is kill_tasks and report_capacity"),
        (Misnamed(), "wrapper 'w0': kill_tasks has no arguments orders"),
    ],
)
def test_what_is_no_wrapper_is_refused(wrapper: object, text: str) -> None:
    with pytest.raises(PluginLoadError, match=f"^{text.replace('(', '.').replace(')', '.')}$"):
        instance(Killer(), wrapper)


WRAPPER = """
    from fallow_hookspecs import Wrapper
    BUILT = []
    def build(cluster):
        BUILT.append(cluster)
        return object()
    WRAPPER = Wrapper(name="audit", api_levels=(0, 0), build=build)
"""


def named(*wrappers: str) -> LoadedPlugin:
    plugin = Plugin(name="alpha", api_levels=(0, 0), config_model=lambda: dict, build=lambda _: Killer())  # type: ignore[arg-type, return-value]
    source = PluginSource(name="alpha", distribution="fallow-alpha", version="1.2", target="fake_alpha:PLUGIN")
    return LoadedPlugin(plugin=plugin, source=source, wrappers=wrappers)


def test_the_wrappers_that_a_cluster_names_are_built_for_it(install: Any) -> None:
    install("fallow-audit", "audit = fake_audit:WRAPPER", WRAPPER, group="fallow.wrappers")
    config = ClusterConfig(name="etl", roles=frozenset(Role), spec={})
    PluginInstance(named("audit"), config, clock=lambda: 0.0).close(1.0)
    import fake_audit  # type: ignore[import-not-found]

    assert fake_audit.BUILT == ["alpha/etl"]


def test_a_cluster_with_a_wrapper_that_cannot_be_used_is_not_built(install: Any) -> None:
    install("fallow-audit", "audit = fake_audit:WRAPPER", WRAPPER.replace("object()", "1 / 0"), group="fallow.wrappers")
    config = ClusterConfig(name="etl", roles=frozenset(Role), spec={})
    for name, text in (("audit", "fallow-audit 1.2 .* failed: ZeroDivisionError"), ("adit", "did you mean 'audit'")):
        with pytest.raises(PluginLoadError, match=text):
            PluginInstance(named(name), config, clock=lambda: 0.0)


def test_explain_shows_who_was_spared_by_a_wrapper_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(tmp_path, monkeypatch)
    host.add("small", gib=1)
    host.add("big", gib=8)
    wrappers: dict[str, object] = {"payroll": Around(before=vetoing("small", "big"))}
    plugin = plugin_of(lambda _: host.killer)
    host.instances[CLUSTER] = PluginInstance(plugin, cluster_config("a"), clock=lambda: host.now, wrappers=wrappers)
    host.fill(92)
    host.run(5)
    assert host.killer.orders == []
    said = [line for decided in decisions(host.evictor, host.now) for line in decided.outcomes]
    assert any("spared: it is the payroll (wrapper payroll)" in line for line in said), said


def test_config_check_finds_a_wrapper_that_is_not_there(
    install: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install("fallow-audit", "audit = fake_audit:WRAPPER", WRAPPER, group="fallow.wrappers")
    (tmp_path / "clusters.d").mkdir()
    (tmp_path / "fallow.yaml").write_text("apiVersion: fallow/v1\nkind: Fallow\n")
    text = "apiVersion: fallow/v1\nkind: Cluster\nmetadata: {name: batch}\nplugin: copilot\nspec: {socket: /run/a/b}\n"
    file = tmp_path / "clusters.d" / "batch.yaml"
    file.write_text(f"{text}wrappers: [audit]\n")
    assert main(["config", "check", str(tmp_path)]) == 0
    file.write_text(f"{text}wrappers:\n- audit\n- adit\n")
    assert main(["config", "check", str(tmp_path)]) == 2
    said = f"{file}:8: wrappers[1]: wrapper 'adit' is not installed; did you mean 'audit'?"
    assert said in capsys.readouterr().err
