import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from fallow_core.config.load import load
from fallow_core.config.models import ClusterFile, CoreFile
from fallow_core.config.qos_models import Group
from fallow_core.config.settings import Config
from fallow_core.errors import ConfigError, PluginLoadError
from fallow_core.model.node_policies import Layer, NodeChange, NodePolicies, Pool, ResourceChange, Schedule, Window
from fallow_core.model.plugin import LoadedPlugin, PluginSource
from fallow_core.model.policy import (
    AccountPolicy,
    ExitMode,
    KeepLargest,
    Limit,
    NodePolicy,
    OnlineRule,
    PublishingMode,
    PublishingPolicy,
    ResourcePolicy,
    Sharing,
    TakeBack,
)
from fallow_core.model.qos_policy import (
    CgroupReconcilePolicy,
    CpuEvictPolicy,
    CpuSuppressPolicy,
    IdentityPolicy,
    MemoryEvictPolicy,
    MemoryReclaimPolicy,
    OnlinePressurePolicy,
    OverdraftEvictPolicy,
    Placing,
    QosPolicy,
    StrategyMode,
    TerminationPolicy,
)
from fallow_core.model.take_back_policy import TakeBackPolicy
from fallow_hookspecs import Plugin, Role

CORE = "apiVersion: fallow/v1\nkind: Fallow\n"
CLUSTER = "apiVersion: fallow/v1\nkind: Cluster\nmetadata: {{name: {name}}}\nplugin: alpha\nspec: {{host: rm}}\n"


class Spec(BaseModel, extra="forbid"):
    host: str = "nowhere"


class Loader:
    """Gives the plugins `alpha` and `beta`, whose model can be changed, and keeps which were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.model: Callable[[], Any] = lambda: Spec

    def __call__(self, name: str) -> LoadedPlugin:
        self.asked.append(name)
        if name not in {"alpha", "beta"}:
            raise PluginLoadError(f"plugin {name!r} is not installed")
        return LoadedPlugin(
            plugin=Plugin(name=name, api_levels=(0, 0), config_model=lambda: self.model(), build=print),  # type: ignore[arg-type]
            source=PluginSource(name=name, distribution="fallow-fake", version="1.2", target="fake:PLUGIN"),
        )


class Etc:
    """A directory of configuration files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.loader = Loader()
        self.write("fallow.yaml", CORE)

    def write(self, name: str, text: str) -> Path:
        file = self.root / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
        return file

    def cluster(self, name: str, file: str | None = None) -> None:
        self.write(f"clusters.d/{file or name}.yaml", CLUSTER.format(name=name))

    def load(self) -> Config:
        return load(self.root, self.loader)


@pytest.fixture
def etc(tmp_path: Path) -> Etc:
    return Etc(tmp_path)


def test_a_file_of_two_lines_gives_the_defaults(etc: Etc) -> None:
    config = etc.load()
    assert config.policies == NodePolicies()
    assert config.publishing == PublishingPolicy()
    assert config.publishing.mode is PublishingMode.OBSERVE
    assert config.take_back == TakeBackPolicy()
    assert config.qos == QosPolicy()
    assert (config.metrics, config.on_exit, config.log_level) == (("127.0.0.1", 9464), ExitMode.FLOOR, "info")
    assert (config.state_dir, config.control_socket) == (Path("/var/lib/fallow"), Path("/run/fallow/control.sock"))
    assert config.node_name == socket.gethostname()
    assert config.sample_interval_seconds == 1.0
    assert (config.clusters, config.problems) == ((), ())


EVERY_CORE_KEY: dict[str, Any] = {
    "apiVersion": "fallow/v1",
    "kind": "Fallow",
    "metadata": {"name": "lab"},
    "clustersDir": "there",
    "stateDir": "state",
    "controlSocket": "/tmp/fallow.sock",
    "controlGroup": "ops",
    "metrics": {"address": "::", "port": 9},
    "node": {"name": "n1", "addresses": ["n1.example.com", "192.0.2.1"], "labels": {"use": "batch"}},
    "capacity": {
        "cpu": {"watermark": "95%", "policy": "max", "reserved": "250m", "cap": 80, "overcommit": "150%"},
        "memory": {"watermark": 70, "reserved": "5%", "reservedPerDaemon": "2GiB", "cap": "90%"},
        "schedule": {
            "timeZone": "Europe/Berlin",
            "ramp": "30m",
            "windows": [{"days": ["mon", "sun"], "from": "22:30", "to": "06:00", "memory": {"watermark": "90%"}}],
        },
    },
    "pools": [{"name": "p", "nodeSelector": {"use": "batch"}, "capacity": {"cpu": {"policy": "request"}}}],
    "nodes": [{"name": "n2", "capacity": {"memory": {"reserved": "1GiB", "overcommit": 120}}}],
    "publishing": {
        "mode": "enforce",
        "sharing": "shared",
        "deadBand": 5,
        "growthDelay": "2s",
        "interval": "3s",
        "reportInterval": "4s",
        "degradeAfter": "30s",
        "withdrawAfter": "45s",
        "inFlight": "7s",
    },
    "takeBack": {"mode": "enforce", "after": "90s", "notice": "2m", "blastRadius": 7, "blastWindow": "20m"},
    "qos": {
        "cpuSuppress": {"mode": "enforce", "minimum": "3%", "step": 20, "cpuset": "packed"},
        "cgroupReconcile": {"mode": "off", "memoryLimit": "120%"},
        "identity": {"mode": "enforce"},
        "onlinePressure": {"mode": "enforce", "groups": ["/web.slice/", "db"], "threshold": "20%", "lowerThreshold": 7},
        "memoryReclaim": {
            "mode": "enforce",
            "threshold": 92,
            "step": "2%",
            "coolDown": "3s",
            "window": "9s",
            "criticalThreshold": "98%",
        },
        "exempt": ["/hadoop-yarn/special/", "b"],
        "onExit": "release",
        "memoryEvict": {"mode": "enforce", "threshold": 95, "lowerThreshold": 91, "coolDown": "5s"},
        "cpuEvict": {
            "mode": "off",
            "satisfaction": 50,
            "until": 65,
            "usage": 70,
            "window": "30s",
            "samples": 3,
            "coolDown": "6s",
            "slowIsFine": True,
        },
        "overdraftEvict": {"mode": "enforce", "after": "3m", "coolDown": "7s"},
        "termination": {"grace": "8s", "margin": "9s", "backOff": "11s", "budget": 4, "budgetWindow": "2h"},
    },
    "hostRoot": "/host",
    "sampleInterval": "500ms",
    "onExit": "original",
    "log": {"level": "debug"},
}


POLICY = NodePolicy(
    cpu=ResourcePolicy(watermark_percent=95, rule=OnlineRule.MAX, reserved=250, cap_percent=80, overcommit_percent=150),
    memory=ResourcePolicy(watermark_percent=70, reserved_percent=5, reserved_per_daemon=2 << 30, cap_percent=90),
)
POLICIES = NodePolicies(
    default=POLICY,
    schedule=Schedule(
        time_zone="Europe/Berlin",
        ramp_seconds=1800,
        windows=(
            Window(
                days=frozenset({0, 6}),
                from_minute=1350,
                to_minute=360,
                change=NodeChange(memory=ResourceChange(watermark_percent=90)),
            ),
        ),
    ),
    pools=(
        Pool(
            name="p",
            node_selector={"use": "batch"},
            layer=Layer(change=NodeChange(cpu=ResourceChange(rule=OnlineRule.REQUEST))),
        ),
    ),
    nodes={
        "n2": Layer(
            change=NodeChange(memory=ResourceChange(reserved=1 << 30, reserved_percent=0, overcommit_percent=120))
        )
    },
)


def test_every_value_that_is_set_is_the_value_in_force(etc: Etc) -> None:
    (etc.root / "there").mkdir()
    file = etc.write("fallow.yaml", yaml.safe_dump(EVERY_CORE_KEY))
    assert etc.load() == Config(
        file=file,
        name="lab",
        clusters_dir=etc.root / "there",
        state_dir=etc.root / "state",
        control_socket=Path("/tmp/fallow.sock"),
        control_group="ops",
        metrics=("::", 9),
        node_name="n1",
        node_addresses=("n1.example.com", "192.0.2.1"),
        node_labels={"use": "batch"},
        host_root=Path("/host"),
        policies=POLICIES,
        publishing=PublishingPolicy(
            mode=PublishingMode.ENFORCE,
            sharing=Sharing.SHARED,
            dead_band_percent=5,
            growth_delay_seconds=2.0,
            publish_interval_seconds=3.0,
            report_interval_seconds=4.0,
            degrade_after_seconds=30.0,
            withdraw_after_seconds=45.0,
            in_flight_seconds=7.0,
        ),
        take_back=TakeBackPolicy(
            mode=PublishingMode.ENFORCE,
            after_seconds={"memory": 90.0},
            notice_seconds=120,
            blast_percent=7,
            blast_seconds=1200.0,
        ),
        qos=QosPolicy(
            release_on_exit=True,
            exempt=("hadoop-yarn/special", "b"),
            cpu_suppress=CpuSuppressPolicy(
                mode=StrategyMode.ENFORCE, minimum_percent=3, step_percent=20, cpuset=Placing.PACKED
            ),
            cgroup_reconcile=CgroupReconcilePolicy(mode=StrategyMode.OFF, memory_limit_percent=120),
            identity=IdentityPolicy(mode=StrategyMode.ENFORCE),
            online_pressure=OnlinePressurePolicy(
                mode=StrategyMode.ENFORCE, groups=("web.slice", "db"), threshold_percent=20, lower_percent=7
            ),
            memory_reclaim=MemoryReclaimPolicy(
                mode=StrategyMode.ENFORCE,
                threshold_percent=92,
                step_percent=2,
                cool_down_seconds=3.0,
                window_seconds=9.0,
                critical_percent=98,
            ),
            memory_evict=MemoryEvictPolicy(
                mode=StrategyMode.ENFORCE, threshold_percent=95, lower_percent=91, cool_down_seconds=5.0
            ),
            cpu_evict=CpuEvictPolicy(
                mode=StrategyMode.OFF,
                satisfaction_percent=50,
                until_percent=65,
                usage_percent=70,
                window_seconds=30.0,
                samples=3,
                cool_down_seconds=6.0,
                slow_is_fine=True,
            ),
            overdraft_evict=OverdraftEvictPolicy(mode=StrategyMode.ENFORCE, after_seconds=180.0, cool_down_seconds=7.0),
            termination=TerminationPolicy(
                grace_seconds=8.0, margin_seconds=9.0, back_off_seconds=11.0, budget=4, budget_seconds=7200.0
            ),
        ),
        sample_interval_seconds=0.5,
        on_exit=ExitMode.ORIGINAL,
        log_level="debug",
    )


def test_the_table_of_every_key_is_complete() -> None:
    assert set(EVERY_CORE_KEY) == {field.alias for field in CoreFile.model_fields.values()}


def test_metrics_can_be_off(etc: Etc) -> None:
    etc.write("fallow.yaml", CORE + "metrics: off\n")
    assert etc.load().metrics is None


def test_the_core_file_itself_can_be_named(etc: Etc) -> None:
    etc.cluster("etl")
    assert [cluster.name for cluster in load(etc.root / "fallow.yaml", etc.loader).clusters] == ["alpha/etl"]


def test_relative_paths_count_from_the_file_and_are_absolute(etc: Etc, monkeypatch: pytest.MonkeyPatch) -> None:
    etc.write("fallow.yaml", CORE + "stateDir: ../state\n")
    monkeypatch.chdir(etc.root.parent)
    config = load(Path(etc.root.name), etc.loader)
    assert config.file == etc.root / "fallow.yaml"
    assert config.state_dir == etc.root / "../state"


def test_every_key_of_a_cluster_reaches_its_place(etc: Etc) -> None:
    keys = {
        "apiVersion": "fallow/v1",
        "kind": "Cluster",
        "metadata": {"name": "etl"},
        "plugin": "alpha",
        "roles": ["agent"],
        "weight": 3,
        "limit": {"cpu": "80%", "memory": "100GiB"},
        "takeBack": "never",
        "keepLargest": "keep",
        "nodeSelector": {"pool": "batch"},
        "wrappers": ["audit", "payroll"],
        "spec": {"host": "rm"},
    }
    assert set(keys) == {field.alias for field in ClusterFile.model_fields.values()}
    etc.write("fallow.yaml", CORE + "node: {labels: {pool: batch}}\n")
    etc.write("clusters.d/etl.yaml", yaml.safe_dump(keys))
    (cluster,) = etc.load().clusters
    assert cluster.name == "alpha/etl"
    assert cluster.config.roles == {Role.AGENT}
    assert cluster.config.spec == Spec(host="rm")
    assert cluster.account == AccountPolicy(
        weight=3,
        cpu_limit=Limit(percent=80),
        memory_limit=Limit(amount=100 << 30),
        take_back=TakeBack.NEVER,
        keep_largest=KeepLargest.KEEP,
    )
    assert cluster.node_selector == {"pool": "batch"}
    assert cluster.plugin.source.distribution == "fallow-fake"
    assert cluster.plugin.wrappers == ("audit", "payroll")


def test_a_wrapper_that_is_named_twice_is_an_error(etc: Etc) -> None:
    etc.write("clusters.d/etl.yaml", CLUSTER.format(name="etl") + "wrappers: [audit, audit]\n")
    (problem,) = etc.load().problems
    assert "the wrapper 'audit' is there twice; keep one" in str(problem)


def test_with_other_wrappers_another_instance_is_built(etc: Etc) -> None:
    etc.write("clusters.d/etl.yaml", CLUSTER.format(name="etl"))
    first = etc.load().clusters[0].built_from
    etc.write("clusters.d/etl.yaml", CLUSTER.format(name="etl") + "wrappers: [audit]\n")
    assert etc.load().clusters[0].built_from != first


def test_a_changed_node_selector_is_there_after_the_next_load(etc: Etc) -> None:
    etc.write("fallow.yaml", CORE + "node: {labels: {pool: a}}\n")
    etc.write("clusters.d/etl.yaml", CLUSTER.format(name="etl") + "nodeSelector: {pool: a}\n")
    first = etc.load()
    etc.write("clusters.d/etl.yaml", CLUSTER.format(name="etl") + "nodeSelector: {pool: b}\n")
    second = etc.load()
    assert (first.clusters[0].node_selector, first.not_selected) == ({"pool": "a"}, ())
    assert (second.clusters, second.not_selected[0].node_selector) == ((), {"pool": "b"})
    assert second.not_selected_reasons == {
        "alpha/etl": "its nodeSelector pool=b does not match this host's labels (pool=a)"
    }


@pytest.mark.parametrize(
    ("selector", "labels", "selects"),
    [
        ("{}", "{}", True),
        ("{}", "{pool: a}", True),
        ("{pool: a}", "{}", False),
        ("{pool: a}", "{pool: a, zone: x}", True),
        ("{pool: a, zone: y}", "{pool: a, zone: x}", False),
    ],
)
def test_a_node_selector_matches_the_labels_of_the_core_file(
    etc: Etc, selector: str, labels: str, selects: bool
) -> None:
    etc.write("fallow.yaml", CORE + f"node: {{labels: {labels}}}\n")
    etc.write("clusters.d/etl.yaml", CLUSTER.format(name="etl") + f"nodeSelector: {selector}\n")
    found = etc.load()
    assert (len(found.clusters), len(found.not_selected)) == (int(selects), int(not selects))


def test_roles_and_spec_have_defaults(etc: Etc) -> None:
    etc.write("clusters.d/etl.yaml", CLUSTER.format(name="etl").replace("spec: {host: rm}", "spec:\n  # nothing yet"))
    (cluster,) = etc.load().clusters
    assert cluster.config.roles == {Role.CONTROLLER, Role.AGENT}
    assert cluster.config.spec == Spec()


def test_a_wrong_cluster_file_stops_no_other(etc: Etc) -> None:
    etc.cluster("good")
    etc.write("clusters.d/wrong.yaml", CLUSTER.format(name="wrong") + "weigth: 2\n")
    etc.write("clusters.d/alien.yaml", CLUSTER.format(name="alien").replace("alpha", "gamma"))
    config = etc.load()
    assert [cluster.name for cluster in config.clusters] == ["alpha/good"]
    assert [(problem.file.name, problem.line) for problem in config.problems] == [("alien.yaml", 4), ("wrong.yaml", 6)]


def test_only_plugins_that_a_file_names_are_loaded(etc: Etc) -> None:
    etc.cluster("etl")
    etc.load()
    assert etc.loader.asked == ["alpha"]


def test_two_clusters_of_one_name_are_both_told_and_neither_is_used(etc: Etc) -> None:
    etc.cluster("etl", file="a")
    etc.cluster("etl", file="b")
    etc.cluster("other")
    config = etc.load()
    assert [cluster.name for cluster in config.clusters] == ["alpha/other"]
    directory = etc.root / "clusters.d"
    assert [str(problem) for problem in config.problems] == [
        f"{directory / one}:3: metadata.name: 'etl' is also the name of the alpha cluster in {directory / other}"
        "; give each a name of its own"
        for one, other in (("a.yaml", "b.yaml"), ("b.yaml", "a.yaml"))
    ]


def test_clusters_of_different_plugins_may_have_one_name(etc: Etc) -> None:
    etc.cluster("etl", file="a")
    etc.write("clusters.d/b.yaml", CLUSTER.format(name="etl").replace("alpha", "beta"))
    config = etc.load()
    assert config.problems == ()
    assert [cluster.name for cluster in config.clusters] == ["alpha/etl", "beta/etl"]


def test_a_wrong_core_file_stops_all_and_tells_the_clusters_mistakes_too(etc: Etc) -> None:
    etc.write("fallow.yaml", CORE + "onExit: x\n")
    etc.write("clusters.d/wrong.yaml", CLUSTER.format(name="wrong") + "weigth: 2\n")
    with pytest.raises(ConfigError) as caught:
        etc.load()
    assert caught.value.exit_code == 2
    assert "fallow.yaml:3: onExit" in str(caught.value)
    assert "wrong.yaml:6: weigth" in str(caught.value)
    assert str(caught.value).endswith("\n2 problems in 2 files")


def test_hidden_files_and_the_core_file_are_no_cluster_files(etc: Etc) -> None:
    etc.write("fallow.yaml", CORE + "clustersDir: .\n")
    etc.write(".#etl.yaml", "an editor's lock")
    etc.write("etl.yaml", CLUSTER.format(name="etl"))
    config = etc.load()
    assert config.problems == ()
    assert [cluster.name for cluster in config.clusters] == ["alpha/etl"]


@pytest.mark.parametrize("named", ["{root}", "."])
def test_the_core_file_is_no_cluster_file_whatever_the_form_of_its_path(
    etc: Etc, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    etc.write("fallow.yaml", CORE + f"clustersDir: {named.format(root=etc.root)}\n")
    etc.write("etl.yaml", CLUSTER.format(name="etl"))
    monkeypatch.chdir(etc.root.parent)
    for path in (Path(etc.root.name) / "fallow.yaml", etc.root / ".." / etc.root.name):
        config = load(path, etc.loader)
        assert (config.problems, [cluster.name for cluster in config.clusters]) == ((), ["alpha/etl"])


def test_a_directory_named_as_a_cluster_file_is_told(etc: Etc) -> None:
    (etc.root / "clusters.d" / "etl.yaml").mkdir(parents=True)
    assert [problem.message for problem in etc.load().problems] == ["a directory, not a file"]


class Strange:
    """A model that is not pydantic's."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def model_validate(self, _: Any) -> Any:
        raise self._error


class ListedError(Exception):
    def __init__(self, errors: Any) -> None:
        super().__init__("as a whole")
        self._errors = errors

    def errors(self) -> Any:
        return self._errors


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (KeyError("host"), "5: spec: 'host'"),
        (SystemExit(), "5: spec: SystemExit"),
        (ListedError([{"loc": ("host",), "msg": "is down"}]), "5: spec.host: is down"),
        (ListedError([{"loc": ("host",), "msg": "is down", "input": "rm"}]), "5: spec.host: found 'rm'; is down"),
        (ListedError([{"msg": "no place"}]), "5: spec: as a whole"),
        (ListedError(None), "5: spec: as a whole"),
        (ListedError([{"loc": ("host",), "msg": "?", "type": "extra_forbidden"}]), "5: spec.host: unknown key"),
    ],
)
def test_whatever_a_plugins_model_raises_is_told_at_its_line(etc: Etc, error: BaseException, problem: str) -> None:
    etc.cluster("etl")
    etc.loader.model = lambda: Strange(error)
    (told,) = etc.load().problems
    assert str(told) == f"{told.file}:{problem}"


def test_a_plugin_whose_model_cannot_be_imported_is_told(etc: Etc) -> None:
    def fail() -> Any:
        raise ImportError("no protobuf")

    etc.cluster("etl")
    etc.loader.model = fail
    (told,) = etc.load().problems
    source = "plugin 'alpha' of fallow-fake 1.2 (fake:PLUGIN)"
    assert str(told) == f"{told.file}:4: plugin: {source} has no model of spec: ImportError: no protobuf"


@pytest.mark.parametrize("group", ["..", "../etc", "/a/../../etc", "web.slice/.."])
def test_a_group_outside_of_the_hierarchy_is_refused(group: str) -> None:
    adapter = TypeAdapter(Group)
    assert adapter.validate_python("/web..slice/a/") == "web..slice/a"
    with pytest.raises(ValidationError, match=r"expected a path below the cgroup root, without \.\."):
        adapter.validate_python(group)
