import pytest

from fallow_hookspecs import Node, Pod
from fallow_yarn.model.node_matching import (
    NODE_ID_KEY,
    MatchingRules,
    by_host,
    host_of,
    is_loopback,
    own_ids,
    superseded,
)

CLUSTER = ("nm-1.pods:45454", "nm-1.pods:45455", "nm-2.pods:45454", "localhost:7")


def own(*node_ids: str, addresses: tuple[str, ...] = (), local: bool = False) -> list[str]:
    return own_ids(by_host(node_ids), Node(name="n1", addresses=addresses), MatchingRules(manager_is_local=local))


def own_of(node: Node, rules: MatchingRules | None = None) -> list[str]:
    return own_ids(by_host(CLUSTER), node, rules or MatchingRules())


def pod(**values: object) -> Pod:
    return Pod(uid="u", namespace="hadoop", name="nm", **values)  # type: ignore[arg-type]


def test_a_node_is_ours_by_its_host_name_or_its_ip_address() -> None:
    ids = ("worker-1.example.com:45454", "192.0.2.1:45454", "worker-2.example.com:45454", "worker-1:45454")
    assert own(*ids, addresses=("192.0.2.1", "worker-1.example.com")) == [
        "192.0.2.1:45454",
        "worker-1.example.com:45454",
    ]


def test_no_part_of_a_name_is_taken_for_the_whole() -> None:
    assert own("worker-11:1", "my-worker-1:1", "worker-1.example.com:1", addresses=("worker-1",)) == []


def test_letter_case_makes_no_difference() -> None:
    assert own("Worker-1.EXAMPLE.com:1", addresses=("worker-1.Example.COM",)) == ["Worker-1.EXAMPLE.com:1"]


@pytest.mark.parametrize("node_id", ["2001:db8:0:0:0:0:0:1:45454", "[2001:db8::1]:45454", "2001:DB8::1:45454"])
@pytest.mark.parametrize("address", ["2001:db8::1", "2001:DB8:0::1"])
def test_an_ipv6_address_is_the_same_however_it_is_written(node_id: str, address: str) -> None:
    assert own(node_id, addresses=(address,)) == [node_id]


def test_text_that_only_looks_like_an_ipv6_address_is_a_name() -> None:
    assert own("a:b:1", addresses=("A:B",)) == ["a:b:1"]


def test_two_node_managers_of_one_host_are_both_ours_and_in_order() -> None:
    assert own("worker-1:8042", "worker-1:8041", addresses=("worker-1",)) == ["worker-1:8041", "worker-1:8042"]


@pytest.mark.parametrize("node_id", ["localhost:1", "127.0.0.1:1", "127.0.1.1:1", "[::1]:1", "LOCALHOST:1"])
def test_loopback_names_count_only_where_the_resource_manager_is_local(node_id: str) -> None:
    addresses = ("localhost", "127.0.0.1", "127.0.1.1", "::1", "worker-1")
    assert own(node_id, addresses=addresses) == []
    assert own(node_id, addresses=addresses, local=True) == [node_id]


def test_a_list_in_the_config_replaces_the_addresses() -> None:
    ids = ("worker-1:1", "worker-1:2", "localhost:3")
    rules = MatchingRules(listed=("localhost:3", "worker-1:2", "nowhere:4"))
    assert own_ids(by_host(ids), Node(name="n1", addresses=("worker-1",)), rules) == ["localhost:3", "worker-1:2"]


@pytest.mark.parametrize(
    ("configured", "listed"),
    [
        ("Worker-1:1", "worker-1:1"),
        ("worker-1.:1", "WORKER-1:1"),
        ("[2001:db8::1]:1", "2001:db8:0:0:0:0:0:1:1"),
        ("2001:db8::1:1", "2001:DB8:0:0:0:0:0:1:1"),
    ],
)
def test_an_id_in_the_config_may_be_spelled_otherwise(configured: str, listed: str) -> None:
    rules = MatchingRules(listed=(configured,))
    assert own_ids(by_host([listed, "worker-1:2", "worker-11:1"]), Node(name="n1"), rules) == [listed]


def test_a_full_name_may_end_in_a_dot() -> None:
    assert own("worker-1.example.com.:1", addresses=("worker-1.example.com",)) == ["worker-1.example.com.:1"]
    assert own("worker-1.example.com:1", addresses=("worker-1.example.com.",)) == ["worker-1.example.com:1"]


def test_an_ipv4_address_may_be_written_as_an_ipv6_one() -> None:
    assert own("192.0.2.1:1", addresses=("::ffff:192.0.2.1",)) == ["192.0.2.1:1"]


def test_a_map_in_the_config_replaces_all_else_for_the_nodes_that_it_has() -> None:
    rules = MatchingRules(by_node={"n1": ["nm-2.pods:45454", "unknown:1"]})
    assert own_of(Node(name="n1", addresses=("nm-1.pods",)), rules) == ["nm-2.pods:45454"]
    assert own_of(Node(name="n2", addresses=("nm-1.pods",)), rules) == ["nm-1.pods:45454", "nm-1.pods:45455"]


@pytest.mark.parametrize("kind", ["labels", "annotations"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("nm-1.pods:45455", ["nm-1.pods:45455"]),
        ("NM-1.pods:45454, nm-2.pods:45454", ["nm-1.pods:45454", "nm-2.pods:45454"]),
        ("nm-1.pods", ["nm-1.pods:45454", "nm-1.pods:45455"]),
        ("localhost:7", ["localhost:7"]),
        ("nm-1.pods:1", []),
        ("hadoop-nm-1.pods:45454", []),
        ("", []),
    ],
)
def test_a_pod_or_a_node_names_its_node_managers(kind: str, value: str, expected: list[str]) -> None:
    said = {kind: {NODE_ID_KEY: value}}
    assert own_of(Node(name="n1", pods=(pod(**said),))) == expected
    assert own_of(Node(name="n1", **said)) == expected  # type: ignore[arg-type]


def test_the_key_of_the_label_is_a_setting() -> None:
    labels = {NODE_ID_KEY: "nm-1.pods:45454", "example.com/nm": "nm-2.pods:45454"}
    assert own_of(Node(name="n1", pods=(pod(labels=labels),)), MatchingRules(key="example.com/nm")) == [
        "nm-2.pods:45454"
    ]


def test_an_address_of_a_pod_counts_as_one_of_its_node_does() -> None:
    assert own_of(Node(name="n1", addresses=("worker-1",), pods=(pod(addresses=("10.0.0.1", "nm-2.pods")),))) == [
        "nm-2.pods:45454"
    ]


def test_an_id_that_the_resource_manager_does_not_know_leaves_the_addresses_to_tell() -> None:
    stale = pod(annotations={NODE_ID_KEY: "hadoop-yarn-nm-2:45454"}, addresses=("nm-2.pods",))
    assert own_of(Node(name="n1", pods=(stale,))) == ["nm-2.pods:45454"]


def test_a_node_manager_is_named_twice_and_counts_once() -> None:
    node = Node(name="n1", addresses=("nm-2.pods",), annotations={NODE_ID_KEY: "nm-2.pods:45454 nm-2.pods"})
    assert own_of(node) == ["nm-2.pods:45454"]


def test_an_id_is_superseded_by_one_that_started_on_its_host_after_it_was_last_seen() -> None:
    assert superseded({"a:2": 105}, {"a:1": 100, "a:2": 200}) == {"a:1"}


@pytest.mark.parametrize(
    ("listening", "last_seen"),
    [
        ({"a:1": 105}, {"a:1": 200}),  # started again at the same port
        ({}, {"a:1": 100}),  # on its way to do so
        ({"a:2": 50}, {"a:1": 100, "a:2": 200}),  # one of two, and the other one was there before
        ({"b:2": 105}, {"a:1": 100, "b:2": 200}),  # of another host
        ({"a:2": 105}, {"a:2": 200}),  # never seen by us
    ],
)
def test_an_id_without_a_later_successor_is_not_superseded(
    listening: dict[str, int], last_seen: dict[str, int]
) -> None:
    assert superseded(listening, last_seen) == frozenset()


def test_a_node_without_addresses_has_no_node_managers() -> None:
    assert own("worker-1:1", ":1") == []


def test_the_host_of_an_id_is_what_stands_before_its_port() -> None:
    assert host_of("Worker-1:45454") == "worker-1"
    assert host_of("[::1]:45454") == "::1"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LocalHost", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost.", True),
        ("rm", False),
    ],
)
def test_loopback_is_told_by_name_and_by_address(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
