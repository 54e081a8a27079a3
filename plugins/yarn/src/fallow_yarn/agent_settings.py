"""What an agent alone needs of a cluster file, as plain values: what checks the file is not kept in its memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fallow_yarn.identity import Rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Kerberos:
    """Whose tickets are shown to web pages, and where they come from."""

    principal: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """The authorities that web pages are trusted by; `None`: those of this host."""

    ca_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """`given` is `spec` as the file has it. `rules`: which NodeManagers are this host's."""

    given: Mapping[str, Any]
    rules: Rules
    user: str
    vcore_milli: int
    hadoop_conf_dir: str | None = None
    kerberos: Kerberos | None = None
    tls: Tls | None = None


class AgentModel:
    """The model of `spec` for the role of an agent alone."""

    @classmethod
    def model_validate(cls, obj: Any) -> AgentSettings:
        """The settings; the errors are those of the model of the file."""
        from fallow_yarn.config import AgentSpec

        spec = AgentSpec.model_validate(obj)
        kerberos, tls = spec.kerberos, spec.tls
        return AgentSettings(
            given=obj,
            rules=spec.rules(manager_is_local=True),  # whoever calls itself localhost here is on this host
            user=spec.user,
            vcore_milli=spec.vcore_milli,
            hadoop_conf_dir=spec.hadoop_conf_dir,
            kerberos=None
            if kerberos is None
            else Kerberos(principal=kerberos.principal, keytab=kerberos.keytab, ticket_cache=kerberos.ticket_cache),
            tls=None if tls is None else Tls(ca_file=tls.ca_file),
        )

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """That of the file."""
        from fallow_yarn.config import AgentSpec

        return AgentSpec.model_json_schema()
