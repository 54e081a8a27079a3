"""The contract between the Fallow core and a plugin for one batch framework.

A plugin author imports everything from here. The package needs only pluggy and the standard library. It holds values
and specifications, and makes no decisions.

`capacity` has resources and offers, `tasks` tasks, `placement` cgroups, `hooks` the four hooks, `plugin` the object
that an entry point names, `errors` the errors that mean something to core. `proc_stat` is a helper for plugins that
identify processes, `trusted_path` for those that open files which another user could replace.
"""

from fallow_hookspecs.capacity import (
    RESOURCE_NAMES,
    Application,
    Capabilities,
    CapacityReport,
    GangReport,
    Node,
    NodeState,
    Offer,
    OfferAnswer,
    Pending,
    Pod,
    Refusal,
    ReportRow,
    ResourceCapability,
    ResourceName,
    Resources,
)
from fallow_hookspecs.command import COMMAND_GROUP, CommandHost, Commands
from fallow_hookspecs.errors import Broken, PluginError, TryLater, Veto
from fallow_hookspecs.hooks import PROJECT, hookimpl, hookspec
from fallow_hookspecs.placement import Placement, TaskPlacement
from fallow_hookspecs.plugin import (
    API_LEVEL,
    ENTRY_POINT_GROUP,
    WRAPPER_GROUP,
    ClusterConfig,
    ConfigModel,
    Finding,
    Instance,
    Needs,
    Plugin,
    Role,
    Setting,
    Wrapper,
)
from fallow_hookspecs.proc_stat import ProcStat, parse_stat, read_stat
from fallow_hookspecs.tasks import (
    Daemon,
    Gang,
    KillAnswer,
    KillOrder,
    KillOutcome,
    KillResult,
    Process,
    Task,
    TaskList,
    TaskRole,
    TaskState,
)

__all__ = [
    "API_LEVEL",
    "COMMAND_GROUP",
    "ENTRY_POINT_GROUP",
    "PROJECT",
    "RESOURCE_NAMES",
    "WRAPPER_GROUP",
    "Application",
    "Broken",
    "Capabilities",
    "CapacityReport",
    "ClusterConfig",
    "CommandHost",
    "Commands",
    "ConfigModel",
    "Daemon",
    "Finding",
    "Gang",
    "GangReport",
    "Instance",
    "KillAnswer",
    "KillOrder",
    "KillOutcome",
    "KillResult",
    "Needs",
    "Node",
    "NodeState",
    "Offer",
    "OfferAnswer",
    "Pending",
    "Placement",
    "Plugin",
    "PluginError",
    "Pod",
    "ProcStat",
    "Process",
    "Refusal",
    "ReportRow",
    "ResourceCapability",
    "ResourceName",
    "Resources",
    "Role",
    "Setting",
    "Task",
    "TaskList",
    "TaskPlacement",
    "TaskRole",
    "TaskState",
    "TryLater",
    "Veto",
    "Wrapper",
    "hookimpl",
    "hookspec",
    "parse_stat",
    "read_stat",
]
