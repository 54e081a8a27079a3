"""The `spec` of a cluster file for a secured cluster."""

from tests.e2e.yarn_kerberos.realm import NAME
from tests.e2e.yarn_kerberos.secure import ADMIN, SecureCluster

from fallow_yarn.settings.config import YarnSpec


def spec_of(secured: SecureCluster, **kerberos: object) -> YarnSpec:
    """One that fits, with settings of Kerberos added or replaced; those that are None are left out."""
    return YarnSpec.model_validate(kerberos_spec(secured, **kerberos))


def kerberos_spec(secured: SecureCluster, **kerberos: object) -> dict[str, object]:
    """The same, as it is written in the file."""
    rm = secured.rm
    addresses = {"host": "127.0.0.1", "client": rm.client, "admin": rm.admin, "web": rm.web}
    fitting: dict[str, object] = {
        "principal": ADMIN,
        "keytab": str(secured.admin_keytab),
        "resourceManagerPrincipal": f"rm/_HOST@{NAME}",
    }
    given = {key: value for key, value in (fitting | kerberos).items() if value is not None}
    tls = {"caFile": str(secured.authority)}
    return {"resourceManager": addresses, "kerberos": given, "tls": tls}
