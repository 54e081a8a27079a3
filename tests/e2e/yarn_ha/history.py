"""What happened to a cluster while its ResourceManagers were killed and changed over, as one list of facts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """Something that happened at this time, in seconds since the epoch."""

    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sized(Fact):
    """A size of a node, in MB and vcores."""

    node: str
    size: tuple[int, int]


class Sent(Sized):
    """Fallow sent a node this size."""

    __slots__ = ()


class Offered(Sized):
    """What Fallow offered of a node then, sent or not."""

    __slots__ = ()


class InForce(Sized):
    """The active ResourceManager's scheduler was seen to work with this size of a node."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Disturbed(Fact):
    """No ResourceManager was active any more."""

    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTarget(Fact):
    """From now on all nodes together are to have from `least_mb` to `most_mb`."""

    least_mb: int
    most_mb: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Fact):
    """The application master was told of a container's end. Codes below zero are YARN's own: −102 is preempted."""

    container: str
    node: str
    exit_code: int
    diagnostics: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered(Fact):
    """Fallow ordered the end of a container."""

    container: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack(Fact):
    """Fallow told the ResourceManager to end what is above a size on a node."""

    node: str


History = list[Fact]
