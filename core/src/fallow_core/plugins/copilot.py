"""The plugin `copilot`: a plugin in a process of its own, behind a Unix socket.

Core finds it by its entry point like any other plugin. gRPC is imported only when an instance is built.
"""

from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from fallow_core.errors import PluginLoadError
from fallow_hookspecs import API_LEVEL, ClusterConfig, Instance, Plugin

LONGEST_SOCKET_PATH_BYTES = 107

TEMPLATE = """\
# The socket of the copilot, in a directory of its own that belongs to root and that only the copilot's user and Fallow
# can access. Start a copilot with: fallow-copilot serve PLUGIN --config FILE --socket PATH
socket: /run/fallow-copilot/batch/socket
# The user that the copilot runs as, if that is neither root nor Fallow's own user. Default: none.
# user: fallow-copilot
"""


def _socket(value: str) -> str:
    if not PurePosixPath(value).is_absolute() or "\0" in value:
        raise ValueError(f"{value!r} is not an absolute path, such as /run/fallow-copilot/batch/socket")
    if len(value.encode()) > LONGEST_SOCKET_PATH_BYTES:
        raise ValueError(f"the path is longer than {LONGEST_SOCKET_PATH_BYTES} bytes, the most for a socket")
    return value


class CopilotSpec(BaseModel):
    """The model of `spec`. `user`: the user that the copilot runs as, besides root and Fallow's own user."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    socket: Annotated[str, AfterValidator(_socket)]
    user: Annotated[str, Field(min_length=1, pattern=r"^[^\s]+$")] | None = None


def _build(cluster: ClusterConfig) -> Instance:
    try:
        from fallow_core.plugins.copilot_client import open_client
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"grpc", "google"}:
            raise
        raise PluginLoadError(f"{error.name} is missing: pip install 'fallow-core[copilot]'") from error
    spec: CopilotSpec = cluster.spec
    return open_client(spec.socket, spec.user)


def _config_model() -> type[Any]:
    return CopilotSpec


PLUGIN = Plugin(
    name="copilot",
    api_levels=(API_LEVEL, API_LEVEL),
    config_model=_config_model,
    build=_build,
    config_template=TEMPLATE,
)
