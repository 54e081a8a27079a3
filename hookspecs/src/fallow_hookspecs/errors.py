"""The errors of a plugin that mean something to core.

::

    PluginError
    ├── TryLater   not now: core calls again after the given time
    ├── Broken     core does not call again until the configuration changes
    └── Veto       raised by a wrapper: do not terminate these tasks

Any other exception of a hook only means that this call failed: core counts it, backs off and continues.
"""

from collections.abc import Mapping


class PluginError(Exception):
    """Base class of the errors that a plugin raises on purpose. The operator sees its text unchanged."""


class TryLater(PluginError):  # noqa: N818 - it reports no error
    """The call cannot be done now, for a temporary reason such as a failover, a start or a rate limit.

    Core waits at least `after_seconds` before the next call of this lane.
    """

    def __init__(self, message: str, after_seconds: float) -> None:
        super().__init__(message)
        self.after_seconds = after_seconds


class Broken(PluginError):  # noqa: N818 - reads as what it says of the instance
    """The call cannot work with this configuration. Core stops calling until the configuration changes."""


class Veto(PluginError):  # noqa: N818 - reads as what it is
    """Raised by a wrapper of `kill_tasks` before it yields: core spares these tasks and terminates the others.

    `spared` has the reason for each task, which `fallow explain` shows. A veto applies to orders for the plugin. If the
    plugin cannot be called (its lane is stalled, or its call failed), core itself terminates tasks under pressure.
    """

    def __init__(self, spared: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{task}: {why}" for task, why in spared.items()))
        self.spared = dict(spared)
