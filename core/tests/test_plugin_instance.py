import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fallow_core.errors import PluginLoadError
from fallow_core.model.plugin import LoadedPlugin, PluginSource
from fallow_core.plugins.instance import PluginInstance, start_build
from fallow_core.plugins.lanes import Call, Failure, FailureKind, LaneState
from fallow_hookspecs import (
    Broken,
    Capabilities,
    CapacityReport,
    ClusterConfig,
    Finding,
    Node,
    Offer,
    Plugin,
    PluginError,
    ResourceCapability,
    Resources,
    Role,
    TaskList,
    hookimpl,
)

SOURCE = PluginSource(name="alpha", distribution="fallow-alpha", version="1.2", target="fake_alpha:PLUGIN")
NODE = Node(name="n1")
OFFER = Offer(node="n1", framework_node="n1:1", total=Resources(1000, 2**30))
HONOURED = ResourceCapability(honoured=True)
REPORT = CapacityReport(capabilities=Capabilities(cpu=HONOURED, memory=HONOURED), rows=())
TASKS = TaskList(tasks=(), age_seconds=0.0, complete=True)


class Bare:
    """An instance without hooks."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        return (Finding(subject="manager", ok=True, detail=f"{len(nodes)} nodes, {timeout_seconds:g} s"),)

    def close(self) -> None:
        self.closed.set()


class Scripted(Bare):
    """Answers what it is told to; an exception is raised, a function called."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Any = REPORT
        self.offers: list[tuple[Offer, ...]] = []

    @hookimpl
    def report_capacity(self, offers: tuple[Offer, ...]) -> Any:
        self.offers.append(offers)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer() if callable(self.answer) else self.answer


class Host:
    """Instances on a clock that stands still, and a way to wait for the end of their calls."""

    def __init__(self) -> None:
        self.now = 100.0
        self._ended = threading.Semaphore(0)
        self._built: list[PluginInstance] = []

    def instance(self, build: Callable[[ClusterConfig], Any], *wrappers: object, name: str = "etl") -> PluginInstance:
        instance = PluginInstance(
            loaded(build),
            config(name),
            clock=lambda: self.now,
            wake=self._ended.release,
            wrappers={f"audit-{number}": wrapper for number, wrapper in enumerate(wrappers)},
        )
        self._built.append(instance)
        return instance

    def end_of(self, call: Call[Any] | None) -> Any:
        assert call is not None
        assert self._ended.acquire(timeout=5)
        assert call.done
        return call.outcome

    def close(self) -> None:
        for instance in self._built:
            instance.close(1.0)


def loaded(build: Callable[[ClusterConfig], Any]) -> LoadedPlugin:
    return LoadedPlugin(
        plugin=Plugin(name="alpha", api_levels=(0, 0), config_model=lambda: dict, build=build),  # type: ignore[arg-type, return-value]
        source=SOURCE,
    )


def config(name: str = "etl") -> ClusterConfig:
    return ClusterConfig(name=name, roles=frozenset(Role), spec={})


@pytest.fixture
def host() -> Iterator[Host]:
    host = Host()
    yield host
    host.close()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    gate = threading.Event()
    yield gate
    gate.set()


def test_a_report_comes_through_the_reads_lane_without_offers(host: Host) -> None:
    plugin = Scripted()
    assert host.end_of(host.instance(lambda _: plugin).start_report((NODE,), 5.0)) is REPORT
    assert plugin.offers == [()]


def test_offers_go_through_the_acts_lane(host: Host) -> None:
    plugin = Scripted()
    assert host.end_of(host.instance(lambda _: plugin).start_publish((NODE,), (OFFER,), 5.0)) is REPORT
    assert plugin.offers == [(OFFER,)]


def test_every_hook_gets_its_deadline(host: Host) -> None:
    class Timed(Bare):
        @hookimpl
        def list_tasks(self, node: Node, timeout_seconds: float) -> TaskList:
            assert (node, timeout_seconds) == (NODE, 5.0)
            return TASKS

    assert host.end_of(host.instance(lambda _: Timed()).start_list_tasks(NODE, 5.0)) is TASKS


def test_a_slow_read_keeps_no_act_waiting(host: Host, gate: threading.Event) -> None:
    plugin = Scripted()
    instance = host.instance(lambda _: plugin)
    plugin.answer = gate.wait
    reading = instance.start_report((), 5.0)
    while not plugin.offers:  # until the read has begun
        gate.wait(0.001)
    plugin.answer = REPORT
    assert host.end_of(instance.start_publish((), (OFFER,), 5.0)) is REPORT
    assert reading is not None
    assert not reading.done
    host.now = 200.0
    assert instance.health().reads.state is LaneState.STALLED
    assert instance.health().acts.state is LaneState.OK
    assert instance.start_report((), 5.0) is None


def test_a_raising_instance_touches_no_other(host: Host) -> None:
    first, second, third = Scripted(), Scripted(), Scripted()
    second.answer = ValueError("no such queue")
    instances = [host.instance(lambda _, p=p: p) for p in (first, second, third)]  # type: ignore[misc]
    outcomes = [host.end_of(instance.start_report((), 5.0)) for instance in instances]
    assert outcomes == [REPORT, Failure(kind=FailureKind.FAILED, reason="ValueError: no such queue"), REPORT]
    assert [instance.health().reads.failures for instance in instances] == [0, 1, 0]


def test_a_failing_read_does_not_close_the_acts_lane(host: Host) -> None:
    plugin = Scripted()
    instance = host.instance(lambda _: plugin)
    plugin.answer = Broken("the user may not read")
    host.end_of(instance.start_report((), 5.0))
    plugin.answer = REPORT
    assert instance.start_report((), 5.0) is None
    assert host.end_of(instance.start_publish((), (OFFER,), 5.0)) is REPORT
    assert instance.health().reads.state is LaneState.BROKEN


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (None, "report_capacity gave a wrong answer: the answer is None, not a CapacityReport"),
        ("done", "report_capacity gave a wrong answer: the answer is 'done', not a CapacityReport"),
        (TASKS, "report_capacity gave a wrong answer: the answer is a TaskList, not a CapacityReport"),
        (
            CapacityReport(capabilities=REPORT.capabilities, rows=None),  # type: ignore[arg-type]
            "report_capacity gave a wrong answer: the answer.rows is None, not a tuple",
        ),
    ],
)
def test_an_answer_of_a_wrong_type_is_a_failed_call(host: Host, answer: Any, text: str) -> None:
    plugin = Scripted()
    plugin.answer = answer
    instance = host.instance(lambda _: plugin)
    assert host.end_of(instance.start_report((), 5.0)) == Failure(kind=FailureKind.FAILED, reason=text)
    assert instance.health().reads.failures == 1


def test_a_hook_that_nobody_implements_is_reported_and_not_called(host: Host) -> None:
    instance = host.instance(lambda _: Scripted())
    call = instance.start_list_tasks(NODE, 5.0)
    assert call is not None
    assert call.outcome == Failure(
        kind=FailureKind.NOT_IMPLEMENTED,
        reason="plugin 'alpha' of fallow-alpha 1.2 (fake_alpha:PLUGIN) does not implement list_tasks",
    )
    assert instance.health().missing_hooks == ("list_tasks", "kill_tasks", "set_cgroup_parent")
    assert instance.health().reads.state is LaneState.OK


class Audit:
    """A third party's wrapper: sees the call, and may veto it."""

    def __init__(self) -> None:
        self.veto = False
        self.seen: list[object] = []

    @hookimpl(wrapper=True)
    def report_capacity(self, offers: tuple[Offer, ...]) -> Any:
        if self.veto and offers:
            raise PluginError("frozen for the end of the quarter")
        answer = yield
        self.seen.append(answer)
        return answer


def test_a_wrapper_sees_a_call_and_may_veto_it(host: Host) -> None:
    audit, plugin = Audit(), Scripted()
    instance = host.instance(lambda _: plugin, audit)
    assert host.end_of(instance.start_publish((), (OFFER,), 5.0)) is REPORT
    assert audit.seen == [REPORT]
    audit.veto = True
    outcome = host.end_of(instance.start_publish((), (OFFER,), 5.0))
    assert outcome.reason == "frozen for the end of the quarter (wrapper audit-0)"
    assert len(plugin.offers) == 1


def test_a_wrapper_alone_implements_nothing(host: Host) -> None:
    assert "report_capacity" in host.instance(lambda _: Bare(), Audit()).health().missing_hooks


class Misspelt(Bare):
    @hookimpl
    def list_taks(self) -> None: ...


class WrongArgument(Bare):
    @hookimpl
    def list_tasks(self, nodes: Any) -> None: ...


class Unmarked(Bare):
    def list_tasks(self) -> None: ...


class Async(Bare):
    @hookimpl
    async def list_tasks(self) -> None: ...


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (Misspelt, "unknown hook 'list_taks'"),
        (WrongArgument, "for hook 'list_tasks'"),
        (Unmarked, "the method list_tasks is not marked with @hookimpl"),
        (Async, "list_tasks is an async function; hooks are plain functions"),
    ],
)
def test_a_hook_that_would_never_be_called_is_refused_at_once(host: Host, kind: type[Bare], text: str) -> None:
    plugin = kind()
    with pytest.raises(PluginLoadError) as caught:
        host.instance(lambda _: plugin)
    assert text in str(caught.value)
    assert str(caught.value).startswith("cluster alpha/etl: plugin 'alpha' of fallow-alpha 1.2")
    assert plugin.closed.is_set()


def test_what_build_raises_is_shown(host: Host) -> None:
    def build(_: ClusterConfig) -> Any:
        raise FileNotFoundError("/etc/etl.token")

    with pytest.raises(PluginLoadError, match=r"cluster alpha/etl: .* failed: FileNotFoundError: /etc/etl.token"):
        host.instance(build)


def test_an_object_that_is_no_instance_is_refused(host: Host) -> None:
    with pytest.raises(PluginLoadError, match="build returned a dict without diagnose and close"):
        host.instance(lambda _: {})


def test_a_build_that_hangs_delays_nobody(gate: threading.Event) -> None:
    ended = threading.Event()

    def build(_: ClusterConfig) -> Any:
        gate.wait()
        return Scripted()

    call = start_build(loaded(build), config(), timeout_seconds=10.0, clock=lambda: 100.0, wake=ended.set)
    assert not call.done
    assert call.overdue(110.0)
    gate.set()
    assert ended.wait(5)
    instance = call.outcome
    assert isinstance(instance, PluginInstance)
    assert instance.name == "alpha/etl"
    instance.close(1.0)


def test_a_build_that_fails_in_its_thread_says_why() -> None:
    ended = threading.Event()
    call = start_build(loaded(lambda _: {}), config(), timeout_seconds=10.0, clock=lambda: 0.0, wake=ended.set)
    assert ended.wait(5)
    assert isinstance(call.outcome, Failure)
    assert call.outcome.reason.startswith("cluster alpha/etl: plugin 'alpha'")


def test_findings_are_there_for_a_broken_instance_too(host: Host) -> None:
    plugin = Scripted()
    plugin.answer = Broken("no such user")
    instance = host.instance(lambda _: plugin)
    host.end_of(instance.start_report((), 5.0))
    findings = host.end_of(instance.start_diagnose((NODE,), 5.0))
    assert findings == (Finding(subject="manager", ok=True, detail="1 nodes, 5 s"),)
    assert instance.health().reads.state is LaneState.BROKEN


def test_close_reaches_the_plugin_when_its_calls_have_ended(host: Host, gate: threading.Event) -> None:
    plugin = Scripted()
    plugin.answer = lambda: gate.wait() and REPORT
    instance = host.instance(lambda _: plugin)
    running = instance.start_publish((), (OFFER,), 5.0)
    closing = instance.close(1.0)
    assert not closing.done
    assert not plugin.closed.is_set()
    gate.set()
    assert host.end_of(running) is REPORT
    assert plugin.closed.wait(5)
    assert instance.close(1.0) is closing


def test_a_hung_call_does_not_keep_close_beyond_its_deadline(host: Host, gate: threading.Event) -> None:
    plugin = Scripted()
    plugin.answer = gate.wait
    instance = host.instance(lambda _: plugin)
    running = instance.start_publish((), (OFFER,), 5.0)
    host.now = 200.0
    instance.close(1.0)
    assert plugin.closed.wait(5)
    assert running is not None
    assert not running.done


def test_a_close_that_hangs_or_fails_is_seen_by_polling(host: Host, gate: threading.Event) -> None:
    class Sticky(Bare):
        def close(self) -> None:
            gate.wait()
            raise OSError("still in use")

    instance = host.instance(lambda _: Sticky())
    closing = instance.close(1.0)
    assert closing.overdue(101.0)
    gate.set()
    while not closing.done:
        threading.Event().wait(0.001)
    assert closing.outcome == Failure(kind=FailureKind.FAILED, reason="OSError: still in use")


def test_a_closed_instance_starts_no_call(host: Host) -> None:
    instance = host.instance(lambda _: Scripted())
    instance.close(1.0)
    with pytest.raises(RuntimeError, match="closed"):
        instance.start_report((), 5.0)
