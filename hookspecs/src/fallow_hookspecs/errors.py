"""The errors of a plugin that mean something to core.

::

    PluginError
    ├── TryLater   not now; core asks again after the given time
    ├── Broken     not before the configuration changes
    └── Veto       of a wrapper: these tasks are not to be terminated

Any other exception from a hook marks that one call as failed: core counts it, backs off and goes on.
"""

from collections.abc import Mapping


class PluginError(Exception):
    """Base of the errors that a plugin raises on purpose. Its text is shown to the operator as it is."""


class TryLater(PluginError):  # noqa: N818 - it asks for time, it reports no error
    """The call cannot be done now, for a reason that passes by itself (a failover, a start, a rate limit).

    `after_seconds` is how long core waits at least before the next call of this lane.
    """

    def __init__(self, message: str, after_seconds: float) -> None:
        super().__init__(message)
        self.after_seconds = after_seconds


class Broken(PluginError):  # noqa: N818 - reads as what it says of the instance
    """The call can never work with this configuration; core stops calling until the configuration changes."""


class Veto(PluginError):  # noqa: N818 - reads as what it is
    """Raised by a wrapper of `kill_tasks` before it yields: these tasks of the order are spared, the others are not.

    `spared` has the reason of each, which `fallow explain` shows. It holds for orders on their way to the plugin. Where
    the plugin cannot be asked (its lane is stalled, its call failed) core terminates tasks under pressure by itself.
    """

    def __init__(self, spared: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{task}: {why}" for task, why in spared.items()))
        self.spared = dict(spared)
