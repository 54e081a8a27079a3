"""The header by which a web page learns who asks (SPNEGO, RFC 4559)."""

import base64

from fallow_yarn.ipc.deadline import Deadline
from fallow_yarn.ipc.endpoint import Endpoint
from fallow_yarn.security.login import SPNEGO, Login, service_at


def header(login: Login, endpoint: Endpoint, deadline: Deadline) -> str:
    """The value of `Authorization` for one request. A web server's principal is HTTP/ and the name of its host."""
    _, token = login.begin(service_at("HTTP/_HOST", endpoint.host), SPNEGO, deadline)
    return f"Negotiate {base64.b64encode(token).decode()}"
