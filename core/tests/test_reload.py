import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from core.tests.fake_framework import FLOOR, size
from core.tests.reload_files import Place, framework

from fallow_core.api.encoding import to_json
from fallow_core.cli.render_status import status_lines
from fallow_core.model.policy import SwitchState
from fallow_core.runtime import reload

Lines = Callable[[str], list[str]]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Lines:
    caplog.set_level("INFO")
    return lambda name: [r.getMessage() for r in caplog.records if r.getMessage().split()[0] == name]


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Two clusters that are lent half of the host each, and the framework of a third one."""
    monkeypatch.setattr(reload, "LOOK_SECONDS", 0.05)
    frameworks = {name: framework(**{f"{name}1": size(8)}) for name in ("etl", "ops", "new")}
    place = Place(tmp_path_factory.mktemp("f"), **frameworks)
    place.cluster("etl")
    place.cluster("ops")
    place.start()
    place.until(lambda: sizes(place) == {"etl": size(5), "ops": size(5)})
    yield place
    place.fallow.close()


def sizes(place: Place) -> dict[str, object]:
    return {name: place.frameworks[name].sizes()[f"{name}1"] for name in ("etl", "ops")}


def shown(place: Place) -> dict[str, Any]:
    return to_json(place.fallow.requests.status())


def names(place: Place) -> list[str]:
    return sorted(place.fallow.controller.clusters)


# Cluster files


def test_files_that_stay_as_they_are_are_not_read_again(place: Place) -> None:
    place.steps(0.3)
    assert place.fallow.refusals.taken == place.fallow.refusals.refused == 0


def test_an_added_cluster_file_takes_effect_by_itself(place: Place) -> None:
    place.cluster("new")
    place.until(lambda: "alpha/new" in names(place) and place.frameworks["new"].calls)
    assert place.fallow.controller.names == ("alpha/etl", "alpha/new", "alpha/ops")
    assert place.builds[2:] == ["new"]


def test_labels_and_selectors_add_and_remove_a_cluster_as_its_file_does(place: Place, lines: Lines) -> None:
    place.cluster("etl", "nodeSelector: {pool: batch}\n")
    place.until(lambda: names(place) == ["alpha/ops"])
    why = "its nodeSelector pool=batch does not match this host's labels (none)"
    status = place.fallow.requests.status()
    assert status.not_selected == {"alpha/etl": why}
    assert f"! alpha/etl: not used on this host: {why}" in "\n".join(status_lines(status))
    assert len(lines("cluster_leaves")) == 1
    place.core(node="node: {name: n1, labels: {pool: batch}}")
    place.until(lambda: sizes(place) == {"etl": size(5), "ops": size(5)})
    assert (place.fallow.refusals.files, sorted(place.builds[:2]), place.builds[2:]) == ({}, ["etl", "ops"], ["etl"])
    assert place.fallow.controller.nodes[0].labels == {"pool": "batch"}


def test_a_weight_is_changed_without_another_instance(place: Place) -> None:
    place.cluster("etl", "weight: 4\n")
    place.until(lambda: sizes(place) == {"etl": size(8), "ops": size(2)})
    assert len(place.builds) == 2


def test_a_bad_file_is_refused_shown_and_the_old_one_stays(place: Place, lines: Lines) -> None:
    file = place.cluster("etl", "weigth: 4\n")
    place.until(lambda: place.fallow.refusals.files)
    status = shown(place)
    (refused,) = status["refused_files"]
    assert refused["file"] == str(file)
    assert "unknown key; did you mean 'weight'?" in refused["problems"][0]
    assert status["config_problems"][0].startswith(f"{file}:6: weigth: unknown key")
    assert "(refused since 20" in status["config_problems"][0]
    assert len(lines("file_refused")) == 1
    place.steps(0.3)
    assert names(place) == ["alpha/etl", "alpha/ops"]
    assert not place.frameworks["etl"].closed.is_set()
    assert place.fallow.refusals.refused == 1
    place.cluster("etl", "weight: 4\n")
    place.until(lambda: not place.fallow.refusals.files and sizes(place) == {"etl": size(8), "ops": size(2)})


def test_since_when_a_file_is_refused_does_not_move_while_it_stays_wrong(place: Place) -> None:
    file = place.cluster("etl", "a: 1\n")
    place.read_again()
    since = place.fallow.refusals.files[file][0]
    place.cluster("etl", "b: 1\n")
    place.read_again()
    assert place.fallow.refusals.files[file][0] == since


def test_a_file_that_is_mended_while_it_is_written_does_no_harm(
    place: Place, monkeypatch: pytest.MonkeyPatch, lines: Lines
) -> None:
    file = place.folder / "clusters.d" / "etl.yaml"
    whole = file.read_text() + "weight: 4\n"
    for end in range(0, len(whole), 12):  # never two looks without a change
        file.write_text(whole[:end])
        place.fallow.step()
    file.write_text(whole)
    place.until(lambda: sizes(place) == {"etl": size(8), "ops": size(2)})
    assert len(place.builds) == 2
    assert lines("cluster_leaves") == []


# A changed spec


def test_a_changed_spec_is_built_beside_and_takes_the_rows_over(place: Place) -> None:
    new = place.frameworks["new"]
    new.nodes = place.frameworks["etl"].nodes  # the same cluster, asked another way
    place.cluster("etl", host="new")
    place.until(lambda: place.frameworks["etl"].closed.is_set())
    assert place.builds[2:] == ["new"]
    cluster = place.fallow.controller.clusters["alpha/etl"]
    assert cluster.rows.keys() == {key for key in cluster.rows if key.framework_node == "etl1"}
    before = len(place.frameworks["etl"].calls)
    place.host.used = size(4)
    place.until(lambda: sizes(place)["etl"] == size(3))
    assert (len(place.frameworks["etl"].calls), len(new.calls) > 0) == (before, True)


def test_a_changed_spec_that_cannot_be_built_leaves_the_old_instance_at_work(place: Place) -> None:
    place.cluster("etl", host="nowhere")
    place.until(lambda: place.fallow.builds.failed)
    assert "KeyError: 'nowhere'; the instance from before goes on" in shown(place)["failed"]["alpha/etl"]
    place.host.used = size(4)
    place.until(lambda: sizes(place) == {"etl": size(3), "ops": size(3)})
    place.cluster("etl")  # as it was
    place.until(lambda: not place.fallow.builds.failed)
    assert not place.frameworks["etl"].closed.is_set()
    assert place.builds[2:] == ["nowhere"]


def test_a_build_that_hangs_does_not_stand_in_the_way_of_the_file_that_mends_it(place: Place) -> None:
    hangs, before = threading.Event(), place.frameworks["ops"]
    place.wait["nowhere"] = hangs
    place.cluster("etl", host="nowhere")
    place.read_again()
    place.until(lambda: "nowhere" in place.builds)
    place.frameworks["new"].nodes = place.frameworks["etl"].nodes
    place.cluster("etl", host="new")
    place.until(lambda: place.frameworks["etl"].closed.is_set())
    place.frameworks["nowhere"] = framework()
    hangs.set()
    place.until(place.frameworks["nowhere"].closed.is_set)  # nobody wants it any more
    assert not before.closed.is_set()


def test_reading_that_hangs_is_shown_and_keeps_nothing_from_going_on(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload, "READ_SECONDS", 0.1)
    hangs = threading.Event()
    place.wait["alpha"] = hangs
    place.cluster("etl", "weight: 4\n")
    place.until(lambda: "reading the files takes too long" in str(shown(place)["config_problems"]))
    place.host.used = size(4)
    place.until(lambda: sizes(place) == {"etl": size(3), "ops": size(3)})
    hangs.set()
    place.until(lambda: place.fallow.refusals.taken == 1)
    assert shown(place)["config_problems"] == []


# Removed


def test_a_removed_cluster_gets_its_floor_and_leaves_when_nothing_of_it_runs(place: Place, lines: Lines) -> None:
    node = place.frameworks["etl"].nodes["etl1"]
    node.allocated = size(2)
    place.steps(1.2)
    (place.folder / "clusters.d" / "etl.yaml").unlink()
    place.until(lambda: sizes(place)["etl"] == FLOOR)
    place.until(lambda: "tasks run on etl1" in shown(place)["removals"].values())
    text = "\n".join(status_lines(place.fallow.requests.status()))
    assert "alpha/etl: removed, but it still counts: tasks run on etl1" in " ".join(text.split())
    place.until(lambda: sizes(place)["ops"] == size(8))
    assert node.most.cpu_milli + place.frameworks["ops"].nodes["ops1"].most.cpu_milli <= 10_000
    node.allocated = size(0)
    place.until(lambda: names(place) == ["alpha/ops"] and place.frameworks["etl"].closed.is_set())
    assert shown(place)["removals"] == {}
    assert lines("cluster_leaves") == ["cluster_leaves cluster=alpha/etl mode=floor"]


def test_nobody_is_lent_what_a_removed_cluster_may_still_promise(place: Place) -> None:
    place.core("onExit: original\n")
    place.read_again()
    (place.folder / "clusters.d" / "etl.yaml").unlink()
    place.until(lambda: place.fallow.controller.state.removal_reasons)
    place.steps(1.5)
    assert sizes(place) == {"etl": size(5), "ops": size(5)}
    assert "its scheduler may still start tasks" in place.fallow.controller.state.removal_reasons["alpha/etl"]


def test_a_file_that_comes_back_takes_the_cluster_on_where_it_was(place: Place) -> None:
    place.frameworks["etl"].nodes["etl1"].allocated = size(1)
    file = place.folder / "clusters.d" / "etl.yaml"
    text = file.read_text()
    place.steps(1.2)
    file.unlink()
    place.until(lambda: place.fallow.controller.state.removal_reasons)
    file.write_text(text)
    place.until(
        lambda: (
            not place.fallow.controller.state.removal_reasons
            and place.frameworks["etl"].nodes["etl1"].most.cpu_milli > 4000
        )
    )
    assert len(place.builds) == 2


def test_a_cluster_that_has_left_can_come_back(place: Place) -> None:
    file = place.folder / "clusters.d" / "etl.yaml"
    text = file.read_text()
    file.unlink()
    place.read_again()
    place.until(lambda: names(place) == ["alpha/ops"])
    file.write_text(text)
    place.read_again()
    place.until(lambda: names(place) == ["alpha/etl", "alpha/ops"])
    assert len(place.builds) == 3
    place.until(lambda: place.fallow.controller.clusters["alpha/etl"].rows)


def test_a_folder_that_is_gone_removes_no_cluster(place: Place) -> None:
    directory = place.folder / "clusters.d"
    directory.rename(place.folder / "aside")
    place.until(lambda: place.fallow.refusals.files)
    place.steps(0.2)
    assert place.fallow.controller.names == ("alpha/etl", "alpha/ops")
    assert place.fallow.controller.state.removal_reasons == {}
    (place.folder / "aside").rename(directory)
    place.until(lambda: not place.fallow.refusals.files)


def test_the_other_cluster_keeps_its_switch_rows_and_instance(place: Place) -> None:
    place.fallow.controller.set_switch("alpha/ops", SwitchState.HOLD, "ada", "maintenance")
    cluster = place.fallow.controller.clusters["alpha/ops"]
    (row,) = cluster.rows.values()
    (place.folder / "clusters.d" / "etl.yaml").unlink()
    place.until(lambda: names(place) == ["alpha/ops"])
    assert place.fallow.controller.clusters["alpha/ops"] is cluster
    assert place.fallow.controller.switch("alpha/ops").who == "ada"
    assert cluster.rows[row.key].in_force == size(5)  # on hold: not even what the other one left
    assert not place.frameworks["ops"].closed.is_set()


# The core file


def test_a_changed_policy_takes_effect(place: Place) -> None:
    place.core(
        capacity="capacity: {cpu: {watermark: 60%}, memory: {watermark: 60%}}", sampleInterval="sampleInterval: 200ms"
    )
    place.until(lambda: sizes(place) == {"etl": size(3), "ops": size(3)})
    assert place.fallow.config.sample_interval_seconds == 0.2


def test_publishing_can_be_stopped_by_the_file(place: Place) -> None:
    place.core(publishing="publishing: {mode: observe}")
    place.until(lambda: place.fallow.controller.state.publishing.mode == "observe")
    place.host.used = size(8)
    place.steps(0.5)
    assert sizes(place) == {"etl": size(5), "ops": size(5)}


@pytest.mark.parametrize(
    ("changes", "more", "key"),
    [
        ({"stateDir": "stateDir: other"}, "", "stateDir"),
        ({"controlSocket": "controlSocket: other"}, "", "controlSocket"),
        ({"metrics": "metrics: {port: 9999}"}, "", "metrics"),
        ({"node": "node: {name: n2}"}, "", "node.name"),
        ({}, "clustersDir: other", "clustersDir"),
        ({}, "controlGroup: staff", "controlGroup"),
    ],
)
def test_what_a_process_keeps_for_life_is_refused_with_all_else_in_the_file(
    place: Place, changes: dict[str, str], more: str, key: str
) -> None:
    before = place.fallow.config
    place.core(more, capacity="capacity: {cpu: {watermark: 1%}}", **changes)
    place.read_again()
    (problem,) = shown(place)["config_problems"]
    assert f"fallow.yaml: {key}: restart Fallow for {key}" in problem
    assert place.fallow.config.policies == before.policies
    assert place.fallow.config.state_dir == before.state_dir
    place.core()
    place.read_again()
    assert place.fallow.refusals.files == {}


def test_a_bad_core_file_stays_out_and_cluster_files_still_count(place: Place) -> None:
    place.core("nonsense: 1\n")
    place.cluster("etl", "weight: 4\n")
    place.until(lambda: sizes(place) == {"etl": size(8), "ops": size(2)})
    assert [file.name for file in place.fallow.refusals.files] == ["fallow.yaml"]


# Metrics


def test_what_is_refused_and_when_files_were_read_is_measured(place: Place) -> None:
    def values(name: str) -> dict[tuple[str, ...], float]:
        samples = [s for family in place.fallow.metrics() for s in family.samples if s.name == name]
        return {tuple(s.labels.values()): s.value for s in samples}

    at = values("fallow_config_last_taken_timestamp_seconds")[()]
    file = place.cluster("etl", "a: 1\nb: 2\n")
    place.read_again()
    assert values("fallow_config_file_problems") == {(str(file),): 2}
    assert values("fallow_config_problems") == {(): 2}
    assert values("fallow_config_last_taken_timestamp_seconds") == {(): at}
    place.cluster("etl")
    place.read_again()
    assert values("fallow_config_file_problems") == {}
    assert values("fallow_config_last_taken_timestamp_seconds")[()] > at
    assert values("fallow_config_reads_total") == {("taken",): 1, ("refused",): 1}
