"""What Fallow is to keep of this host's memory, so that what it lends follows no program but the test's own load."""

import time

from tests.e2e.yarn.fallow_process import MIB

from fallow_core.node.procfs import PROC_ROOT, read_memory

QUIET_PERCENT = 95


def used_bytes() -> int:
    """What this host uses."""
    memory = read_memory(PROC_ROOT)
    return memory.total_bytes - memory.unused_bytes


class HostMemory:
    """The settings with which `lent_mb` are lent until what is used, batch aside, grows by more than `slack_mb`."""

    def __init__(self, lent_mb: int, slack_mb: int) -> None:
        self.total, used = read_memory(PROC_ROOT).total_bytes, 0
        for _ in range(30):  # other programs come and go
            used = max(used, used_bytes())
            time.sleep(0.1)
        self.watermark = -(-100 * (used + (slack_mb + lent_mb) * MIB) // self.total)
        self.reserved = self.reserved_for(lent_mb, self.watermark)

    def reserved_for(self, lent_mb: int, watermark: int = QUIET_PERCENT) -> int:
        """The bytes to reserve below a watermark, in percent, so that so much is left."""
        return self.total - -(-self.total * (100 - watermark) // 100) - lent_mb * MIB

    def capacity(self) -> dict[str, object]:
        """`capacity.memory` of the configuration."""
        return {"watermark": f"{self.watermark}%", "reserved": self.reserved}
