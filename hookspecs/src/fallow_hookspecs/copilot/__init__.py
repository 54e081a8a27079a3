"""The copilot: a plugin in a process of its own, behind a Unix socket, called by gRPC.

`v0/copilot.proto` is the service, and all that a copilot in another language needs. `fallow-copilot serve` (`command`)
serves any plugin of this Python environment: `host` builds its instance, `lanes` are its two threads, `server` answers
the calls, `socket_file` places the socket. `client` is the other end, for core. Both ends convert by `messages`, which
uses `codec` for any dataclass, `fast_write` and `fast_read` for rows and tasks. `status` carries errors.

It needs the extra `fallow-hookspecs[copilot]`; nothing outside this package imports it. It makes no decision: what a
plugin answers is passed on as it is.
"""


class CopilotError(Exception):
    """What keeps a copilot from serving. The operator sees its text: what was wrong, where, and what to do."""
