from collections.abc import Mapping
from pathlib import Path

import pytest
from plugins.yarn.tests.yarn_fakes import Clock, spec
from pydantic import ValidationError

from fallow_yarn.errors import CredentialsError
from fallow_yarn.security.access import access
from fallow_yarn.security.login import RENEW_SECONDS, Identity, Login, check_keytab, explained
from fallow_yarn.security.web_access import web_access
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.hadoop_conf import HadoopConfError

KEYTAB = {"keytab": "/etc/fallow.keytab"}


def conf(folder: Path, **more: str) -> str:
    properties = {
        "yarn.resourcemanager.hostname": "rm.example.com",
        "hadoop.security.authentication": "kerberos",
        "yarn.resourcemanager.principal": "rm/_HOST@EXAMPLE.COM",
    }
    write(folder, properties | {name.replace("_", "."): value for name, value in more.items()})
    return str(folder)


def write(folder: Path, properties: Mapping[str, str]) -> None:
    entries = (f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
    (folder / "yarn-site.xml").write_text(f"<configuration>{''.join(entries)}</configuration>")


def test_without_kerberos_the_user_is_believed() -> None:
    found = access(spec(user="fallow"))
    assert (found.user, found.login, found.authentication, found.tls) == ("fallow", None, None, None)


def test_a_cluster_with_kerberos_in_its_own_files_is_talked_to_by_kerberos(tmp_path: Path) -> None:
    found = access(YarnSpec.model_validate({"hadoopConfDir": conf(tmp_path)}))
    assert found.login is not None
    assert (found.user, found.service) == ("the principal of the default ticket cache", "rm/_HOST@EXAMPLE.COM")


def test_what_the_cluster_file_says_goes_before_the_folder(tmp_path: Path) -> None:
    kerberos = KEYTAB | {"principal": "fallow", "resourceManagerPrincipal": "yarn/_HOST@OTHER"}
    found = access(YarnSpec.model_validate({"hadoopConfDir": conf(tmp_path), "kerberos": kerberos}))
    assert (found.user, found.service) == ("fallow", "yarn/_HOST@OTHER")


@pytest.mark.parametrize(
    ("kerberos", "name"),
    [(KEYTAB | {"principal": "fallow/here.example.com@EXAMPLE.COM"}, "fallow"), (KEYTAB, "yarn"), (None, "yarn")],
)
def test_pages_with_simple_authentication_get_the_short_name_of_the_principal(
    tmp_path: Path, kerberos: Mapping[str, str] | None, name: str
) -> None:
    settings = YarnSpec.model_validate({"hadoopConfDir": conf(tmp_path), "kerberos": kerberos})
    assert (access(settings).page_user, web_access(settings).page_user) == (name, name)


def test_a_folder_may_have_a_pattern_of_principals_which_goes_before_the_principal(tmp_path: Path) -> None:
    folder = conf(tmp_path, yarn_resourcemanager_principal_pattern="rm/*@EXAMPLE.COM")
    assert access(YarnSpec.model_validate({"hadoopConfDir": folder})).service == "rm/*@EXAMPLE.COM"
    given = {"resourceManagerPrincipal": "yarn/_HOST@OTHER"}
    assert access(YarnSpec.model_validate({"hadoopConfDir": folder, "kerberos": given})).service == "yarn/_HOST@OTHER"


def test_a_folder_without_the_principal_of_the_resource_manager_is_told(tmp_path: Path) -> None:
    folder = conf(tmp_path, yarn_resourcemanager_principal="")
    with pytest.raises(HadoopConfError, match=r"lacks yarn\.resourcemanager\.principal: set spec\.kerberos\."):
        access(YarnSpec.model_validate({"hadoopConfDir": folder}))


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("hadoop_security_authentication", "kerberos_ssl", "'kerberos_ssl' is not one of simple, kerberos"),
        (
            "hadoop_rpc_protection",
            "Integrity, auth-conf",
            "'auth-conf' is not one of authentication, integrity, privacy",
        ),
    ],
)
def test_a_value_that_is_unknown_to_hadoop_is_told_with_its_file_and_key(
    tmp_path: Path, key: str, value: str, what: str
) -> None:
    folder = conf(tmp_path, **{key: value})
    with pytest.raises(HadoopConfError, match=rf"{key.replace('_', '.')} in {folder}/yarn-site\.xml: {what}"):
        access(YarnSpec.model_validate({"hadoopConfDir": folder}))


@pytest.mark.parametrize(
    ("kerberos", "what"),
    [
        (KEYTAB, "give resourceManagerPrincipal"),
        (KEYTAB | {"ticketCache": "FILE:/x", "resourceManagerPrincipal": "rm/_HOST"}, "not both"),
        (KEYTAB | {"resourceManagerPrincipal": "rm"}, "pattern"),
        ({"keytab": "relative", "resourceManagerPrincipal": "rm/_HOST"}, "pattern"),
        (KEYTAB | {"resourceManagerPrincipal": "rm/_HOST", "protection": ["auth-conf"]}, "'privacy'"),
    ],
)
def test_a_mistake_in_the_settings_of_kerberos_is_told(kerberos: dict[str, object], what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        spec(kerberos=kerberos)


def test_tickets_of_a_keytab_have_a_cache_of_their_own_and_others_stay_where_they_are() -> None:
    assert Identity(keytab="/a").store(7) == {"client_keytab": "FILE:/a", "ccache": "MEMORY:fallow-7"}
    assert Identity(ticket_cache="KCM:").store(7) == {"ccache": "KCM:"}
    assert Identity().store(7) is None


def test_a_ticket_that_is_refused_is_replaced_and_not_at_each_try() -> None:
    clock = Clock()
    login = Login(Identity(keytab="/a"), clock)
    numbers = [login._cache_number]
    for seconds in (0.0, 1.0, RENEW_SECONDS):
        clock.now += seconds
        login.refused()
        numbers.append(login._cache_number)
    first, second, third, fourth = numbers
    assert (second == third, len({first, second, fourth})) == (True, 3)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("Server rm/x@R not found in Kerberos database", "correct spec.kerberos.resourceManagerPrincipal"),
        ("Client 'x@R' not found in Kerberos database", "correct spec.kerberos.principal"),
        ("Cannot contact any KDC for realm 'R'", "look whether the KDC runs"),
        ("Ticket not yet valid", "clock"),
        ("something else", ""),
    ],
)
def test_what_the_library_says_comes_with_advice(said: str, advice: str) -> None:
    general = "Major (851968): Unspecified GSS failure.  Minor code may provide more information, Minor (2529638944): "
    words = explained(Exception(general + said))
    assert words.startswith(said)
    assert advice in words


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o602])
def test_a_keytab_that_others_can_use_is_refused_with_its_mode_and_the_fix(tmp_path: Path, mode: int) -> None:
    keytab = tmp_path / "keytab"
    keytab.touch()
    keytab.chmod(mode)
    with pytest.raises(CredentialsError, match=rf"spec.kerberos.keytab: .*\(mode {mode:04o}\).*: chmod 0600 {keytab}"):
        check_keytab(str(keytab))


def test_a_keytab_of_ones_own_is_used_and_one_that_is_missing_is_told(tmp_path: Path) -> None:
    (tmp_path / "keytab").touch(0o600)
    check_keytab(str(tmp_path / "keytab"))
    with pytest.raises(CredentialsError, match="is not there or cannot be read"):
        check_keytab(str(tmp_path / "nothing"))
