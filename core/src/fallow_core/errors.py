"""The errors of core.

::

    FallowError          shown to the user as its text, without a traceback; the process exits with `exit_code`
    ├── ConfigError      a configuration file is wrong: every mistake with file and line
    ├── PluginLoadError  a plugin cannot be imported, is of another API level, or cannot be built
    ├── SampleError      a reading of the host failed or makes no sense
    ├── CgroupError      the host's control groups lack something, or say what makes no sense
    ├── StateError       the state directory cannot be read or written
    └── ControlError     a running Fallow cannot be reached, or refused a request
        └── NotRunningError  nobody serves the control socket
"""


class FallowError(Exception):
    """Base of all errors that a user may see."""

    exit_code = 1


class ConfigError(FallowError):
    """A configuration file is wrong."""

    exit_code = 2


class PluginLoadError(FallowError):
    """A plugin cannot be used; the text says which, from which distribution, and why."""


class SampleError(FallowError):
    """A reading of the host failed or makes no sense; the last good reading stays, and grows older."""


class CgroupError(FallowError):
    """The control groups of this host lack something, or say what makes no sense; what needs it is not available."""


class StateError(FallowError):
    """The state directory cannot be read or written."""


class ControlError(FallowError):
    """A running Fallow cannot be reached, or it refused the request."""


class NotRunningError(ControlError):
    """Nobody serves the control socket."""
