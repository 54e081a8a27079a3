"""The plugin's entry point. Loading it is cheap: heavy modules are imported when an instance is built."""

from typing import Any

from fallow_hookspecs import API_LEVEL, ClusterConfig, Instance, Needs, Plugin, Role, Setting

TEMPLATE = """\
# A file with roles: [agent] needs no ResourceManager.
resourceManager:
  # Its addresses are the host with Hadoop's default ports ...
  host: rm.example.com
  # ... unless they are set; without host, give all three, or some on one host:
  # client: rm.example.com:8032
  # admin: rm.example.com:8033
  # web: rm.example.com:8088
# With high availability, instead of resourceManager: all ResourceManagers by id, of which one is active.
# resourceManagers:
#   rm1: {host: rm1.example.com}
#   rm2: {host: rm2.example.com}
# Or, instead of both: the directory with the cluster's own core-site.xml and yarn-site.xml.
# hadoopConfDir: /etc/hadoop/conf
# The user that calls the ResourceManager. It has to be in yarn.admin.acl there.
user: yarn
# The NodeManagers of this host, by their ids at the ResourceManager. Default: those with an address of this host.
# nodeManagers: ["worker-1.example.com:45454"]
# Or, with several nodes, those of each:
# nodeManagersByNode: {worker-1: ["worker-1.example.com:45454", "worker-1.example.com:45455"]}
# Otherwise this label or annotation of the node, or of a pod on it, adds more: HOST:PORT, or HOST for all ports.
# nodeManagerKey: yarn.hadoop.apache.org/node-id
# The user that NodeManagers run as on this host, by name or number. A process of another user is none, whatever it
# says of itself. Default: root, system users (below 1000) and Fallow's own user, or else the one user that runs any.
# nodeManagerUser: yarn
# Milli-cores of one vcore of this cluster.
vcoreMilli: 1000
# Kerberos (needs fallow-yarn[kerberos]): the credentials, and the principal of the ResourceManager. Values in
# hadoopConfDir need not be repeated here. A ticketCache may replace the keytab; without either, the credentials of the
# environment are used.
# kerberos:
#   principal: fallow@EXAMPLE.COM
#   keytab: /etc/fallow/fallow.keytab
#   resourceManagerPrincipal: rm/_HOST@EXAMPLE.COM
#   protection: [privacy, integrity, authentication]
# Web ports with TLS, and the certificate authority if this host does not trust it.
# tls:
#   caFile: /etc/fallow/hadoop-ca.pem
# For `fallow yarn decommission`: paths of the ResourceManagers' exclude and include files on this host, one for each
# ResourceManager unless they share it. Default: the paths in the ResourceManager's own settings.
# excludeFiles: [/mnt/rm1/hadoop/exclude, /mnt/rm2/hadoop/exclude]
# includeFiles: [/mnt/rm1/hadoop/include, /mnt/rm2/hadoop/include]
# What happens to a node with nothing to lend: it stays at its floor, stays at zero (its NodeManager then exits when the
# ResourceManager restarts), or is decommissioned through the files above once it is empty for ten minutes, until there
# is something to lend. Its NodeManager then exits, and its supervisor has to start it again.
# whenEmpty: decommission
"""


def _config_model() -> type[Any]:
    from fallow_yarn.settings.config import YarnSpec

    return YarnSpec


def _agent_model() -> type[Any]:
    from fallow_yarn.settings.agent_model import AgentModel

    return AgentModel


def _build(cluster: ClusterConfig) -> Instance:
    if cluster.roles == {Role.AGENT}:
        from fallow_yarn.agent import YarnAgent

        return YarnAgent(cluster)
    from fallow_yarn.plugin import YarnInstance

    return YarnInstance(cluster)


def _settings(cluster: ClusterConfig) -> list[Setting]:
    from fallow_yarn.settings.setting_sources import settings

    return settings(cluster)


PLUGIN = Plugin(
    name="yarn",
    api_levels=(API_LEVEL, API_LEVEL),
    config_model=_config_model,
    agent_model=_agent_model,
    build=_build,
    config_template=TEMPLATE,
    settings=_settings,
    needs=Needs(
        kernel_features=("pidfd (Linux 5.3), to end a container without the ResourceManager",),
        files=("/proc of the host, to find the processes of NodeManagers and of their containers",),
    ),
)
