"""A realm and a real secured cluster. They need a JDK, Maven, MIT's KDC, and the package gssapi."""

import os
from collections.abc import Iterator

import pytest
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.conftest import hadoop_jars
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn_kerberos.realm import Realm, missing_tools
from tests.e2e.yarn_kerberos.secure import SecureCluster

__all__ = ["hadoop_jars"]


@pytest.fixture(scope="session")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    missing = missing_tools()
    if missing:
        reason = f"needs Debian's krb5-kdc, krb5-admin-server and krb5-user, not found: {', '.join(missing)}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with Realm(tmp_path_factory.mktemp("kerberos") / "realm") as realm, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(realm.config))
        patch.delenv("KRB5CCNAME", raising=False)
        patch.delenv("KRB5_CLIENT_KTNAME", raising=False)
        yield realm


@pytest.fixture(scope="session")
def secured(realm: Realm, hadoop_jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureCluster]:
    setup = Setup(memory_mb=2048, vcores=20, heartbeat_ms=300)
    with SecureCluster(hadoop_jars, tmp_path_factory.mktemp("secured") / "cluster", setup, realm) as cluster:
        yield cluster
