import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from core.tests.fake_standalone import cluster_file, config

from fallow_core.config.changes import in_force, policy_differs
from fallow_core.config.file_stamps import FileChanges, stamps
from fallow_core.config.problems import Problem
from fallow_core.config.settings import ClusterSettings, Config
from fallow_core.model.node_policies import NodePolicies
from fallow_core.model.policy import AccountPolicy, ExitMode

FOLDER = Path("/etc/fallow")
FILE = FOLDER / "clusters.d" / "etl.yaml"


def cluster(name: str = "etl", weight: int = 1) -> ClusterSettings:
    return replace(cluster_file(name, print, FOLDER), account=AccountPolicy(weight=weight))


def files(*clusters: ClusterSettings, named: tuple[str, ...] = (), **changes: Any) -> Config:
    every = frozenset({*named, *(each.name for each in clusters)})
    return replace(config(FOLDER, {}), clusters=clusters, named=every, **changes)


def weights(found: Config) -> dict[str, int]:
    return {each.name: each.account.weight for each in found.clusters}


# What is in force


def test_clusters_are_those_of_the_files() -> None:
    old, read = files(cluster("etl"), cluster("ops")), files(cluster("etl", 3), cluster("new"))
    assert weights(in_force(old, read)) == {"alpha/etl": 3, "alpha/new": 1}


def test_a_cluster_whose_file_is_refused_stays_as_it_was() -> None:
    problem = Problem(file=FILE, message="bad")
    found = in_force(files(cluster("etl", 2)), files(problems=(problem,)))
    assert weights(found) == {"alpha/etl": 2}
    assert found.problems == (problem,)


def test_a_cluster_that_moved_to_a_file_that_is_refused_stays_as_it_was() -> None:
    problem = Problem(file=FOLDER / "clusters.d" / "other.yaml", message="bad")
    assert weights(in_force(files(cluster("etl", 2)), files(problems=(problem,), named=("alpha/etl",)))) == {
        "alpha/etl": 2
    }


def test_a_file_that_was_moved_is_the_same_cluster() -> None:
    moved = replace(cluster("etl", 2), file=FOLDER / "clusters.d" / "other.yaml")
    assert in_force(files(cluster("etl", 2)), files(moved)).clusters == (moved,)


def test_while_the_directory_cannot_be_read_no_cluster_is_removed() -> None:
    problem = Problem(file=FOLDER / "fallow.yaml", key=("clustersDir",), message="cannot be read")
    assert weights(in_force(files(cluster()), files(problems=(problem,)))) == {"alpha/etl": 1}


def test_of_a_core_file_with_a_key_that_needs_a_restart_nothing_is_taken() -> None:
    read = files(cluster("etl", 2), state_dir=Path("/elsewhere"), on_exit=ExitMode.KEEP)
    found = in_force(files(cluster()), read)
    assert (found.state_dir, found.on_exit) == (FOLDER / "state", ExitMode.FLOOR)
    assert weights(found) == {"alpha/etl": 2}
    text = "stateDir: restart Fallow for stateDir; until then the settings from before stay in force"
    assert [str(problem) for problem in found.problems] == [f"/etc/fallow/fallow.yaml: {text}"]


BATCH = replace(cluster("etl"), node_selector={"pool": "batch"})


def test_a_cluster_whose_selector_does_not_match_any_more_is_none_of_this_host() -> None:
    found = in_force(files(cluster("etl")), files(not_selected=(BATCH,), named=("alpha/etl",)))
    assert (found.clusters, found.not_selected) == ((), (BATCH,))


def test_new_labels_select_a_cluster_whose_file_is_refused() -> None:
    old = files(not_selected=(BATCH,), named=("alpha/etl",))
    read = files(problems=(Problem(file=FILE, message="bad"),), node_labels={"pool": "batch"})
    assert in_force(old, read).clusters == (BATCH,)


@pytest.mark.parametrize(
    ("read", "differs"),
    [
        (files(cluster()), False),
        (files(cluster(), on_exit=ExitMode.KEEP, log_level="debug"), False),
        (files(cluster(weight=2)), True),
        (files(cluster(), cluster("ops")), True),
        (files(cluster(), policies=NodePolicies()), True),
    ],
)
def test_a_policy_is_who_may_have_how_much(read: Config, differs: bool) -> None:
    assert policy_differs(files(cluster()), read) is differs


# How files look


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "clusters.d").mkdir()
    (tmp_path / "fallow.yaml").write_text("a")
    (tmp_path / "clusters.d" / "etl.yaml").write_text("a")
    return tmp_path


def looked(folder: Path) -> Any:
    return stamps(folder / "fallow.yaml", folder / "clusters.d")


@pytest.mark.parametrize("name", ["fallow.yaml", "clusters.d/etl.yaml", "clusters.d/new.yaml", "clusters.d/new.yml"])
def test_a_file_that_is_changed_or_added_is_noticed_when_it_rests(folder: Path, name: str) -> None:
    watch = FileChanges(looked(folder))
    assert not watch.settled(looked(folder))
    (folder / name).write_text("bb")
    assert not watch.settled(looked(folder))
    (folder / name).write_text("ccc")
    assert not watch.settled(looked(folder))
    assert watch.settled(looked(folder))
    watch.read = looked(folder)
    assert not watch.settled(looked(folder))


def test_a_file_that_is_removed_replaced_or_made_unreadable_is_noticed(folder: Path) -> None:
    file, other = folder / "clusters.d" / "etl.yaml", folder / "other"
    before = looked(folder)
    other.write_text("b")
    stat = file.stat()
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # of the same size and age
    other.replace(file)
    replaced = looked(folder)
    file.chmod(0)
    closed = looked(folder)
    file.unlink()
    assert len({str(each) for each in (before, replaced, closed, looked(folder))}) == 4


def test_what_is_no_cluster_file_is_not_looked_at(folder: Path) -> None:
    before = looked(folder)
    (folder / "clusters.d" / "notes.txt").write_text("x")
    (folder / "clusters.d" / "etl.yaml~").write_text("x")
    assert looked(folder) == before


def test_a_directory_that_is_gone_is_noticed(folder: Path) -> None:
    before = looked(folder)
    (folder / "clusters.d").rename(folder / "aside")
    assert looked(folder) != before


def test_without_a_look_from_before_the_first_one_counts(folder: Path) -> None:
    watch = FileChanges(None)
    assert not watch.settled(looked(folder))
    assert not watch.settled(looked(folder))
