"""The plugin and real daemons that ask for Kerberos, but whose web pages have simple authentication and no TLS."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn_kerberos.realm import NAME, Realm
from tests.e2e.yarn_kerberos.secure import ADMIN, SecureCluster
from tests.e2e.yarn_kerberos.spec import kerberos_spec

from fallow_hookspecs import ClusterConfig, Node, Role
from fallow_yarn.errors import CredentialsError
from fallow_yarn.http.web import Web
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.security.access import access
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import Server, rm_addresses, server

HERE = Node(name="here", addresses=("localhost", "127.0.0.1"))
SECONDS = 10.0
pytestmark = pytest.mark.timeout(120, func_only=True)  # the first fixture may fetch jars


class SimplePages(SecureCluster):
    """Its pages want a name, and believe it."""

    def spec(self, **kerberos: object) -> YarnSpec:
        """One that fits; see `kerberos_spec`."""
        given = kerberos_spec(self, **kerberos)
        del given["tls"]
        return YarnSpec.model_validate(given)

    def _web(self) -> Web:
        return Web(server(Server.WEB, self.rm.web, "the test"), ADMIN)

    def _tls(self) -> dict[str, str]:
        return {}

    def _security(self, secret: Path) -> dict[str, str]:
        return super()._security(secret) | {"hadoop.http.authentication.type": "simple"}


@pytest.fixture(scope="module")
def simple(realm: Realm, hadoop_jars: Jars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimplePages]:
    folder = tmp_path_factory.mktemp("simple") / "cluster"
    with SimplePages(hadoop_jars, folder, Setup(heartbeat_ms=300), realm) as cluster:
        yield cluster


def web_tickets(realm: Realm) -> int:
    """How many tickets for web servers the KDC has given to the operator."""
    log = (realm.folder / "kdc" / "log.txt").read_text()
    return sum(f"{ADMIN}@{NAME} for HTTP/" in line for line in log.splitlines())


def test_pages_of_both_daemons_are_read_by_name_and_no_ticket_for_them_is_asked_for(
    simple: SimplePages, realm: Realm
) -> None:
    before = web_tickets(realm)
    config = ClusterConfig(name="simple", roles=frozenset(Role), spec=simple.spec())
    with closing(YarnInstance(config)) as yarn:
        (row,) = yarn.report_capacity((HERE,), (), SECONDS).rows
        listed = yarn.list_tasks(HERE, SECONDS)
    assert row.in_force is not None
    assert (listed.complete, listed.incomplete_reason) == (True, "")
    assert web_tickets(realm) == before


def test_ipc_still_asks_for_kerberos(simple: SimplePages) -> None:
    spec = simple.spec(keytab="/nowhere")
    with closing(ResourceManager(rm_addresses(spec)[0], access(spec))) as manager:
        assert manager.identity(Deadline.after(SECONDS)).started_on is not None
        with pytest.raises(CredentialsError, match=r"spec\.kerberos\.keytab: /nowhere is not there"):
            manager.nodes(Deadline.after(SECONDS))
