"""A real YARN cluster whose RPC and web pages ask for Kerberos, the pages over TLS."""

import secrets
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.e2e.yarn.cluster import Cluster
from tests.e2e.yarn.config import RM, Setup, write_xml
from tests.e2e.yarn.daemons import ResourceManager
from tests.e2e.yarn.jars import Jars
from tests.e2e.yarn_kerberos.realm import NAME, Realm

from fallow_yarn.errors import YarnError
from fallow_yarn.http.web import Web
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.security.login import Identity, Login
from fallow_yarn.security.negotiate import Negotiate
from fallow_yarn.settings.rm_addresses import Server, server

ADMIN = "operator"
SERVICES = ("rm/localhost", "nm/localhost", "HTTP/localhost")
PASSWORD = "for tests only"
PROTECTIONS = ("privacy", "integrity", "authentication")


class SecureCluster(Cluster):
    """A cluster in a realm. `operator` may change sizes. It offers every protection, and a client takes its own."""

    def __init__(self, jars: Jars, folder: Path, setup: Setup, realm: Realm) -> None:
        super().__init__(jars, folder, setup)
        self.keytabs = {service: realm.keytab(service) for service in SERVICES}
        self.admin_keytab = realm.keytab(ADMIN)
        self.authority = self.folder / "authority.pem"
        self.login = Login(Identity(principal=ADMIN, keytab=str(self.admin_keytab)))
        self._cookies: dict[str, str] = {}
        for daemon in self.daemons.values():
            daemon.options = (f"-Djava.security.krb5.conf={realm.config}",)

    def configure(self, everywhere: Mapping[str, str], managers: Mapping[ResourceManager, Mapping[str, str]]) -> None:
        """Write the files of all daemons, with Kerberos and TLS."""
        self.folder.mkdir(parents=True)
        secret = self.folder / "secret"
        secret.write_text(secrets.token_hex(32))
        super().configure({**self._tls(), **self._security(secret), **everywhere}, managers)
        for daemon in self.daemons.values():
            write_xml(daemon.home / "conf" / "ssl-server.xml", self._keystore())

    def page(self, path: str) -> Any:
        """A page of the ResourceManager, as the operator; OSError tells why there is none."""
        try:
            return self._web().json(path, Deadline.after(20))
        except YarnError as error:
            raise OSError(str(error)) from error

    def _web(self) -> Web:
        tls = ssl.create_default_context(cafile=str(self.authority))
        return Web(
            server(Server.WEB, self.rm.web, "the test"),
            ADMIN,
            tls=tls,
            authentication=Negotiate(self.login),
            cookies=self._cookies,
        )

    def _keystore(self) -> dict[str, str]:
        """A certificate for localhost that is its own authority; made with the first call."""
        store = self.folder / "keystore"
        if not store.exists():
            common = ["-alias", "web", "-keystore", str(store), "-storepass", PASSWORD]
            names = ["-dname", "CN=localhost", "-ext", "SAN=dns:localhost,ip:127.0.0.1", "-validity", "2"]
            keytool("-genkeypair", "-keyalg", "EC", "-keypass", PASSWORD, *names, *common)
            keytool("-exportcert", "-rfc", "-file", str(self.authority), *common)
        prefix = "ssl.server.keystore."
        return {f"{prefix}location": str(store), f"{prefix}password": PASSWORD, f"{prefix}keypassword": PASSWORD}

    def _tls(self) -> dict[str, str]:
        addresses = {f"{RM}.webapp.https.address": self.rm.web}
        for nm in self.nms.values():  # there is one at most
            addresses["yarn.nodemanager.webapp.https.address"] = nm.web
        return {"yarn.http.policy": "HTTPS_ONLY", **addresses}

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


def keytool(*arguments: str) -> None:
    """Run the JDK's tool for keys."""
    subprocess.run(["keytool", *arguments], check=True, capture_output=True)
