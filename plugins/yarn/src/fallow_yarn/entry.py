"""What the entry point names. Loading it is cheap: everything heavy is imported when an instance is built."""

from typing import Any

from fallow_hookspecs import API_LEVEL, ClusterConfig, Instance, Needs, Plugin, Role, Setting

TEMPLATE = """\
# A file with roles: [agent] needs no ResourceManager.
resourceManager:
  # Where the ResourceManager is. Its addresses follow from the host and Hadoop's default ports ...
  host: rm.example.com
  # ... unless they are given:
  # client: rm.example.com:8032
  # admin: rm.example.com:8033
  # web: rm.example.com:8088
# With high availability, instead of resourceManager: all of them by their ids, of which one is active.
# resourceManagers:
#   rm1: {host: rm1.example.com}
#   rm2: {host: rm2.example.com}
# Or, instead of both: the folder with the cluster's own core-site.xml and yarn-site.xml.
# hadoopConfDir: /etc/hadoop/conf
# The user that calls the ResourceManager. It has to be allowed by yarn.admin.acl there.
user: yarn
# Which NodeManagers are lent to, as the ResourceManager names them. Default: those with an address of this host.
# nodeManagers: ["worker-1.example.com:45454"]
# Or, where several nodes are lent from here, those of each:
# nodeManagersByNode: {worker-1: ["worker-1.example.com:45454", "worker-1.example.com:45455"]}
# Else also those that this label or annotation of the node, or of a pod on it, names: HOST:PORT, or HOST for all of it.
# nodeManagerKey: yarn.hadoop.apache.org/node-id
# How many milli-cores one vcore of this cluster stands for.
vcoreMilli: 1000
# A cluster with Kerberos (needs fallow-yarn[kerberos]): whose tickets, and to which service they are shown. What is in
# hadoopConfDir need not be said here. Instead of a keytab a ticketCache may be named; without either, that of the
# environment is taken.
# kerberos:
#   principal: fallow@EXAMPLE.COM
#   keytab: /etc/fallow/fallow.keytab
#   resourceManagerPrincipal: rm/_HOST@EXAMPLE.COM
#   protection: [privacy, integrity, authentication]
# Web ports that speak TLS, and the authority to trust if it is none of this host's.
# tls:
#   caFile: /etc/fallow/hadoop-ca.pem
# For `fallow yarn decommission`: the ResourceManagers' exclude and include files where this host has them, one for each
# of them unless they share it. Default: the paths that they read them from themselves.
# excludeFiles: [/mnt/rm1/hadoop/exclude, /mnt/rm2/hadoop/exclude]
# includeFiles: [/mnt/rm1/hadoop/include, /mnt/rm2/hadoop/include]
# What becomes of a node with nothing to lend: it stays at its floor, at zero (its NodeManager then exits when the
# ResourceManager restarts), or, after ten minutes with nothing to do, leaves the cluster (decommission, by the files
# above) until there is something to lend. Its NodeManager ends, and has to be started again by its supervisor.
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
