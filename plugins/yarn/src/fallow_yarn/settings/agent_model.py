"""The model of `spec` for an agent without a controller: validates like `config`, and loads pydantic only to do so."""

from typing import Any

from fallow_yarn.settings.agent_settings import AgentSettings, Kerberos, Tls


class AgentModel:
    """The model of `spec` for a file with `roles: [agent]`."""

    @classmethod
    def model_validate(cls, obj: Any) -> AgentSettings:
        """The settings; the errors are those of `AgentSpec`."""
        from fallow_yarn.settings.config import AgentSpec

        spec = AgentSpec.model_validate(obj)
        kerberos, tls = spec.kerberos, spec.tls
        return AgentSettings(
            given=obj,
            rules=spec.rules(manager_is_local=True),  # a NodeManager of this host may be named localhost
            user=spec.user,
            vcore_milli=spec.vcore_milli,
            node_manager_user=spec.node_manager_user,
            hadoop_conf_dir=spec.hadoop_conf_dir,
            kerberos=None
            if kerberos is None
            else Kerberos(principal=kerberos.principal, keytab=kerberos.keytab, ticket_cache=kerberos.ticket_cache),
            tls=None if tls is None else Tls(ca_file=tls.ca_file),
        )

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """The schema of `AgentSpec`."""
        from fallow_yarn.settings.config import AgentSpec

        return AgentSpec.model_json_schema()
