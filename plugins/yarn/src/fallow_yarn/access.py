"""How this plugin says who it is, and whom it believes: what every connection of one cluster has in common."""

from dataclasses import dataclass

from fallow_yarn.ipc.connection import Authenticate, Connection, simple
from fallow_yarn.ipc.endpoint import Endpoint
from fallow_yarn.rest import Web


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """`user` is the name for messages and for web pages that believe it; `authenticate` opens IPC connections."""

    user: str
    authenticate: Authenticate

    @classmethod
    def simple(cls, user: str) -> "Access":
        """Say who one is, and be believed."""
        return cls(user=user, authenticate=simple(user))

    def connection(self, endpoint: Endpoint, protocol: str) -> Connection:
        """A connection to one protocol of a server, not made yet."""
        return Connection(endpoint, protocol, self.user, self.authenticate)

    def web(self, endpoint: Endpoint, *, secure: bool = False) -> Web:
        """The web server of a daemon."""
        return Web(endpoint, self.user)
