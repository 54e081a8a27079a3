"""Two real ResourceManagers that ask for Kerberos."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.e2e.yarn.config import Setup
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn_ha.pair import Pair
from tests.e2e.yarn_kerberos.realm import Realm
from tests.e2e.yarn_kerberos.secure import SecureCluster

from fallow_hookspecs import ClusterConfig, Node, Role
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.security.access import access
from fallow_yarn.settings.config import YarnSpec

HERE = Node(name="here", addresses=("localhost", "127.0.0.1"))
pytestmark = pytest.mark.timeout(120, func_only=True)


class SecurePair(SecureCluster, Pair):
    """Both in one."""

    def wait_ready(self, seconds: float = 120) -> None:
        """Make `rm` active, and return when its scheduler has every NodeManager."""
        self.access = access(YarnSpec.model_validate(self.spec()))
        self.make_active(self.rm)
        super().wait_ready(seconds)

    def spec(self) -> dict[str, object]:
        """The `spec` of a cluster file."""
        return {
            "hadoopConfDir": f"{self.folder}/client",
            "kerberos": {"keytab": str(self.admin_keytab)},
            "tls": {"caFile": str(self.authority)},
        }


@pytest.fixture
def pair(realm: Realm, hadoop_jars: Jars, tmp_path: Path) -> Iterator[SecurePair]:
    with SecurePair(hadoop_jars, tmp_path / "cluster", Setup(heartbeat_ms=300), realm) as pair:
        yield pair


def test_the_active_one_is_found_by_kerberos_before_and_after_a_failover(pair: SecurePair) -> None:
    spec = YarnSpec.model_validate(pair.spec())
    with closing(YarnInstance(ClusterConfig(name="secured", roles=frozenset(Role), spec=spec))) as yarn:
        assert "rm1 at" in yarn.report_capacity((HERE,), (), 10.0).detail
        with pair.failed_over():
            pair.wait_ready()
            report = yarn.report_capacity((HERE,), (), 10.0)
        assert ("rm2 at" in report.detail, len(report.rows)) == (True, 1)
        found = {finding.subject: finding for finding in yarn.diagnose((HERE,), 20.0)}
        assert "rm1 at" in found["ResourceManager rm1"].detail
        assert found["ResourceManager rm1"].detail.endswith("standby")
