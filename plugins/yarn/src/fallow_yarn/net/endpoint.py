"""An address of a ResourceManager, with all that a message about it should say."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Host and port of one of the ResourceManager's servers.

    `setting` is the key of our config it came from, `purpose` the words for the server behind it, and `hadoop_key` the
    Hadoop setting that holds the right address, for messages. `__str__` gives `host:port (setting)`.
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
                f"{setting}: {text!r} is no address; expected host:port, for example rm1:8033 or [::1]:8033"
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
