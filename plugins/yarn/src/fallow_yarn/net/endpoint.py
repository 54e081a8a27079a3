"""An address of a Hadoop daemon, with what a message about it needs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Host and port of a server.

    For messages: `setting` is the key of the config that it came from, `purpose` describes the server, and `hadoop_key`
    is the Hadoop setting with the correct address. `__str__` is `host:port (setting)`.
    """

    host: str
    port: int
    setting: str
    purpose: str
    hadoop_key: str

    @classmethod
    def parse(cls, text: str, *, setting: str, purpose: str, hadoop_key: str) -> "Endpoint":
        """Read `host:port`; an IPv6 address stands in brackets. ValueError if it is not that."""
        host, colon, port = text.rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        bare = host[1:-1] if bracketed else host
        if not (colon and bare and port.isascii() and port.isdigit() and 0 < int(port) < 65536):
            raise ValueError(
                f"{setting}: {text!r} is not an address; expected host:port, for example rm1:8033 or [::1]:8033"
            )
        if ":" in bare and not bracketed:
            raise ValueError(f"{setting}: {text!r} is ambiguous; write an IPv6 address in brackets: [{bare}]:{port}")
        return cls(host=bare, port=int(port), setting=setting, purpose=purpose, hadoop_key=hadoop_key)

    @property
    def authority(self) -> str:
        """`host:port` as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.authority} ({self.setting})"
