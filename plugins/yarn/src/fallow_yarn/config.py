"""The model of `spec` in a cluster file with `plugin: yarn`."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

CLIENT_PORT, ADMIN_PORT, WEB_PORT = 8032, 8033, 8088

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):(\d{1,5})")


def _address(value: str) -> str:
    match = _ADDRESS.fullmatch(value)
    if match is None or not 0 < int(match[2]) < 65536:
        raise ValueError(f"{value!r} is not HOST:PORT, such as rm.example.com:8032 or [2001:db8::1]:8032")
    return value


def _host(value: str) -> str:
    if not value or _ADDRESS.fullmatch(value) or re.search(r"[\s/]", value):
        raise ValueError(f"{value!r} is not a host name or address without a port, such as rm.example.com")
    return value


Address = Annotated[str, AfterValidator(_address)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel)


class ResourceManagerSpec(_Model):
    """Where the ResourceManager is: a host, and addresses where they are not at Hadoop's default ports."""

    host: Annotated[str, AfterValidator(_host)]
    client: Address | None = None
    admin: Address | None = None
    web: Address | None = None

    @property
    def client_address(self) -> str:
        """Address of the client protocol."""
        return self.client or f"{self.host}:{CLIENT_PORT}"

    @property
    def admin_address(self) -> str:
        """Address of the admin protocol, which takes node sizes."""
        return self.admin or f"{self.host}:{ADMIN_PORT}"

    @property
    def web_address(self) -> str:
        """Address of the web pages and REST."""
        return self.web or f"{self.host}:{WEB_PORT}"


class YarnSpec(_Model):
    """The model of `spec`. `vcore_milli`: how many milli-cores one vcore stands for."""

    resource_manager: ResourceManagerSpec
    user: Annotated[str, Field(min_length=1, pattern=r"^[^\s]+$")] = "yarn"
    node_managers: tuple[Address, ...] | None = Field(default=None, min_length=1, strict=False)
    vcore_milli: Annotated[int, Field(ge=1, le=1_000_000)] = 1000
