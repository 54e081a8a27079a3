"""Kerberos authentication of web requests (SPNEGO, RFC 4559)."""

import base64
from dataclasses import dataclass

from fallow_yarn.errors import UnknownServiceError
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.net.endpoint import Endpoint
from fallow_yarn.security.login import SPNEGO, Login
from fallow_yarn.security.service import Names, host_names, services_at


@dataclass(frozen=True, slots=True)
class Negotiate:
    """Authenticates one identity to web servers. A web server's principal is HTTP/ and a name of its host."""

    login: Login
    names: Names = host_names

    def header(self, endpoint: Endpoint, deadline: Deadline) -> str:
        """The value of `Authorization` for one request, for the first name of the host that the KDC knows."""
        failure: UnknownServiceError | None = None
        for service in services_at("HTTP/_HOST", endpoint.host, self.names):
            try:
                _, token = self.login.begin(service, SPNEGO, deadline)
            except UnknownServiceError as error:
                failure = failure or error
                continue
            return f"Negotiate {base64.b64encode(token).decode()}"
        raise failure or UnknownServiceError(f"{endpoint}: the host has no name")

    def refused(self) -> None:
        """Tell that a server rejected the header."""
        self.login.refused()
