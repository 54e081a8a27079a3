"""`fallow run` beside two real ResourceManagers and an application whose containers no failover may end."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.e2e.yarn.application import Application, containers_ended, containers_running
from tests.e2e.yarn.fallow_process import VCORE_MILLI, Fallow
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn.rest import USER, wait_for
from tests.e2e.yarn.sizes import (
    CONTAINER_MB,
    CONTAINERS,
    FAR_MS,
    LENT_MB,
    RESERVED_CPU_MILLI,
    SECONDS,
    SETUP,
    are_floors,
    are_lent,
    configured,
    resize,
    sizes,
    wait_for_sizes,
)
from tests.e2e.yarn_ha.pair import Pair

from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import rm_addresses

pytestmark = pytest.mark.timeout(6 * SECONDS, func_only=True)  # the first fixture may fetch jars


@pytest.fixture(scope="module")
def pair(hadoop_jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with Pair(hadoop_jars, tmp_path_factory.mktemp("ha") / "cluster", SETUP) as pair:
        yield pair


@pytest.fixture(scope="module")
def app(pair: Pair) -> Application:
    app = pair.submit(CONTAINERS, CONTAINER_MB, 1, "exec sleep 3600")
    wait_for(lambda: len(containers_running(app)) == CONTAINERS, 60, "the containers")
    return app


@pytest.fixture
def fallow(pair: Pair, app: Application, tmp_path: Path) -> Iterator[Fallow]:
    """`fallow run` that knows both by the cluster's own files. In the end every container must still run."""
    pair.wait_ready()
    running = containers_running(app)
    for node_id in pair.nodes():
        resize(pair, node_id, SETUP.memory_mb, SETUP.vcores, FAR_MS)
    wait_for(lambda: sizes(pair) == configured(pair), 20, "the configured sizes")
    spec = {"hadoopConfDir": str(pair.folder / "client"), "user": USER, "vcoreMilli": VCORE_MILLI}
    with Fallow(
        tmp_path / "fallow", {"real": spec}, cpu_reserved_milli=RESERVED_CPU_MILLI, memory_limit_mb=LENT_MB
    ) as fallow:
        fallow.start()
        wait_for_sizes(pair, fallow, are_lent, "what can be lent")
        yield fallow
    assert containers_ended(app) == []
    assert containers_running(app) == running
    pair.wait_ready()
    wait_for(lambda: sum(node.containers for node in pair.nodes().values()) == 1 + CONTAINERS, 30, "all containers")


def test_a_folder_of_hadoops_says_where_both_are(pair: Pair) -> None:
    found = rm_addresses(YarnSpec.model_validate({"hadoopConfDir": str(pair.folder / "client")}))
    assert {place.name: (place.client.authority, place.admin.authority, place.web.authority) for place in found} == {
        name: (rm.client, rm.admin, rm.web) for name, rm in pair.rms.items()
    }


def test_while_one_hangs_sizes_are_right_with_the_other_and_nothing_ends(
    pair: Pair, app: Application, fallow: Fallow, record_property: Callable[[str, object], None]
) -> None:
    history: list[str] = []
    for decision, wanted in (("drain", are_floors), ("lend", are_lent)):
        fallow.succeed("switch", decision, "real")
        with pair.frozen():
            began = time.monotonic()
            wait_for_sizes(pair, fallow, wanted, f"{decision} after a freeze")
            history.append(f"{decision} in force {time.monotonic() - began:.1f} s later")
        assert containers_ended(app) == [], history
    print(*history, sep="\n")
    record_property("history", history)


def test_while_both_stand_by_each_is_named_and_nothing_is_forgotten(pair: Pair, fallow: Fallow) -> None:
    pair.make_standby(pair.rm)
    fallow.wait_for_problem("yarn/real", "no ResourceManager is active: rm1 at")
    assert fallow.problem().count("standby") == 2
    fallow.succeed("switch", "drain", "real")
    with pair.failed_over():
        wait_for_sizes(pair, fallow, are_floors, "what was decided while none was active")
    assert fallow.problem() == ""


def test_while_both_are_down_each_is_named_and_they_are_found_again(pair: Pair, fallow: Fallow) -> None:
    for name in pair.rms:
        pair.kill(name)
    fallow.wait_for_problem("yarn/real", "no ResourceManager answers: rm1 at")
    assert "rm2 at" in fallow.problem()
    for name in pair.rms:
        pair.launch(name)
    pair.wait_ready()
    fallow.succeed("switch", "drain", "real")
    wait_for_sizes(pair, fallow, are_floors, "the floors")


def test_doctor_names_both_and_says_where_their_addresses_come_from(pair: Pair, fallow: Fallow) -> None:
    found = {finding["subject"]: finding for finding in json.loads(fallow.call("doctor", "--json").stdout)}
    assert [found[f"ResourceManager {name}"]["ok"] for name in pair.rms] == [True, True]
    key = "yarn.resourcemanager.admin.address.rm2"
    assert f"({key} in {pair.folder}/client/yarn-site.xml)" in found["addresses of rm2"]["detail"]
