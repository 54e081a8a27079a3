import os
from collections.abc import Mapping
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from fallow_yarn.settings.conf_xml import DEEPEST, MOST_BYTES, MOST_FILES
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.hadoop_conf import HadoopConfError, Properties, Property, read_folder
from fallow_yarn.settings.rm_addresses import addresses_in, rm_addresses

RM = "yarn.resourcemanager"
PAIR = {
    f"{RM}.ha.enabled": "true",
    f"{RM}.ha.rm-ids": "rm1, rm2",
    f"{RM}.hostname.rm1": "a.example.com",
    f"{RM}.hostname.rm2": "b.example.com",
}


def xml(properties: Mapping[str, str], more: str = "") -> str:
    entries = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in properties.items()
    )
    return f'<configuration xmlns:xi="http://www.w3.org/2001/XInclude">{"".join(entries)}{more}</configuration>'


def write(folder: Path, yarn: Mapping[str, str], core: Mapping[str, str] | None = None, more: str = "") -> str:
    (folder / "yarn-site.xml").write_text(xml(yarn, more))
    if core is not None:
        (folder / "core-site.xml").write_text(xml(core))
    return str(folder)


def addresses(folder: str) -> list[tuple[str, str, str, str]]:
    found = addresses_in(read_folder(folder))
    return [(p.name, p.client.authority, p.admin.authority, p.web.authority) for p in found]


def test_addresses_follow_from_the_host_name_and_hadoops_ports(tmp_path: Path) -> None:
    assert addresses(write(tmp_path, {f"{RM}.hostname": "rm"})) == [("", "rm:8032", "rm:8033", "rm:8088")]


def test_each_of_several_has_its_host_name_and_a_key_with_its_id_goes_first(tmp_path: Path) -> None:
    own = {f"{RM}.admin.address.rm2": "b-admin:18033", f"{RM}.webapp.address": "web:1"}
    assert addresses(write(tmp_path, PAIR | own)) == [
        ("rm1", "a.example.com:8032", "a.example.com:8033", "a.example.com:8088"),
        ("rm2", "b.example.com:8032", "b-admin:18033", "b.example.com:8088"),
    ]


def test_an_address_without_a_port_has_hadoops(tmp_path: Path) -> None:
    folder = write(tmp_path, {f"{RM}.hostname": "rm", f"{RM}.admin.address": "other"})
    assert addresses(folder) == [("", "rm:8032", "other:8033", "rm:8088")]


@pytest.mark.parametrize("host", ["2001:db8::1", "[2001:db8::1]", "2001:DB8:0:0::1"])
def test_a_host_name_may_be_an_ipv6_address(tmp_path: Path, host: str) -> None:
    (found,) = addresses(write(tmp_path, {f"{RM}.hostname": host}))
    bare = host.strip("[]")
    assert found == ("", f"[{bare}]:8032", f"[{bare}]:8033", f"[{bare}]:8088")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("[2001:db8::1]", "[2001:db8::1]:8032"),
        ("[2001:db8::1]:7", "[2001:db8::1]:7"),
        ("rpc://rm.example.com", "rm.example.com:8032"),
        ("rpc://rm.example.com:7/path", "rm.example.com:7"),
    ],
)
def test_an_address_is_read_in_each_form_that_hadoop_knows(tmp_path: Path, address: str, expected: str) -> None:
    assert addresses(write(tmp_path, {f"{RM}.hostname": "rm", f"{RM}.address": address}))[0][1] == expected


@pytest.mark.parametrize("policy", ["HTTPS_ONLY", "https_only", "Https_Only"])
def test_where_only_https_is_served_the_web_address_is_that(tmp_path: Path, policy: str) -> None:
    (place,) = addresses_in(read_folder(write(tmp_path, {f"{RM}.hostname": "rm", "yarn.http.policy": policy})))
    assert (place.web.authority, place.secure_web) == ("rm:8090", True)


def test_variables_are_other_properties_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE", "north")
    host = "${prefix}-${env.SITE}-${env.NOWHERE:-x}${env.NOWHERE-y}.example.com"
    write(tmp_path, {f"{RM}.hostname": host, f"{RM}.address": "${yarn.resourcemanager.hostname}:1"}, {"prefix": "rm"})
    assert addresses(str(tmp_path))[0][1] == "rm-north-xy.example.com:1"


def test_what_is_final_in_core_site_is_not_replaced(tmp_path: Path) -> None:
    write(tmp_path, {"a": "later", "b": "later"})
    final = "<property><name>a</name><value>first</value><final>true</final></property>"
    (tmp_path / "core-site.xml").write_text(xml({"b": "first"}, final))
    properties = read_folder(str(tmp_path))
    assert (properties.text("a"), properties.text("b")) == ("first", "later")


def test_included_files_count_where_they_are_included(tmp_path: Path) -> None:
    (tmp_path / "more.xml").write_text(xml({f"{RM}.hostname": "included", "x": "included"}))
    more = '<xi:include href="more.xml"/><property><name>x</name><value>after</value></property>'
    properties = read_folder(write(tmp_path, {f"{RM}.hostname": "before"}, more=more))
    assert (properties.text(f"{RM}.hostname"), properties.text("x")) == ("included", "after")
    assert properties.source(f"{RM}.hostname") == f"{RM}.hostname in {tmp_path}/more.xml"


@pytest.mark.parametrize("uri", ["file:{}", "file://{}", "file://localhost{}", "FILE:{}", "{}"])
def test_an_included_file_may_be_a_uri(tmp_path: Path, uri: str) -> None:
    folder = tmp_path / "of hadoop"
    folder.mkdir()
    (folder / "more.xml").write_text(xml({"x": "included"}))
    path = str(folder / "more.xml")
    href = uri.format(path.replace(" ", "%20") if ":" in uri else path)
    assert read_folder(write(tmp_path, {}, more=f'<xi:include href="{href}"/>')).text("x") == "included"


@pytest.mark.parametrize(
    "href", ["http://conf.example.com/more.xml", "file://elsewhere/more.xml", "file:", "file:more.xml", "hdfs:/a"]
)
def test_an_include_that_is_no_file_of_this_host_is_told_with_the_file_that_has_it(tmp_path: Path, href: str) -> None:
    instead = f'<xi:include href="{href}"><xi:fallback/></xi:include>'
    with pytest.raises(HadoopConfError, match=rf"{tmp_path}/yarn-site\.xml: it includes {href}: expected a path"):
        read_folder(write(tmp_path, {}, more=instead))


@pytest.mark.parametrize("encoding", ["UTF-8", "ISO-8859-15", "GBK", "EUC-JP", "UTF-16"])
def test_a_file_is_read_in_the_encoding_that_its_header_names(tmp_path: Path, encoding: str) -> None:
    value = "\u6771" if encoding in ("GBK", "EUC-JP") else "\xe9"
    text = f'<?xml version="1.0" encoding="{encoding}"?>{xml({"x": value})}'
    (tmp_path / "yarn-site.xml").write_bytes(text.encode(encoding))
    assert read_folder(str(tmp_path)).text("x") == value


@pytest.mark.parametrize(
    ("encoding", "what"),
    [
        ("x-mac-hadoop", "its header names the encoding 'x-mac-hadoop', which is unknown here; use UTF-8"),
        ("hex", "its header names the encoding 'hex', which is unknown here"),
        ("UTF-8", "it is not in the encoding 'UTF-8' that its header names"),
    ],
)
def test_an_encoding_that_cannot_be_read_is_told_with_its_file(tmp_path: Path, encoding: str, what: str) -> None:
    text = f"<?xml version='1.0' encoding='{encoding}'?>".encode() + xml({"x": "\xe9"}).encode("latin-1")
    (tmp_path / "yarn-site.xml").write_bytes(text)
    with pytest.raises(HadoopConfError, match=rf"{tmp_path}/yarn-site\.xml: it is not XML: {what}"):
        read_folder(str(tmp_path))


def test_a_missing_included_file_has_its_fallback_or_is_an_error(tmp_path: Path) -> None:
    instead = "<property><name>x</name><value>instead</value></property>"
    more = f'<xi:include href="gone.xml"><xi:fallback>{instead}</xi:fallback></xi:include>'
    assert read_folder(write(tmp_path, {}, more=more)).text("x") == "instead"
    with pytest.raises(HadoopConfError, match=r"includes .*gone\.xml, which does not exist"):
        read_folder(write(tmp_path, {}, more='<xi:include href="gone.xml"/>'))


def test_files_that_include_each_other_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(HadoopConfError, match="nested includes"):
        read_folder(write(tmp_path, {}, more='<xi:include href="yarn-site.xml"/>'))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<configuration>", "it is not XML"),
        ("<html/>", "it begins with <html>, expected <configuration>"),
        (xml({}), "it does not say where ResourceManager is"),
        (xml({f"{RM}.hostname": "0.0.0.0"}), f"expected {RM}.hostname"),
        (xml({f"{RM}.hostname": "::"}), f"expected {RM}.hostname"),
        (xml({f"{RM}.hostname": "rm:1"}), rf"{RM}.hostname in .*/yarn-site\.xml: 'rm:1:8032' is ambiguous"),
        (xml({f"{RM}.address": "rm:99999"}), rf"{RM}.address in .*/yarn-site\.xml: 'rm:99999' is not an address"),
        (xml({f"{RM}.address": "2001:db8::1:8032"}), rf"{RM}.address in .*: '2001:db8::1:8032' is ambiguous; write"),
        (xml({f"{RM}.ha.enabled": "true"}), "names no ResourceManager"),
        (xml(PAIR | {f"{RM}.ha.rm-ids": "rm1,rm3"}), f"where ResourceManager rm3 is; expected {RM}.hostname.rm3"),
        (xml({f"{RM}.hostname": "${nowhere}"}), r"\$\{nowhere\} in .* is not set"),
        (xml({f"{RM}.hostname": f"${{{RM}.hostname}}"}), "more than 20 nested variables"),
    ],
)
def test_a_mistake_is_told_with_its_file_or_key(tmp_path: Path, text: str, what: str) -> None:
    (tmp_path / "yarn-site.xml").write_text(text)
    with pytest.raises(HadoopConfError, match=what):
        addresses_in(read_folder(str(tmp_path)))


def test_a_folder_without_the_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(HadoopConfError, match=r"there is no yarn-site\.xml in it"):
        read_folder(str(tmp_path))


def test_messages_name_the_key_and_the_file_that_an_address_comes_from(tmp_path: Path) -> None:
    first, _ = rm_addresses(YarnSpec.model_validate({"hadoopConfDir": write(tmp_path, PAIR)}))
    assert str(first.admin) == f"a.example.com:8033 ({RM}.hostname.rm1 in {tmp_path}/yarn-site.xml)"


def test_a_variable_of_the_environment_is_replaced_by_its_default_where_it_is_empty_or_missing() -> None:
    def text(value: str, **environment: str) -> str:
        found = {"k": Property(value=value, file=Path("f"))}
        return Properties(folder=Path(), found=found, environment=environment).text("k")

    assert text("${env.A:-d}", A="") == "d"
    assert text("${env.A-d}", A="") == ""
    assert text("${env.A-d}") == "d"
    assert text("${env.A}", A=" v ") == "v"


# Files without end


def include(name: str, times: int) -> str:
    return f'<xi:include href="{name}"/>' * times


def test_a_tree_of_includes_is_read_up_to_a_number_of_files(tmp_path: Path) -> None:
    """Ten includes in each of seven files that follow each other: ten million files."""
    for number in range(7):
        (tmp_path / f"f{number}.xml").write_text(xml({}, include(f"f{number + 1}.xml", 10)))
    (tmp_path / "f7.xml").write_text(xml({"a": "b"}))
    with pytest.raises(HadoopConfError, match=f"more than {MOST_FILES} files are included"):
        read_folder(write(tmp_path, {}, more=include("f0.xml", 1)))


def test_files_are_read_up_to_a_number_of_bytes_together(tmp_path: Path) -> None:
    (tmp_path / "big.xml").write_text(xml({"a": "b"}) + " " * (MOST_BYTES // 3))
    assert read_folder(write(tmp_path, {}, more=include("big.xml", 2))).text("a") == "b"
    with pytest.raises(HadoopConfError, match=f"it and the files before it have more than {MOST_BYTES} bytes"):
        read_folder(write(tmp_path, {}, more=include("big.xml", 3)))


@pytest.mark.parametrize("depth", [DEEPEST, 100_000])
def test_deep_nesting_is_an_error(tmp_path: Path, depth: int) -> None:
    (tmp_path / "yarn-site.xml").write_text("<configuration>" * depth + xml({}) + "</configuration>" * depth)
    with pytest.raises(HadoopConfError, match=f"nested deeper than {DEEPEST} levels"):
        read_folder(str(tmp_path))


def test_entities_that_grow_are_an_error(tmp_path: Path) -> None:
    grown = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 9))
    start = f'<!DOCTYPE x [<!ENTITY e0 "{"a" * 10}">{grown}]>'
    text = "<configuration><property><name>a</name><value>&e8;</value></property></configuration>"
    (tmp_path / "yarn-site.xml").write_text(start + text)
    with pytest.raises(HadoopConfError, match="it is not XML: "):
        read_folder(str(tmp_path))


@pytest.mark.parametrize("name", ["core-site.xml", "more.xml"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(HadoopConfError, match=r"no regular file|does not exist"):
        read_folder(write(tmp_path, {}, more=include("more.xml", 1)))
