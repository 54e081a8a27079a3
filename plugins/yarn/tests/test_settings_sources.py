from pathlib import Path
from typing import Any

import pytest
from plugins.yarn.tests.test_settings_hadoop_conf import PAIR, RM, write

from fallow_hookspecs import ClusterConfig, Role
from fallow_yarn.entry import PLUGIN
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.hadoop_conf import HadoopConfError

KERBEROS = {"hadoop.security.authentication": "kerberos", "hadoop.rpc.protection": "privacy"}


def told(**spec: Any) -> dict[str, tuple[str, str]]:
    assert PLUGIN.settings is not None
    config = ClusterConfig(name="etl", roles=frozenset(Role), spec=YarnSpec.model_validate(spec))
    return {setting.name: (setting.value, setting.source) for setting in PLUGIN.settings(config)}


def test_addresses_of_the_cluster_file_say_which_key_gave_host_and_port() -> None:
    found = told(resourceManager={"host": "rm", "web": "web:80"})
    assert found["ResourceManager, client"] == ("rm:8032", "spec.resourceManager.host, Hadoop's default port")
    assert found["ResourceManager, web"] == ("web:80", "spec.resourceManager.web")
    assert "ResourceManagers" not in found


def test_of_an_agent_alone_it_is_told_that_no_resource_manager_is_asked() -> None:
    assert PLUGIN.settings is not None
    alone = frozenset({Role.AGENT})
    spec = PLUGIN.model_for(alone).model_validate({"user": "al"})
    found = {s.name: (s.value, s.source) for s in PLUGIN.settings(ClusterConfig(name="etl", roles=alone, spec=spec))}
    assert found["ResourceManager"] == ("none: an agent asks this host only", "roles")
    assert found["user"] == ("al", "spec.user")


def test_addresses_of_a_folder_say_the_file_and_the_key_with_the_id(tmp_path: Path) -> None:
    folder = write(tmp_path, PAIR | {f"{RM}.admin.address.rm2": "b2:18033"})
    site, found = tmp_path / "yarn-site.xml", told(hadoopConfDir=folder)
    assert found["ResourceManagers"] == ("rm1, rm2", f"{RM}.ha.rm-ids in {site}")
    assert found["ResourceManager rm1, admin"] == (
        "a.example.com:8033",
        f"{RM}.hostname.rm1 in {site}, Hadoop's default port",
    )
    assert found["ResourceManager rm2, admin"] == ("b2:18033", f"{RM}.admin.address.rm2 in {site}")


def test_security_of_a_folder_says_the_file_and_the_key(tmp_path: Path) -> None:
    yarn = {f"{RM}.hostname": "rm", f"{RM}.principal": "rm/_HOST@EX", "yarn.http.policy": "HTTPS_ONLY"}
    found = told(hadoopConfDir=write(tmp_path, yarn, KERBEROS))
    core, site = tmp_path / "core-site.xml", tmp_path / "yarn-site.xml"
    assert found["authentication"] == ("kerberos", f"hadoop.security.authentication in {core}")
    assert found["ResourceManager's principal"] == ("rm/_HOST@EX", f"{RM}.principal in {site}")
    assert found["protection"] == ("privacy", f"hadoop.rpc.protection in {core}")
    assert found["tickets from"] == ("the environment (KRB5CCNAME, KRB5_CLIENT_KTNAME)", "default")
    assert found["web pages by TLS"] == ("yes", f"yarn.http.policy in {site}")
    assert found["ResourceManager, web (TLS)"][0] == "rm:8090"


def test_what_the_cluster_file_says_of_security_goes_before_the_folder(tmp_path: Path) -> None:
    folder = write(tmp_path, {f"{RM}.hostname": "rm", f"{RM}.principal": "rm/_HOST@EX"}, KERBEROS)
    kerberos = {"principal": "me@EX", "keytab": "/k", "resourceManagerPrincipal": "yarn/a", "protection": ["integrity"]}
    found = told(hadoopConfDir=folder, kerberos=kerberos, tls={"caFile": "/ca.pem"})
    assert found["authentication"] == ("kerberos", "spec.kerberos")
    assert found["our principal"] == ("me@EX", "spec.kerberos.principal")
    assert found["tickets from"] == ("/k", "spec.kerberos.keytab")
    assert found["ResourceManager's principal"] == ("yarn/a", "spec.kerberos.resourceManagerPrincipal")
    assert found["protection"] == ("integrity", "spec.kerberos.protection")
    assert found["certificate authorities"] == ("/ca.pem", "spec.tls.caFile")


def test_a_cluster_that_believes_its_users_says_so() -> None:
    found = told(resourceManager={"host": "rm"}, user="fallow")
    assert found["authentication"] == ("simple: the servers believe spec.user", "default: no spec.kerberos")
    assert found["user"] == ("fallow", "spec.user")
    assert found["vcoreMilli"] == ("1000", "default")


def test_the_files_of_decommissioning_are_told(tmp_path: Path) -> None:
    yarn = {f"{RM}.hostname": "rm", f"{RM}.nodes.exclude-path": "/etc/hadoop/exclude"}
    found = told(hadoopConfDir=write(tmp_path, yarn))
    assert found["exclude file"] == (
        "/etc/hadoop/exclude",
        f"{RM}.nodes.exclude-path in {tmp_path / 'yarn-site.xml'}",
    )
    assert found["include file"] == ("not set", f"{RM}.nodes.include-path, Hadoop's default")


def test_no_setting_of_the_cluster_file_is_left_out() -> None:
    found = told(resourceManager={"host": "rm"}, nodeManagers=["a:1", "b:2"])
    told_otherwise = {"resourceManager", "resourceManagers", "kerberos", "tls"}
    names = {field.alias or name for name, field in YarnSpec.model_fields.items()}
    assert names - told_otherwise <= found.keys()
    assert found["nodeManagers"] == ("a:1, b:2", "spec.nodeManagers")


def test_a_folder_that_does_not_say_where_it_is_is_the_error_that_run_has(tmp_path: Path) -> None:
    with pytest.raises(HadoopConfError, match="does not say where ResourceManager is"):
        told(hadoopConfDir=write(tmp_path, {}))
