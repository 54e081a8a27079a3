"""Reading the page /conf of a daemon."""

import pytest

from fallow_yarn.diagnosis.daemon_conf import DaemonConf, parse
from fallow_yarn.errors import ProtocolError

AS_JSON = b"""{"properties":[{"key":"a.b","value":"1","isFinal":false,"resource":"yarn-site.xml"},
 {"key":"c","value":null},{"value":"x"}, 7]}"""
AS_XML = b"""<?xml version="1.0" encoding="UTF-8" standalone="no"?><configuration>
 <property><name>a.b</name><value>1</value><final>false</final></property>
 <property><name>c</name></property><property><value>x</value></property></configuration>"""


@pytest.mark.parametrize("page", [AS_JSON, AS_XML])
def test_settings_come_as_json_or_xml(page: bytes) -> None:
    assert parse(page).values == {"a.b": "1", "c": ""}


@pytest.mark.parametrize(
    ("page", "message"),
    [
        (b'{"properties":[{"key":"a"', "not valid JSON"),
        (b"<configuration><property>", "neither JSON nor XML"),
        (b"Unauthorized", "neither JSON nor XML"),
        (b"", "neither JSON nor XML"),
        (b'{"properties":[]}', "has no settings"),
        (b"<html/>", "has no settings"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_a_page_that_holds_no_settings_is_an_error(page: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        parse(page)


def test_entities_that_grow_without_end_are_refused() -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 50}">' for n in range(1, 12))
    page = f'<!DOCTYPE c [<!ENTITY e0 "x">{entities}]><c><property><name>&e11;</name></property></c>'
    with pytest.raises(ProtocolError, match="neither JSON nor XML"):
        parse(page.encode())


def test_variables_are_replaced_and_one_that_is_missing_or_circular_makes_the_value_unknown() -> None:
    settings = DaemonConf(
        {"a": "${b}/x-${c}", "b": "/${c}", "c": "1", "d": "${e}", "f": "${f}", "g": " ${not a name} "}
    )
    assert settings.text("a") == "/1/x-1"
    assert settings.text("d") is None
    assert settings.text("f") is None
    assert settings.text("g") == "${not a name}"
    assert settings.text("missing") is None


def test_values_are_read_as_what_they_should_be_or_are_unknown() -> None:
    settings = DaemonConf({"n": " 90.0 ", "f": "False", "c": "org.example.Thing", "x": "perhaps"})
    assert (settings.number("n"), settings.number("x"), settings.number("missing")) == (90.0, None, None)
    assert (settings.flag("f"), settings.flag("x"), settings.flag("missing")) == (False, None, None)
    assert (settings.class_name("c"), settings.class_name("missing")) == ("Thing", None)


@pytest.mark.parametrize("encoding", ["x-unknown", "hex", "GBK", "idna"])
def test_a_page_in_an_encoding_that_is_unknown_here_is_a_protocol_error(encoding: str) -> None:
    page = f'<?xml version="1.0" encoding="{encoding}"?><configuration/>'.encode()
    with pytest.raises(ProtocolError, match="the page /conf is neither JSON nor XML"):
        parse(page)
