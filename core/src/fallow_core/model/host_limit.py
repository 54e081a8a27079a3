"""A limit that this host sets for a framework's daemon."""

from dataclasses import dataclass

from fallow_hookspecs import ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLimit:
    """The most of one resource that a daemon and its tasks can have, in milli-cores or bytes.

    `where`: the control file that says so, or in words what does. `daemons`: how many share the limit; `amount` is the
    part of one of them.
    """

    resource: ResourceName
    amount: int
    where: str
    daemons: int = 1

    @property
    def why(self) -> str:
        """The limit as the reason of a size."""
        shared = f", and {self.daemons} daemons share it" if self.daemons > 1 else ""
        return f"{self.where} allows its daemon no more{shared}"
