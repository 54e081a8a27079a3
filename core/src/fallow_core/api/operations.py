"""What the commands that change or check something print with `--json`."""

from msgspec import Struct

from fallow_core.model.policy import SwitchState
from fallow_hookspecs import Resources


class Switched(Struct, frozen=True, kw_only=True):
    """The answer to `switch`."""

    scope: str
    state: SwitchState


class GivenUpFile(Struct, frozen=True, kw_only=True):
    """A file of the state directory that was given up, and its name from now on."""

    file: str
    kept_as: str


class LostStateAccepted(Struct, frozen=True, kw_only=True):
    """The answer to `accept-lost-state`."""

    files: tuple[GivenUpFile, ...]


class Adopted(Struct, frozen=True, kw_only=True):
    """The answer to `adopt`. `nodes`: the framework's names of its nodes."""

    cluster: str
    nodes: tuple[str, ...]


class Forgotten(Struct, frozen=True, kw_only=True):
    """The answer to `forget`. `configured`: the cluster goes on; `nodes`: the framework's names of forgotten nodes."""

    cluster: str
    configured: bool
    nodes: tuple[str, ...]


class RestoredRow(Struct, frozen=True, kw_only=True):
    """What became of one node of a framework."""

    cluster: str
    framework_node: str
    done: bool
    detail: str
    original: Resources | None
    in_force: Resources | None
    allocated: Resources


class Restored(Struct, frozen=True, kw_only=True):
    """The result of `restore`. `groups`: control groups that were put back. `problems`: what kept something from it."""

    done: bool
    rows: tuple[RestoredRow, ...]
    groups: tuple[str, ...]
    problems: tuple[str, ...]


class CheckResult(Struct, frozen=True, kw_only=True):
    """One finding of `doctor`, which prints a list. `about`: host, config or a cluster. `ok`: `None` if unknown."""

    about: str
    subject: str
    ok: bool | None
    detail: str
    advice: str
