from collections.abc import Callable

import pytest

from fallow_yarn.lifecycle.list_entries import addresses_of, counted, meant

LISTED = ["old", "Worker2", "worker2.", "worker2", "10.0.0.6", "2001:db8:0:0:0:0:0:6", "2001:DB8::6", "10.0.0.60"]


def at(*addresses: str) -> Callable[[str], list[str]]:
    return lambda host: list(addresses) if host == "worker2" else []


def test_the_resource_manager_takes_a_name_as_it_is_registered_and_its_address_as_java_writes_it() -> None:
    assert counted("worker2", LISTED, at("10.0.0.6", "2001:db8::6")) == ["worker2", "10.0.0.6", "2001:db8:0:0:0:0:0:6"]
    assert counted("worker2", LISTED, at()) == ["worker2"]
    assert counted("WORKER2", LISTED, at("10.0.0.6")) == []


def test_the_user_means_every_spelling_of_the_name_and_of_the_address() -> None:
    spelled = ["Worker2", "worker2.", "worker2", "10.0.0.6", "2001:db8:0:0:0:0:0:6", "2001:DB8::6"]
    assert meant("worker2", LISTED, at("10.0.0.6", "2001:db8::6")) == spelled
    assert meant("worker3", LISTED, at("10.0.0.6")) == []


@pytest.mark.parametrize("listed", [[], ["worker1", "worker2.example.com"], ["a:b"]])
def test_no_name_is_looked_up_where_no_entry_is_an_address(listed: list[str]) -> None:
    def fails(_host: str) -> list[str]:
        raise AssertionError("looked up")

    assert counted("worker2", listed, fails) == meant("worker2", listed, fails) == []


def test_a_node_that_is_registered_by_its_address_is_not_looked_for_by_names() -> None:
    assert counted("10.0.0.6", LISTED, lambda _: ["10.0.0.6"]) == ["10.0.0.6"]


def test_the_systems_look_up_gives_the_addresses_of_a_name_and_none_for_an_unknown_one() -> None:
    assert "127.0.0.1" in addresses_of("localhost")
    assert addresses_of("::1") == {"::1"}
    assert addresses_of("no such name") == addresses_of("x" * 300) == set()
