"""The model of `spec` in a cluster file with `plugin: local_queue`."""

from dataclasses import dataclass
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Spec:
    """`socket`: the path of the resource manager's socket."""

    socket: str

    @classmethod
    def model_validate(cls, obj: Any) -> Self:
        """The spec of a mapping; ValueError says what is wrong with it."""
        if unknown := sorted(obj.keys() - {"socket"}):
            raise ValueError(f"unknown keys {', '.join(unknown)}; known is socket")
        socket = obj.get("socket")
        if not isinstance(socket, str) or not socket.startswith("/"):
            raise ValueError(f"socket is {socket!r}; expected an absolute path")
        return cls(socket)

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """The JSON schema of a spec."""
        return {
            "type": "object",
            "properties": {"socket": {"type": "string", "pattern": "^/"}},
            "required": ["socket"],
            "additionalProperties": False,
        }
