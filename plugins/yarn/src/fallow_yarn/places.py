"""Where a cluster's ResourceManagers are, from whichever of the three ways its file says it in."""

from fallow_yarn.config import WAYS, AgentSpec, ResourceManagerSpec
from fallow_yarn.hadoop_conf import HadoopConfError, resource_managers
from fallow_yarn.identity import is_loopback
from fallow_yarn.rm.place import Place, Server, server


def places(spec: AgentSpec) -> tuple[Place, ...]:
    """The ResourceManagers, one or more. A folder of Hadoop's is read now.

    :raises HadoopConfError: the folder cannot be read, or it is not said where they are.
    """
    if spec.hadoop_conf_dir is not None:
        return resource_managers(spec.hadoop_conf_dir)
    secure = spec.tls is not None
    if spec.resource_managers is not None:
        return tuple(
            _place(name, given, f"spec.resourceManagers.{name}", secure=secure)
            for name, given in spec.resource_managers.items()
        )
    if spec.resource_manager is None:
        raise HadoopConfError(f"spec does not say where the ResourceManager is: give one of {WAYS}")
    return (_place("", spec.resource_manager, "spec.resourceManager", secure=secure),)


def are_local(found: tuple[Place, ...]) -> bool:
    """Whether all are reached by the loopback interface."""
    return all(is_loopback(place.admin.host) for place in found)


def _place(name: str, given: ResourceManagerSpec, setting: str, *, secure: bool) -> Place:
    return Place(
        name=name,
        client=server(Server.CLIENT, given.client_address, f"{setting}.client"),
        admin=server(Server.ADMIN, given.admin_address, f"{setting}.admin"),
        web=server(Server.WEB, given.web_address, f"{setting}.web"),
        secure_web=secure,
    )
