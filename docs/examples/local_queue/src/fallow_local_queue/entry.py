"""What the entry point names. Loading it is cheap: the plugin itself is imported when an instance is built."""

from fallow_hookspecs import API_LEVEL, ClusterConfig, ConfigModel, Instance, Plugin

TEMPLATE = """\
# The socket of the resource manager.
socket: /run/local_queue.sock
"""


def _config_model() -> type[ConfigModel]:
    from fallow_local_queue.config import Spec

    return Spec


def _build(cluster: ClusterConfig) -> Instance:
    from fallow_local_queue.plugin import LocalQueue

    return LocalQueue(cluster)


PLUGIN = Plugin(
    name="local_queue",
    api_levels=(API_LEVEL, API_LEVEL),
    config_model=_config_model,
    build=_build,
    config_template=TEMPLATE,
)
