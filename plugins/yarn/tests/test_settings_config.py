from collections.abc import Callable
from pathlib import Path

import pytest
from plugins.yarn.tests.yarn_fakes import spec
from pydantic import ValidationError

from fallow_yarn.settings.agent_model import AgentModel
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import rm_addresses

PAIR = {"rm1": {"host": "a"}, "rm2": {"host": "b", "web": "b:18088"}}


def addresses(**settings: object) -> list[tuple[str, str, str]]:
    found = rm_addresses(spec(**settings))
    return [(place.client.authority, place.admin.authority, place.web.authority) for place in found]


def test_addresses_follow_from_the_host_and_hadoops_default_ports() -> None:
    assert addresses() == [("rm:8032", "rm:8033", "rm:8088")]


def test_a_given_address_replaces_the_default_one_alone() -> None:
    given = {"host": "rm", "admin": "rm-admin:18033"}
    assert addresses(resourceManager=given) == [("rm:8032", "rm-admin:18033", "rm:8088")]


def test_the_host_may_be_left_out_where_the_addresses_say_it() -> None:
    assert addresses(resourceManager={"admin": "rm:18033"}) == [("rm:8032", "rm:18033", "rm:8088")]
    assert addresses(resourceManager={"web": "[::1]:1"}) == [("[::1]:8032", "[::1]:8033", "[::1]:1")]
    given = {"client": "a:1", "admin": "b:2", "web": "c:3"}
    assert addresses(resourceManager=given) == [("a:1", "b:2", "c:3")]


@pytest.mark.parametrize("given", [{}, {"client": "a:1", "admin": "b:2"}])
def test_a_resource_manager_of_which_an_address_is_not_said_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="give host, or all of client, admin and web"):
        spec(resourceManager=given)


@pytest.mark.parametrize("host", ["2001:db8::1", "[2001:db8::1]", "2001:DB8:0:0:0:0:0:1"])
def test_the_default_addresses_of_an_ipv6_host_can_be_connected_to(host: str) -> None:
    client = rm_addresses(spec(resourceManager={"host": host}))[0].client
    assert (client.host, client.port) == ("2001:db8::1", 8032)


def test_several_resource_managers_have_their_ids_and_each_its_own_setting() -> None:
    first, second = rm_addresses(YarnSpec.model_validate({"resourceManagers": PAIR}))
    assert (first.name, str(first.admin)) == ("rm1", "a:8033 (spec.resourceManagers.rm1.admin)")
    assert (second.name, str(second.web)) == ("rm2", "b:18088 (spec.resourceManagers.rm2.web)")


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"resourceManager": {"host": "rm"}, "resourceManagers": PAIR},
    ],
)
def test_where_they_are_is_said_in_one_way(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match="give one of resourceManager"):
        YarnSpec.model_validate(given)


def test_hadoops_files_are_instead_of_addresses(tmp_path: Path) -> None:
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    with pytest.raises(ValidationError, match="give one of resourceManager"):
        YarnSpec.model_validate({"resourceManager": {"host": "rm"}, "hadoopConfDir": str(tmp_path)})


@pytest.mark.parametrize("model", [YarnSpec, AgentModel])
@pytest.mark.parametrize(
    ("prepare", "what"),
    [
        (lambda _folder: None, "there is no such directory"),
        (lambda folder: folder.write_text(""), "there is no such directory"),
        (lambda folder: folder.mkdir(), "there is no yarn-site.xml in it"),
        (lambda folder: (folder / "yarn-site.xml").mkdir(parents=True), "there is no yarn-site.xml in it"),
        (lambda folder: folder.mkdir() or (folder / "yarn-site.xml").write_text("<html/>"), "begins with <html>"),
    ],
)
def test_hadoops_files_that_cannot_be_read_are_a_mistake_of_their_key(
    tmp_path: Path, model: type[YarnSpec] | type[AgentModel], prepare: Callable[[Path], object], what: str
) -> None:
    folder = tmp_path / "conf"
    prepare(folder)
    with pytest.raises(ValidationError) as caught:
        model.model_validate({"hadoopConfDir": str(folder)})
    (error,) = caught.value.errors()
    assert (error["loc"], what in error["msg"], str(folder) in error["msg"]) == (("hadoopConfDir",), True, True)


def test_a_directory_that_this_user_may_not_enter_is_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_path: Path) -> bool:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "is_file", denied)
    with pytest.raises(ValidationError, match="it cannot be read: Permission denied"):
        YarnSpec.model_validate({"hadoopConfDir": str(tmp_path)})


@pytest.mark.parametrize("given", [{}, {"resourceManager": {"host": "rm"}}, {"resourceManagers": PAIR}])
def test_the_role_of_an_agent_alone_may_do_without_a_resource_manager(given: dict[str, object]) -> None:
    settings = AgentModel.model_validate({**given, "vcoreMilli": 500, "nodeManagers": ["worker-1:45454"]})
    assert (settings.user, settings.vcore_milli) == ("yarn", 500)
    assert settings.rules.configured("any") == ["worker-1:45454"]


def test_its_mistakes_are_told_as_those_of_any_file() -> None:
    with pytest.raises(ValidationError) as caught:
        AgentModel.model_validate({"resourceManager": {"host": "rm:1"}, "vcores": 1})
    assert {error["loc"] for error in caught.value.errors()} == {("resourceManager", "host"), ("vcores",)}
    with pytest.raises(ValidationError, match="give one of resourceManager"):
        AgentModel.model_validate({"resourceManager": {"host": "rm"}, "resourceManagers": PAIR})
    assert AgentModel.model_json_schema()["properties"].keys() == YarnSpec.model_json_schema()["properties"].keys()


def test_a_controller_without_a_resource_manager_is_told_which_role_needs_none() -> None:
    with pytest.raises(ValidationError, match=r"only a file with roles: \[agent\] needs none"):
        YarnSpec.model_validate({})


def test_the_user_the_node_managers_and_the_vcore_have_defaults() -> None:
    assert (spec().user, spec().node_managers, spec().vcore_milli) == ("yarn", None, 1000)


def test_node_managers_are_a_list_in_the_file() -> None:
    ids = ["worker-1:45454", "[::1]:45454", "2001:db8:0:0:0:0:0:1:45454"]
    assert spec(nodeManagers=ids).node_managers == ids


@pytest.mark.parametrize(
    ("settings", "where", "what"),
    [
        ({"resourceManager": {}}, ("resourceManager",), "give host"),
        ({"resourceManager": {"host": "rm:8032"}}, ("resourceManager", "host"), "without a port"),
        ({"resourceManager": {"host": "http://rm"}}, ("resourceManager", "host"), "without a port"),
        ({"resourceManager": {"host": "r m"}}, ("resourceManager", "host"), "without a port"),
        ({"resourceManager": {"host": ""}}, ("resourceManager", "host"), "without a port"),
        ({"resourceManager": {"host": "rm", "admin": "rm"}}, ("resourceManager", "admin"), "HOST:PORT"),
        ({"resourceManager": {"host": "rm", "web": "http://rm:8088"}}, ("resourceManager", "web"), "HOST:PORT"),
        ({"resourceManager": {"host": "rm", "client": "rm:65536"}}, ("resourceManager", "client"), "HOST:PORT"),
        ({"resourceManager": {"host": "rm", "client": "::1:8032"}}, ("resourceManager", "client"), "HOST:PORT"),
        ({"resourceManager": {"host": "rm", "client": "rm:٨٠٣٢"}}, ("resourceManager", "client"), "HOST:PORT"),
        ({"resourceManagers": {"rm1": {"host": "rm"}}}, ("resourceManagers",), "two or more"),
        ({"hadoopConfDir": "conf"}, ("hadoopConfDir",), "pattern"),
        ({"nodeManagers": ["worker-1"]}, ("nodeManagers", 0), "HOST:PORT"),
        ({"nodeManagers": ["worker-1:1:2"]}, ("nodeManagers", 0), "HOST:PORT"),
        ({"nodeManagers": ["worker-1:0"]}, ("nodeManagers", 0), "HOST:PORT"),
        ({"nodeManagers": []}, ("nodeManagers",), "empty"),
        ({"nodeManagers": "worker-1:45454"}, ("nodeManagers",), "list"),
        ({"user": ""}, ("user",), "at least 1"),
        ({"user": "a b"}, ("user",), "pattern"),
        ({"vcoreMilli": 0}, ("vcoreMilli",), "greater than or equal to 1"),
        ({"vcoreMilli": "1000"}, ("vcoreMilli",), "integer"),
        ({"vcoreMilli": True}, ("vcoreMilli",), "integer"),
        ({"vcores": 1}, ("vcores",), "not permitted"),
        ({"vcore_milli": 1000}, ("vcore_milli",), "not permitted"),
        ({"resourceManager": {"host": "rm", "adress": "rm:1"}}, ("resourceManager", "adress"), "not permitted"),
    ],
)
def test_a_mistake_is_named_with_its_place(settings: dict[str, object], where: tuple[object, ...], what: str) -> None:
    with pytest.raises(ValidationError) as caught:
        spec(**settings)
    (error,) = caught.value.errors()
    assert error["loc"] == where
    assert what in error["msg"]


def test_node_managers_are_named_for_the_one_host_or_for_each_node() -> None:
    by_node = {"n1": ["worker-1:45454", "worker-1:45455"]}
    assert spec(nodeManagersByNode=by_node).rules(manager_is_local=False).configured("n1") == by_node["n1"]
    with pytest.raises(ValidationError, match="not both"):
        spec(nodeManagers=["worker-1:45454"], nodeManagersByNode=by_node)


def test_all_mistakes_come_at_once() -> None:
    with pytest.raises(ValidationError) as caught:
        spec(resourceManager={"host": "rm:1", "web": "rm"}, nodeManagers=["a", "b:1", "c"], vcoreMilli=0)
    assert len(caught.value.errors()) == 5


def test_the_json_schema_has_the_names_of_the_file() -> None:
    schema = YarnSpec.model_json_schema()
    assert schema["properties"].keys() == {
        "resourceManager",
        "resourceManagers",
        "hadoopConfDir",
        "user",
        "nodeManagers",
        "nodeManagersByNode",
        "nodeManagerKey",
        "nodeManagerUser",
        "vcoreMilli",
        "kerberos",
        "tls",
        "excludeFiles",
        "includeFiles",
        "whenEmpty",
    }
