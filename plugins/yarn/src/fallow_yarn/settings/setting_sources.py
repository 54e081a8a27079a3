"""Lists every setting of a cluster's instance with its source, for `fallow plugins info`.

Derived values (addresses, principals) come first, as they are used; then the cluster file's own settings. It asks no
server and opens no keytab.
"""

from collections.abc import Iterator
from typing import Any, Final

from fallow_hookspecs import ClusterConfig, Setting
from fallow_yarn.settings.config import AgentSpec, KerberosSpec, spec_of
from fallow_yarn.settings.hadoop_conf import EXCLUDE_KEY, INCLUDE_KEY, Properties
from fallow_yarn.settings.rm_addresses import PREFIX, RmAddresses, Server, is_by_host_name, rm_addresses
from fallow_yarn.settings.security import (
    AUTHENTICATION_KEY,
    PATTERN_KEY,
    PRINCIPAL_KEY,
    PROTECTION_KEY,
    hadoop_properties,
    wants_kerberos,
    wants_tls,
)

DEFAULT: Final = "default"
NOT_SET: Final = "not set"
NAMED_BY_SOURCE: Final = "the principal of the tickets"
OF_RESOURCE_MANAGERS: Final = frozenset({"resource_manager", "resource_managers", "kerberos", "tls"})
"""Parts of the cluster file that are listed as the values derived from them."""

OTHER_KEYS: Final = (("include file", INCLUDE_KEY), ("exclude file", EXCLUDE_KEY))
"""Further keys of Hadoop's files that this plugin reads."""


def settings(cluster: ClusterConfig) -> list[Setting]:
    """All of them, in the order in which they are shown.

    :raises HadoopConfError: the folder that the file names cannot be read, or lacks what is needed.
    """
    spec = spec_of(cluster.spec)
    hadoop = hadoop_properties(spec)
    return [*_addresses(spec, hadoop), *_security(spec, hadoop), *_others(hadoop), *_own(spec)]


def _addresses(spec: AgentSpec, hadoop: Properties | None) -> Iterator[Setting]:
    if not spec.ways:
        yield Setting(name="ResourceManager", value="none: an agent asks this host only", source="roles")
        return
    found = rm_addresses(spec)
    if len(found) > 1:
        source = "spec.resourceManagers" if hadoop is None else hadoop.source(f"{PREFIX}.ha.rm-ids")
        yield Setting(name="ResourceManagers", value=", ".join(addresses.name for addresses in found), source=source)
    for addresses in found:
        name = f"ResourceManager {addresses.name}".rstrip()
        for kind in Server:
            words = f"{name}, {kind}" + (" (TLS)" if kind is Server.WEB and addresses.secure_web else "")
            yield Setting(name=words, value=addresses.of(kind).authority, source=_address_source(spec, addresses, kind))


def _address_source(spec: AgentSpec, addresses: RmAddresses, kind: Server) -> str:
    source = addresses.of(kind).setting
    if spec.hadoop_conf_dir is not None:
        return f"{source}, Hadoop's default port" if is_by_host_name(source) else source
    given = (spec.resource_managers or {}).get(addresses.name) or spec.resource_manager
    if given is None or getattr(given, kind.value) is not None:
        return source
    manager = source.rpartition(".")[0]
    host = f"{manager}.host" if given.host is not None else f"{manager}, the host of its other addresses"
    return f"{host}, Hadoop's default port"


def _security(spec: AgentSpec, hadoop: Properties | None) -> Iterator[Setting]:
    if not wants_kerberos(spec, hadoop):
        source = hadoop.source(AUTHENTICATION_KEY) if hadoop is not None else f"{DEFAULT}: no spec.kerberos"
        yield Setting(name="authentication", value="simple: the servers believe spec.user", source=source)
    else:
        yield from _kerberos(spec, hadoop)
    tls, source = wants_tls(spec, hadoop)
    yield Setting(name="web pages by TLS", value="yes" if tls else "no", source=source)
    if tls:
        given = spec.tls.ca_file if spec.tls is not None else None
        source = f"{DEFAULT}: those of this host" if given is None else "spec.tls.caFile"
        yield Setting(name="certificate authorities", value=given or "the system's", source=source)


def _kerberos(spec: AgentSpec, hadoop: Properties | None) -> Iterator[Setting]:
    given = spec.kerberos or KerberosSpec()
    source = hadoop.source(AUTHENTICATION_KEY) if hadoop is not None and spec.kerberos is None else "spec.kerberos"
    yield Setting(name="authentication", value="kerberos", source=source)
    yield _first("our principal", (given.principal, "spec.kerberos.principal"), (NAMED_BY_SOURCE, DEFAULT))
    yield _first(
        "tickets from",
        (given.keytab, "spec.kerberos.keytab"),
        (given.ticket_cache, "spec.kerberos.ticketCache"),
        ("the environment (KRB5CCNAME, KRB5_CLIENT_KTNAME)", DEFAULT),
    )
    yield _first(
        "ResourceManager's principal",
        (given.resource_manager_principal, "spec.kerberos.resourceManagerPrincipal"),
        _of(hadoop, PATTERN_KEY),
        _of(hadoop, PRINCIPAL_KEY),
    )
    yield _first(
        "protection",
        (", ".join(given.protection or ()), "spec.kerberos.protection"),
        _of(hadoop, PROTECTION_KEY),
        ("all; the strongest that is offered", DEFAULT),
    )


def _of(hadoop: Properties | None, key: str) -> tuple[str, str]:
    return ("", "") if hadoop is None else (hadoop.text(key), hadoop.source(key))


def _first(name: str, *ways: tuple[str | None, str]) -> Setting:
    """The first of several values that is set."""
    value, source = next(((value, source) for value, source in ways if value), (NOT_SET, DEFAULT))
    return Setting(name=name, value=value, source=source)


def _others(hadoop: Properties | None) -> Iterator[Setting]:
    if hadoop is not None:
        for name, key in OTHER_KEYS:
            yield Setting(name=name, value=hadoop.text(key) or NOT_SET, source=hadoop.source(key))


def _own(spec: AgentSpec) -> Iterator[Setting]:
    """The cluster file's own settings, by its keys."""
    for name, field in type(spec).model_fields.items():
        if name in OF_RESOURCE_MANAGERS:
            continue
        key, value = field.alias or name, getattr(spec, name)
        source = f"spec.{key}" if name in spec.model_fields_set else DEFAULT
        yield Setting(name=key, value=_words(value), source=source)


def _words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_words, value))
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_words(entry)}" for key, entry in value.items())
    return NOT_SET if value is None else str(value)
