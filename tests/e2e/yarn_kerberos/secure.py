"""A real YARN cluster whose RPC and web pages ask for Kerberos."""

import secrets
from pathlib import Path
from typing import Any

from tests.e2e.yarn import rest
from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.config import RM, Setup
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn_kerberos.realm import NAME, Realm

from fallow_yarn.errors import YarnError
from fallow_yarn.ipc.deadline import Deadline
from fallow_yarn.ipc.endpoint import Endpoint
from fallow_yarn.rest import Web
from fallow_yarn.security.login import Identity, Login
from fallow_yarn.security.negotiate import header

ADMIN = "operator"
SERVICES = ("rm/localhost", "nm/localhost", "HTTP/localhost")
PROTECTIONS = ("privacy", "integrity", "authentication")


class SecureCluster(Cluster):
    """A cluster in a realm. `operator` may change sizes. It offers every protection, and a client takes its own."""

    def __init__(self, jars: Jars, folder: Path, setup: Setup, realm: Realm) -> None:
        super().__init__(jars, folder, setup)
        self.keytabs = {service: realm.keytab(service) for service in SERVICES}
        self.admin_keytab = realm.keytab(ADMIN)
        for daemon in self.daemons.values():
            daemon.options = (f"-Djava.security.krb5.conf={realm.config}",)
        login = Login(Identity(principal=ADMIN, keytab=str(self.admin_keytab)))
        address, _, port = self.rm.web.partition(":")
        endpoint = Endpoint(host=address, port=int(port), setting="the test", purpose="its web port", hadoop_key="")
        self.web = Web(endpoint, ADMIN, proof=lambda endpoint, deadline: header(login, endpoint, deadline))

    def start(self) -> None:
        """Start every daemon; return when the scheduler has every NodeManager. A failure stops them all."""
        secret = self.folder / "secret"
        self.folder.mkdir(parents=True)
        secret.write_text(secrets.token_hex(32))
        everywhere = {**self.rm.properties(), **self._security(secret)}
        self.configure(everywhere, {self.rm: {}})
        try:
            for name in self.daemons:
                self.launch(name)
            self.wait_ready()
        except BaseException:
            self.stop()
            raise

    def wait_ready(self, seconds: float = 120) -> None:
        """Return when the scheduler has every NodeManager that was not killed."""
        waited_for = [nm for nm in self.nms.values() if nm.process is not None]

        def ready() -> bool:
            if not all(daemon.pid for daemon in [self.rm, *waited_for]):
                return False
            nodes = self.nodes()
            return all(nm.is_back(nodes) for nm in waited_for)

        rest.wait_for(ready, seconds, "the ResourceManager and its nodes")

    def nodes(self) -> dict[str, rest.Node]:
        """Every node that the ResourceManager knows, by its id."""
        return rest.nodes_in(self.page("/ws/v1/cluster/nodes"))

    def page(self, path: str) -> Any:
        """A page of the ResourceManager, as the operator; OSError tells why there is none."""
        try:
            return self.web.json(path, Deadline.after(20))
        except YarnError as error:
            raise OSError(str(error)) from error

    def _security(self, secret: Path) -> dict[str, str]:
        keytabs = {service: str(keytab) for service, keytab in self.keytabs.items()}
        spnego = f"HTTP/localhost@{NAME}"
        filters = "org.apache.hadoop.security.AuthenticationFilterInitializer"
        properties = {
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.authorization": "true",
            "hadoop.rpc.protection": ",".join(PROTECTIONS),
            "yarn.admin.acl": ADMIN,
            "yarn.acl.enable": "true",
            f"{RM}.principal": f"rm/_HOST@{NAME}",
            f"{RM}.keytab": keytabs["rm/localhost"],
            "yarn.nodemanager.principal": f"nm/_HOST@{NAME}",
            "yarn.nodemanager.keytab": keytabs["nm/localhost"],
            "hadoop.http.filter.initializers": filters,
            "hadoop.http.authentication.type": "kerberos",
            "hadoop.http.authentication.kerberos.principal": spnego,
            "hadoop.http.authentication.kerberos.keytab": keytabs["HTTP/localhost"],
            "hadoop.http.authentication.signature.secret.file": str(secret),
            "hadoop.http.authentication.simple.anonymous.allowed": "false",
        }
        for daemon in (RM, "yarn.nodemanager"):
            properties[f"{daemon}.webapp.spnego-principal"] = spnego
            properties[f"{daemon}.webapp.spnego-keytab-file"] = keytabs["HTTP/localhost"]
        return properties
