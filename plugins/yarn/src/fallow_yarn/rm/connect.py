"""Makes the object for the ResourceManagers of a cluster: the only one, or the active one of several."""

import time
from dataclasses import dataclass, field

from fallow_yarn.rm.active import ActiveIndex, ActiveManager
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.rm.history import SizeHistory
from fallow_yarn.rm.manager import Manager
from fallow_yarn.security.access import Access
from fallow_yarn.settings.rm_addresses import RmAddresses


@dataclass(frozen=True, slots=True)
class Shared:
    """What the two lanes of a cluster share: access, the sizes that nodes may have, and which RM is active."""

    access: Access
    history: SizeHistory = field(default_factory=SizeHistory)
    active: ActiveIndex = field(default_factory=ActiveIndex)


def resource_manager(found: tuple[RmAddresses, ...], shared: Shared) -> Manager:
    """The ResourceManager at these addresses, or the active one if there are several; not connected yet."""
    managers = [ResourceManager(addresses, shared.access, shared.history) for addresses in found]
    return managers[0] if len(managers) == 1 else ActiveManager(managers, shared.active, time.monotonic)
