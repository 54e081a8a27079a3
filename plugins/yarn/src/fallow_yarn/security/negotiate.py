"""Kerberos authentication of web requests (SPNEGO, RFC 4559)."""

import base64
from dataclasses import dataclass

from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.security.login import SPNEGO, Login, service_at


@dataclass(frozen=True, slots=True)
class Negotiate:
    """Authenticates one identity to web servers. A web server's principal is HTTP/ and the name of its host."""

    login: Login

    def header(self, endpoint: Endpoint, deadline: Deadline) -> str:
        """The value of `Authorization` for one request."""
        _, token = self.login.begin(service_at("HTTP/_HOST", endpoint.host), SPNEGO, deadline)
        return f"Negotiate {base64.b64encode(token).decode()}"

    def refused(self) -> None:
        """Tell that a server rejected the header."""
        self.login.refused()
