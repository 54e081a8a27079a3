import pytest

from fallow_yarn.identity import by_host, host_of, is_loopback, own_ids


def own(*node_ids: str, addresses: tuple[str, ...] = (), local: bool = False) -> list[str]:
    return own_ids(by_host(node_ids), addresses, None, local)


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
    assert own_ids(by_host(ids), ("worker-1",), ("localhost:3", "worker-1:2", "nowhere:4"), manager_is_local=False) == [
        "localhost:3",
        "worker-1:2",
    ]


def test_a_node_without_addresses_has_no_node_managers() -> None:
    assert own("worker-1:1", ":1") == []


def test_the_host_of_an_id_is_what_stands_before_its_port() -> None:
    assert host_of("Worker-1:45454") == "worker-1"
    assert host_of("[::1]:45454") == "::1"


@pytest.mark.parametrize(
    ("host", "expected"), [("localhost", True), ("LocalHost", True), ("127.8.9.1", True), ("::1", True), ("rm", False)]
)
def test_loopback_is_told_by_name_and_by_address(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected
