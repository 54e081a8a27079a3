"""The settings of an agent without a controller, as plain values: it does not keep pydantic in its memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fallow_yarn.model.node_matching import MatchingRules


@dataclass(frozen=True, slots=True, kw_only=True)
class Kerberos:
    """The Kerberos credentials for web pages."""

    principal: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The certificate authorities for web pages; `None`: those of this host."""

    ca_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """`given` is `spec` as the file has it. `rules`: how this host's NodeManagers are matched."""

    given: Mapping[str, Any]
    rules: MatchingRules
    user: str
    vcore_milli: int
    node_manager_user: str | None = None
    hadoop_conf_dir: str | None = None
    kerberos: Kerberos | None = None
    tls: Tls | None = None
