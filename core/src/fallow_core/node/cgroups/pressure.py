"""How long the tasks of a group wait for memory (PSI), which only v2 reports for a group."""

import re
from typing import Final

from fallow_core.errors import CgroupError
from fallow_core.node.cgroups.hierarchy import Hierarchy

FILE: Final = "memory.pressure"
NO_GROUP: Final = "there is no such group"
NO_PRESSURE: Final = "control groups v1 do not tell the pressure of a group"
_SOME: Final = re.compile(r"^some avg10=(\d+\.\d+) ", re.MULTILINE)


def memory_stall_percent(hierarchy: Hierarchy, group: str) -> float | None:
    """The share of the last 10 s in which some task of a group waited for memory; `None` if there is no such group.

    :raises CgroupError: this kernel does not report it, or in an unknown format.
    :raises OSError: the file cannot be read, as with `psi=0`.
    """
    if hierarchy.version == 1:
        raise CgroupError(NO_PRESSURE)
    try:
        text = hierarchy.read(group, FILE)
    except OSError:
        if hierarchy.identity(group) is None:
            return None
        raise
    found = _SOME.search(text)
    if found is None:
        raise CgroupError(f"{hierarchy.path(group, FILE)}: expected 'some avg10=…', found {text[:80]!r}")
    return float(found[1])
