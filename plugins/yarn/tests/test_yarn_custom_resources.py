"""Further resources of a node, such as GPUs, on the embedded YARN: no offer changes them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from plugins.yarn.tests.yarn_fakes import GIB, spec

from fallow_hookspecs import ClusterConfig, Node, Offer, Resources, Role
from fallow_yarn.embedded.cluster import EmbeddedYarn
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.rm.client import ResourceManager

HOST = Node(name="n1", addresses=("localhost",))
SETTINGS = Settings(
    nodes=2,
    memory_mb=4096,
    vcores=4,
    heartbeat_seconds=0.05,
    starting_seconds=0,
    custom={"nm1": {"licence": 5, "yarn.io/gpu": 2}, "nm2": {"licence": 0, "yarn.io/gpu": 0}},
)


@pytest.fixture
def yarn(tmp_path: Path) -> Iterator[EmbeddedYarn]:
    with EmbeddedYarn(tmp_path / "yarn", SETTINGS) as made:
        yield made


@pytest.fixture
def instance(yarn: EmbeddedYarn) -> Iterator[YarnInstance]:
    addresses = {"client": yarn.rm.client_address, "admin": yarn.rm.admin_address, "web": yarn.rm.web_address}
    settings = spec(resourceManager={"host": "localhost"} | addresses)
    made = YarnInstance(ClusterConfig(name="etl", roles=frozenset(Role), spec=settings))
    yield made
    made.close()


def customs(yarn: EmbeddedYarn, name: str) -> dict[str, int]:
    rm = ResourceManager.at(
        client=yarn.rm.client_address, admin=yarn.rm.admin_address, web=yarn.rm.web_address, user="me"
    )
    node_id = yarn.nodes[name].node_id
    (node,) = [node for node in rm.nodes(Deadline.after(5)) if node.node_id == node_id]
    rm.close()
    return {entry.name: entry.value for entry in node.custom}


def offer(yarn: EmbeddedYarn, name: str, cores: int, **take_back: int) -> Offer:
    total = Resources(cores * 1000, cores * GIB)
    return Offer(node="n1", framework_node=yarn.nodes[name].node_id, total=total, take_back=take_back)  # type: ignore[arg-type]


def take(instance: YarnInstance, *offers: Offer) -> None:
    answers = instance.report_capacity((HOST,), offers, 10.0).answers
    assert [answer.refusal for answer in answers] == [None] * len(offers)


def test_no_offer_changes_what_else_a_node_has(yarn: EmbeddedYarn, instance: YarnInstance) -> None:
    instance.report_capacity((HOST,), (), 10.0)
    take(instance, offer(yarn, "nm1", 2), offer(yarn, "nm2", 1))
    take(instance, offer(yarn, "nm1", 3))
    take(instance, offer(yarn, "nm1", 3, memory=64 << 30))
    take(instance, offer(yarn, "nm1", 1, cpu=64_000))
    assert customs(yarn, "nm1") == {"licence": 5, "yarn.io/gpu": 2}
    assert customs(yarn, "nm2") == {"licence": 0, "yarn.io/gpu": 0}


def test_a_node_manager_that_has_started_with_another_number_keeps_that(
    yarn: EmbeddedYarn, instance: YarnInstance
) -> None:
    instance.report_capacity((HOST,), (), 10.0)
    node = yarn.nodes["nm1"]
    node.end()
    node.config = replace(node.config, custom={"licence": 7, "yarn.io/gpu": 1})
    node.start()
    yarn.wait_ready()
    take(instance, offer(yarn, "nm1", 2))
    assert customs(yarn, "nm1") == {"licence": 7, "yarn.io/gpu": 1}
