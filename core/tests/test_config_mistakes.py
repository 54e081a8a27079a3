"""A directory full of mistakes: every one is told at once, with file, line, what was found and what is allowed."""

import re
from pathlib import Path
from typing import Any

import pytest

from fallow_core.cli.main import main

PLUGIN = """
    from pydantic import BaseModel, ConfigDict, Field
    from fallow_hookspecs import Plugin

    class Manager(BaseModel):
        model_config = ConfigDict(extra="forbid")
        host: str
        port: int = Field(default=8033, ge=1)

    class Spec(BaseModel):
        model_config = ConfigDict(extra="forbid")
        manager: Manager | str
        users: list[str] = []

    PLUGIN = Plugin(name="alpha", api_levels=(0, 0), config_model=lambda: Spec, build=print)
"""

# Line by line: the file, and what is told of the line after `line: `; an empty text where it is right.
CORE = [
    ("apiVersion: fallow/v2", "apiVersion: found 'fallow/v2'; expected 'fallow/v1'"),
    ("kind: Fallow", ""),
    ("clusterDir: clusters.d", "clusterDir: unknown key; did you mean 'clustersDir'? allowed here: apiVersion, "),
    ("sampleInterval: 1", "sampleInterval: found 1; expected a duration such as 500ms, 20s, 5m or 1h30m"),
    ("onExit: flor", "onExit: found 'flor'; expected 'keep', 'floor' or 'original'"),
    ("controlSocket: ''", "controlSocket: found ''; expected a path"),
    ("metrics: {address: localhost, port: 70000}", "metrics.address: found 'localhost'; expected an IP address"),
    ("capacity:", ""),
    ("  cpu:", ""),
    (
        "    watermark: 250",
        "capacity.cpu.watermark: found 250; expected whole percent from 0 to 100, such as 65 or 65%",
    ),
    ("    reserved: 0.3333", "capacity.cpu.reserved: found 0.3333; expected cores such as 2 or 0.5, or milli-cores"),
    ("  memory:", ""),
    ("    cap: 0.29", "capacity.memory.cap: found 0.29; expected whole percent from 0 to 100"),
    ("    reserved: 4 gigabytes", "capacity.memory.reserved: found '4 gigabytes'; expected bytes such as 1000000000"),
    ("publishing:", ""),
    ("  mode: be", "publishing.mode: found 'be'; expected 'observe' or 'enforce'"),
    (
        "  growth_delay: 60s",
        "publishing.growth_delay: unknown key; did you mean 'growthDelay'? allowed here: deadBand, ",
    ),
    ("  interval: 0s", "publishing.interval: found '0s'; expected a duration from 1s to 10m"),
    ("log:", "log: found nothing; expected a mapping"),
]

FIRST = [
    ("apiVersion: fallow/v1", "metadata: this required key is missing; expected a mapping"),
    ("kind: Cluster", ""),
    ("plugin: alpha", ""),
    ("weight: 0", "weight: found 0; expected a value greater than or equal to 1"),
    ("roles: [controler]", "roles[0]: found 'controler'; expected 'controller' or 'agent'"),
    ("limit: {cpu: 101%}", "limit.cpu: found '101%'; expected whole percent from 0 to 100"),
    ("nodeSelector:", ""),
    ("  gpu: true", "nodeSelector.gpu: found true; expected a string; put it in quotes"),
    ("weight: 2", "weight: the key appears twice, first in line 4; remove one"),
    ("spec:", ""),
    ("  manager:", "spec.manager.host: this required key is missing; expected a string"),
    ("    prot: 8033", "spec.manager.prot: unknown key; did you mean 'port'? allowed here: host, port"),
    ("  users: [etl, 5]", "spec.users[1]: found 5; expected a string; put it in quotes"),
]

SECOND = [
    ("apiVersion: fallow/v1", ""),
    ("kind: Cluster", ""),
    ("metadata: {name: ETL_1}", "metadata.name: found 'ETL_1'; expected at most 63 lower-case letters, digits and '-'"),
    ("plugin: alpah", "plugin: plugin 'alpah' is not installed; did you mean 'alpha'?"),
    ("spec: []", "spec: found a list; expected a mapping"),
]

WRONG_PLACE = [
    ("apiVersion: fallow/v1", ""),
    ("kind: Fallow", "kind: found 'Fallow'; expected kind: Cluster"),
]


@pytest.fixture
def directory(tmp_path: Path, install: Any) -> Path:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", PLUGIN)
    directory = tmp_path / "etc"
    (directory / "clusters.d").mkdir(parents=True)
    return directory


def expected(name: str, lines: list[tuple[str, str]]) -> list[str]:
    return [f"{name}:{number}: {text}" for number, (_, text) in enumerate(lines, 1) if text]


def test_all_mistakes_of_all_files_are_told_at_once(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {
        "fallow.yaml": CORE,
        "clusters.d/first.yaml": FIRST,
        "clusters.d/second.yaml": SECOND,
        "clusters.d/third.yaml": WRONG_PLACE,
    }
    for name, lines in files.items():
        (directory / name).write_text("".join(f"{line}\n" for line, _ in lines))
    (directory / "clusters.d/broken.yaml").write_text("kind: [Cluster\n")
    (directory / "clusters.d/other.yml").write_text("kind: Cluster\n")
    (directory / "clusters.d/README").write_text("no cluster file")

    assert main(["config", "check", str(directory)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    told = err.splitlines()
    wanted = [
        *[text for name, lines in files.items() for text in expected(name, lines)],
        "fallow.yaml:7: metrics.port: found 70000; expected a value less than or equal to 65535",
        "clusters.d/broken.yaml:2: not YAML: ",
        "clusters.d/other.yml: not read: a cluster file's name ends in .yaml; rename it",
    ]
    for text in wanted:
        assert [line for line in told if line.startswith(f"{directory}/{text}")], text
    extra = [line for line in told if not any(line.startswith(f"{directory}/{text}") for text in wanted)]
    # a union says for each branch why it does not fit
    assert extra == [
        f"{directory}/clusters.d/first.yaml:11: spec.manager: found a mapping; expected a string",
        f"{len(told) - 1} problems in 6 files",
    ]


ALL = "apiVersion: fallow/v1\nkind: Fallow\n"
WINDOWS = "capacity:\n  schedule:\n    windows:\n      - "
POOLS = "pools:\n  - {name: a, nodeSelector: {x: '1'}, capacity: {}}\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("publishing: {withdrawAfter: 30s}", "3: publishing.withdrawAfter: degradeAfter is 60s and withdrawAfter 30s"),
        ("publishing: {degradeAfter: 1h}", "3: publishing.degradeAfter: degradeAfter is 3600s and withdrawAfter 900s"),
        ("publishing: {degradeAfter: 1s}", "3: publishing.degradeAfter: sampleInterval is 1s and degradeAfter 1s"),
        ("sampleInterval: 1m", "3: sampleInterval: sampleInterval is 60s and degradeAfter 60s"),
        ("metrics:", "3: metrics: found nothing; expected a mapping with address and port, or off"),
        ("metrics: false", "3: metrics: found false; expected a mapping with address and port, or off"),
        ("controlGroup: 5", "3: controlGroup: found 5; expected a string; put it in quotes"),
        ('stateDir: "a\\0b"', r"3: stateDir: found 'a\x00b'; expected a path"),
        (f"controlSocket: /{'x' * 107}", "3: controlSocket: the path is longer than 107 bytes, the most for a socket"),
        ("clustersDir: nowhere", "3: clustersDir: the clusters' directory "),
        ("node: {name: a b}", "3: node.name: found 'a b'; expected a host name or an IP address"),
        (
            "capacity: {cpu: {policy: peak}}",
            "3: capacity.cpu.policy: found 'peak'; expected 'usage', 'request' or 'max'",
        ),
        (
            "capacity: {cpu: {overcommit: 90}}",
            "3: capacity.cpu.overcommit: found 90; expected whole percent from 100 to",
        ),
        ("capacity: {cpu: {reserved: 101%}}", "3: capacity.cpu.reserved: found '101%'; expected whole percent from 0"),
        (
            "capacity: {memory: {reserved: -1}}",
            "3: capacity.memory.reserved: found -1; expected bytes such as 1000000000",
        ),
        (
            f"{WINDOWS}{{from: '24:01', to: 06:00}}",
            "6: capacity.schedule.windows[0].from: found '24:01'; expected a time",
        ),
        (f"{WINDOWS}{{from: 00:00, to: 6:00}}", "6: capacity.schedule.windows[0].to: found '6:00'; expected a time of"),
        (f"{WINDOWS}{{from: 00:00}}", "6: capacity.schedule.windows[0].to: this required key is missing"),
        (f"{WINDOWS}{{days: [Mon], from: 00:00, to: 01:00}}", "6: capacity.schedule.windows[0].days[0]: found 'Mon'; "),
        (f"{WINDOWS}{{days: [], from: 00:00, to: 01:00}}", "6: capacity.schedule.windows[0].days: "),
        ("capacity: {schedule: {windows: []}}", "3: capacity.schedule.windows: "),
        (
            "capacity: {schedule: {timeZone: CET/Berlin, windows: [{from: 00:00, to: 01:00}]}}",
            "3: capacity.schedule.timeZone: found 'CET/Berlin'; expected a time zone that this host knows, such as UTC",
        ),
        (
            "capacity: {schedule: {timeZone: /etc, windows: []}}",
            "3: capacity.schedule.timeZone: found '/etc'; expected",
        ),
        (
            POOLS + "  - {name: b, nodeSelector: {x: '1', y: '2'}, capacity: {}}",
            "5: pools[1].nodeSelector: every node with these labels is in the pool 'a'; the first pool counts, so move",
        ),
        (
            POOLS + "  - {name: a, nodeSelector: {y: '2'}, capacity: {}}",
            "5: pools[1].name: there is already a pool 'a'",
        ),
        ("pools: [{name: a, nodeSelector: {}, capacity: {}}]", "3: pools[0].nodeSelector: "),
        ("nodes: [{name: n, capacity: {}}, {name: n, capacity: {}}]", "3: nodes[1].name: the node 'n' is there twice"),
        (
            "qos: {memoryReclaim: {threshold: 90}}",
            "3: qos.memoryReclaim.threshold: memoryReclaim.threshold is 90 % and memoryEvict.threshold 90 %",
        ),
        (
            "qos: {memoryReclaim: {criticalThreshold: 85}}",
            "3: qos.memoryReclaim.criticalThreshold: memoryEvict.threshold is 90 % and ",
        ),
        (
            "qos: {cpuEvict: {satisfaction: 70}}",
            "3: qos.cpuEvict.satisfaction: satisfaction is 70 % and until 70 %; until must be above",
        ),
        ("qos: {memoryEvict: {lowerThreshold: 0}}", "3: qos.memoryEvict.lowerThreshold: found 0; expected "),
        ("qos: {cpuSuppress: {step: 0%}}", "3: qos.cpuSuppress.step: found '0%'; expected "),
        (
            "qos: {cgroupReconcile: {memoryLimit: 90%}}",
            "3: qos.cgroupReconcile.memoryLimit: found '90%'; expected whole percent from 100 to 500",
        ),
        ("cgroup_notify: 1", "3: cgroup_notify: unknown key; allowed here: apiVersion, "),
    ],
)
def test_a_value_that_makes_no_sense_with_the_others_is_refused(
    directory: Path, capsys: pytest.CaptureFixture[str], text: str, problem: str
) -> None:
    (directory / "fallow.yaml").write_text(f"{ALL}{text}\n")
    assert main(["config", "check", str(directory)]) == 2
    assert capsys.readouterr().err.startswith(f"{directory}/fallow.yaml:{problem}")


def test_a_directory_without_a_mistake_is_told_to_be_right(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "fallow.yaml").write_text(ALL)
    for name in ("etl", "adhoc"):
        text = (
            f"apiVersion: fallow/v1\nkind: Cluster\nmetadata: {{name: {name}}}\nplugin: alpha\nspec: {{manager: rm}}\n"
        )
        (directory / f"clusters.d/{name}.yaml").write_text(text)
    assert main(["config", "check", str(directory)]) == 0
    assert capsys.readouterr() == ("ok; publishing mode observe; clusters: alpha/adhoc, alpha/etl\n", "")


def test_a_cluster_that_does_not_select_this_host_is_named(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "fallow.yaml").write_text(f"{ALL}node: {{labels: {{pool: web}}}}\n")
    text = "apiVersion: fallow/v1\nkind: Cluster\nmetadata: {name: etl}\nplugin: alpha\nspec: {manager: rm}\n"
    (directory / "clusters.d/etl.yaml").write_text(f"{text}nodeSelector: {{pool: batch}}\n")
    assert main(["config", "check", str(directory)]) == 0
    why = "its nodeSelector pool=batch does not match this host's labels (pool=web)"
    expected = f"ok; publishing mode observe; clusters: none\nalpha/etl: not used on this host: {why}\n"
    assert capsys.readouterr() == (expected, "")


def test_a_path_without_a_configuration_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check", str(tmp_path)]) == 2
    text = f"{tmp_path}/fallow.yaml: cannot be read: No such file or directory\n1 problem in 1 file\n"
    assert capsys.readouterr().err == text


def test_every_line_of_the_output_is_a_place_and_a_text(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (directory / "fallow.yaml").write_text("".join(f"{line}\n" for line, _ in CORE))
    main(["config", "check", str(directory)])
    *lines, _ = capsys.readouterr().err.splitlines()
    assert len(lines) >= 10
    assert all(re.match(rf"{re.escape(str(directory))}/fallow\.yaml:\d+: [\w.]+: .+", line) for line in lines)
