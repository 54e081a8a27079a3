"""Advice for each error with which a port of the ResourceManager can fail. Pure."""

from collections.abc import Mapping
from typing import Final

from fallow_hookspecs import Finding
from fallow_yarn.errors import (
    AccessDeniedError,
    AuthenticationRefusedError,
    ConnectionLostError,
    CredentialsError,
    DeadlineError,
    NoSuchCallError,
    ProtocolError,
    RefusedError,
    RemoteError,
    SilentHostError,
    StandbyError,
    UnknownHostError,
    UnreachableError,
    YarnError,
)
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.settings.rm_addresses import Server

_ADVICE: Final[tuple[tuple[type[YarnError], str], ...]] = (
    (UnknownHostError, "correct the host in {key}, or make this host resolve its name: test with getent hosts NAME"),
    (
        RefusedError,
        (
            "the host is up, but nothing listens there: start the ResourceManager, or set {key} to its {hadoop};"
            " an address of 127.0.0.1 in its yarn-site.xml accepts its own host only"
        ),
    ),
    (SilentHostError, "the host is down, or a firewall drops what is sent: try nc -vz HOST PORT from here"),
    (
        ConnectionLostError,
        (
            "the server closes the connection: unless the ResourceManager is just starting, it is another service"
            " or expects TLS; set {key} to its {hadoop}"
        ),
    ),
    (UnreachableError, "the network cannot reach it: check the host in {key}, and this host's routes"),
    (
        DeadlineError,
        (
            "it accepts connections and does not answer: another service, or a hanging ResourceManager; check its"
            " log, and compare {key} with its {hadoop}"
        ),
    ),
    (ProtocolError, "another service answers there: set {key} to the ResourceManager's {hadoop}"),
    (NoSuchCallError, "that is another port of a Hadoop daemon: set {key} to the ResourceManager's {hadoop}"),
    (
        AuthenticationRefusedError,
        (
            "set {key} to the ResourceManager's {hadoop} if it is not; if it is, the cluster requires Kerberos, which"
            " spec.kerberos configures, or another principal"
        ),
    ),
    (StandbyError, "configure the active ResourceManager, or all in spec.resourceManagers; make one active if none is"),
    (CredentialsError, "correct spec.kerberos, the keytab or the ticket: see kinit and klist"),
    (AccessDeniedError, "set spec.user to a user that the cluster's access lists admit"),
)


def failed(subject: str, endpoint: Endpoint, error: YarnError) -> Finding:
    """The finding for a server that failed."""
    return Finding(subject=subject, ok=False, detail=str(error), advice=advice(endpoint, error))


def advice(endpoint: Endpoint, error: YarnError) -> str:
    """What to change."""
    words = next((words for kind, words in _ADVICE if isinstance(error, kind)), "")
    if isinstance(error, RemoteError) and error.kind == "HTTP 404":
        words = "a web server without the pages of a ResourceManager, such as a NodeManager: set {key} to its {hadoop}"
    words = words or "it answered with an internal error: check the ResourceManager's log"
    return words.format(key=endpoint.setting, hadoop=endpoint.hadoop_key)


def are_all_away(errors: Mapping[Server, YarnError]) -> bool:
    """Whether all ports refuse connections: the ResourceManager does not run."""
    return errors.keys() == set(Server) and all(isinstance(error, RefusedError) for error in errors.values())
