import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fallow_yarn.lifecycle.host_list import HostListError, PlainList
from fallow_yarn.lifecycle.xml_list import XmlList

PLAIN = "# repaired\nold-1  old-2 # until May\n\n  n1\t# ours\nn2"
XML = """<?xml version="1.0"?>
<!-- outside <host><name>n9</name></host> -->
<hosts>
  <host><name>old-1, n1 ,old-2</name><timeout>30</timeout></host>
  <!-- <host><name>n2</name></host> -->
  <host>
    <name>n1.example</name>
  </host>
  <host><name>forever</name><timeout>-1</timeout></host>
</hosts>
"""
HOST = st.text("abc-.", min_size=1, max_size=4)


def test_words_are_hosts_and_the_rest_of_a_line_behind_a_hash_is_not() -> None:
    assert PlainList().hosts(PLAIN) == dict.fromkeys(["old-1", "old-2", "n1", "n2"])
    assert PlainList().hosts("a #b c\n#d e\nf#g") == {"a": None, "f#g": None}


@pytest.mark.parametrize("separator", ["\x0b", "\x1c", "\x85", "\u2028"])
def test_a_comment_ends_where_its_line_ends_for_hadoop(separator: str) -> None:
    text = f"# repaired{separator}n1\r\nn2\rn3\fn4"
    assert PlainList().hosts(text) == dict.fromkeys(["n2", "n3", "n4"])
    assert PlainList().without_hosts(text, ["n1", "n2", "n4"]) == f"# repaired{separator}n1\r\nn3\f"


def test_new_hosts_come_last_and_known_ones_stay_where_they_are() -> None:
    assert PlainList().with_hosts(PLAIN, ["n1", "n3", "n4"], 60) == PLAIN + "\nn3\nn4\n"
    assert PlainList().with_hosts("", ["n1"], None) == "n1\n"


def test_a_host_goes_without_what_stands_beside_it() -> None:
    assert PlainList().without_hosts(PLAIN, ["old-1", "n2"]) == "# repaired\nold-2 # until May\n\n  n1\t# ours\n"
    assert PlainList().without_hosts("a\r\nb\r\n", ["a"]) == "b\r\n"
    assert PlainList().without_hosts("# n1 is broken\nn1\n", ["n1"]) == "# n1 is broken\n"


def test_hosts_of_xml_have_the_grace_of_their_entry_and_comments_none() -> None:
    found = XmlList().hosts(XML)
    assert found == {"old-1": 30, "n1": 30, "old-2": 30, "n1.example": None, "forever": -1}


def test_entries_of_xml_change_and_all_else_stays() -> None:
    changed = XmlList().with_hosts(XML, ["n1", "a&b"], 600)
    assert changed == XML.replace("old-1, n1 ,old-2", "old-1, old-2").replace(
        "</hosts>",
        "  <host><name>n1</name><timeout>600</timeout></host>\n"
        "  <host><name>a&amp;b</name><timeout>600</timeout></host>\n</hosts>",
    )
    assert XmlList().hosts(changed)["n1"] == 600
    gone = XmlList().without_hosts(XML, ["n1.example", "forever"])
    assert gone == re.sub(r"  <host>\n.*?-1</timeout></host>\n", "", XML, flags=re.DOTALL)


def test_xml_on_one_line_stays_readable() -> None:
    text = XmlList().with_hosts("<hosts><host><name>a</name></host></hosts>", ["b"], None)
    assert XmlList().hosts(text) == {"a": None, "b": None}
    assert XmlList().hosts(XmlList().without_hosts(text, ["a", "b"])) == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n1\nn2\n", "it is not XML"),
        ("<hosts><host></hosts>", "it is not XML"),
        ("", "it is not XML"),
        ("<hosts/>", "write it as <hosts></hosts>"),
        ("<hosts><host><name>a</name><timeout>soon</timeout></host></hosts>", "'soon' is not an integer"),
    ],
)
def test_what_is_no_list_in_xml_is_told(text: str, why: str) -> None:
    with pytest.raises(HostListError, match=re.escape(why)):
        XmlList().hosts(text)


@given(st.lists(HOST, unique=True), st.lists(HOST, unique=True), st.booleans())
def test_hosts_put_in_and_taken_out_leave_the_others(before: list[str], changed: list[str], plain: bool) -> None:
    kind = PlainList() if plain else XmlList()
    text = kind.with_hosts("" if plain else "<hosts>\n</hosts>\n", before, None)
    assert list(kind.hosts(text)) == before
    added = kind.with_hosts(text, changed, 5)
    assert set(kind.hosts(added)) == {*before, *changed}
    assert set(kind.hosts(kind.without_hosts(added, changed))) == set(before) - set(changed)
    new = [host for host in changed if host not in before]
    assert kind.without_hosts(kind.with_hosts(text, new, 5), new) == text


@pytest.mark.parametrize("depth", [40, 1_000_000])
def test_deep_nesting_is_an_error(depth: int) -> None:
    with pytest.raises(HostListError, match="nested deeper than 32 levels"):
        XmlList().hosts("<hosts>" * depth)
