"""Why a port of the ResourceManager cannot be used, and what to do about each of the ways to fail. Pure."""

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
    (UnknownHostError, "correct the host in {key}, or make its name known to this host: getent hosts NAME shows it"),
    (
        RefusedError,
        (
            "the host is up, but nothing listens there: start the ResourceManager, or set {key} to its {hadoop};"
            " an address of 127.0.0.1 in its yarn-site.xml is open to its own host alone"
        ),
    ),
    (SilentHostError, "the host is down, or a firewall drops what is sent: try nc -vz HOST PORT from here"),
    (
        ConnectionLostError,
        (
            "something listens there and hangs up: if the ResourceManager is not just starting, it is another service"
            " or asks for TLS; set {key} to its {hadoop}"
        ),
    ),
    (UnreachableError, "the network has no way there: check the host in {key}, and this host's routes"),
    (
        DeadlineError,
        (
            "it takes connections and does not answer: another service, or a ResourceManager that hangs; look into its"
            " log, and compare {key} with its {hadoop}"
        ),
    ),
    (ProtocolError, "another service answers there: set {key} to the ResourceManager's {hadoop}"),
    (NoSuchCallError, "that is another port of a Hadoop daemon: set {key} to the ResourceManager's {hadoop}"),
    (
        AuthenticationRefusedError,
        (
            "set {key} to the ResourceManager's {hadoop} if it is not; if it is, the cluster asks for Kerberos, which"
            " spec.kerberos sets up, or asks for another principal than that"
        ),
    ),
    (StandbyError, "name the active ResourceManager, or all in spec.resourceManagers; make one active if none is"),
    (CredentialsError, "mend spec.kerberos, the keytab or the ticket: kinit and klist show what there is"),
    (AccessDeniedError, "set spec.user to a user that the cluster's access lists admit"),
)


def failed(subject: str, endpoint: Endpoint, error: YarnError) -> Finding:
    """The finding for a server that could not be used."""
    return Finding(subject=subject, ok=False, detail=str(error), advice=advice(endpoint, error))


def advice(endpoint: Endpoint, error: YarnError) -> str:
    """What to change."""
    words = next((words for kind, words in _ADVICE if isinstance(error, kind)), "")
    if isinstance(error, RemoteError) and error.kind == "HTTP 404":
        words = "a web server without the pages of a ResourceManager, such as a NodeManager: set {key} to its {hadoop}"
    words = words or "it answered with an error of its own: look into the ResourceManager's log"
    return words.format(key=endpoint.setting, hadoop=endpoint.hadoop_key)


def are_all_away(errors: Mapping[Server, YarnError]) -> bool:
    """Whether all ports fail for one reason that lies outside the ResourceManager's settings: it does not run."""
    return errors.keys() == set(Server) and all(isinstance(error, RefusedError) for error in errors.values())
