"""Where the ResourceManagers are, from Hadoop's own properties and defaults.

With high availability each key may have the id of a ResourceManager behind it, and the address follows from its host
name where it is not given.
"""

from typing import Final

from fallow_yarn.hadoop_conf.files import HadoopConfError, Properties, read_folder
from fallow_yarn.rm.place import Place, Server, server

PREFIX: Final = "yarn.resourcemanager"
NO_HOST: Final = "0.0.0.0"  # noqa: S104 - Hadoop's default of the host name: on the ResourceManager itself it is right

WEB: Final = (f"{PREFIX}.webapp.address", 8088)
SECURE_WEB: Final = (f"{PREFIX}.webapp.https.address", 8090)


def resource_managers(folder: str) -> tuple[Place, ...]:
    """The ResourceManagers of a folder with Hadoop's files, one or more.

    :raises HadoopConfError: the folder cannot be read, or does not say where they are.
    """
    properties = read_folder(folder)
    if not properties.flag(f"{PREFIX}.ha.enabled"):
        return (_place(properties, ""),)
    names = [name.strip() for name in properties.text(f"{PREFIX}.ha.rm-ids").split(",") if name.strip()]
    if not names:
        raise HadoopConfError(f"{folder}: {PREFIX}.ha.enabled is true, and {PREFIX}.ha.rm-ids names no ResourceManager")
    return tuple(_place(properties, name) for name in names)


def is_by_host_name(source: str) -> bool:
    """Whether an address with this source has only its host from there, and Hadoop's default port."""
    return source.startswith(f"{PREFIX}.hostname")


def _place(properties: Properties, name: str) -> Place:
    secure = properties.text("yarn.http.policy", "HTTP_ONLY") == "HTTPS_ONLY"
    web_key, web_port = SECURE_WEB if secure else WEB
    return Place(
        name=name,
        client=server(Server.CLIENT, *_address(properties, f"{PREFIX}.address", 8032, name)),
        admin=server(Server.ADMIN, *_address(properties, f"{PREFIX}.admin.address", 8033, name)),
        web=server(Server.WEB, *_address(properties, web_key, web_port, name)),
        secure_web=secure,
    )


def _address(properties: Properties, key: str, port: int, name: str) -> tuple[str, str]:
    """The address, and where it was found. Of one of several, a key with its id goes before the key without it."""
    keys = (f"{key}.{name}", f"{PREFIX}.hostname.{name}", key) if name else (key, f"{PREFIX}.hostname")
    for candidate in keys:
        value = properties.text(candidate)
        if not value:
            continue
        host, _, given_port = value.rpartition(":")
        address = value if host and given_port.isdecimal() else f"{value}:{port}"
        if address.rpartition(":")[0] == NO_HOST:
            break
        return address, properties.place(candidate)
    wanted = f"{PREFIX}.hostname.{name}" if name else f"{PREFIX}.hostname"
    raise HadoopConfError(
        f"{properties.folder}: it does not say where ResourceManager{' ' + name if name else ''} is; expected {wanted}"
        f" or {keys[0]}"
    )
