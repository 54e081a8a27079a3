"""What most agents of the field do: look once a second. It prints the monotonic time at which it sees memory cross.

Arguments: bytes in use that are too many. It looks from a random moment on.
"""

import random
import sys
import time

from fallow_core.node.procfs import PROC_ROOT, read_memory


def main() -> None:
    """Look until it is so."""
    mark = int(sys.argv[1])
    time.sleep(random.random())
    while True:
        memory = read_memory(PROC_ROOT)
        if memory.total_bytes - memory.unused_bytes >= mark:
            print(time.monotonic(), flush=True)
            return
        time.sleep(1.0)


if __name__ == "__main__":
    main()
