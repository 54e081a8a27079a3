"""A task that allocates memory at 1 GiB/s, up to an amount, and holds it. It notes when SIGTERM reaches it and goes on.

Arguments: gibibytes. It prints the monotonic time of the signal as the kernel delivers it.
"""

import os
import signal
import sys
import threading
import time

CHUNK = 8 << 20
RATE = 1 << 30


def main() -> None:
    """Allocate, then wait to be killed."""
    signals, noted = os.pipe()
    os.set_blocking(noted, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(noted)

    def tell() -> None:
        os.read(signals, 1)
        print(time.monotonic(), flush=True)

    threading.Thread(target=tell, daemon=True).start()
    kept: list[bytearray] = []
    most, began = float(sys.argv[1]) * RATE, time.monotonic()
    while len(kept) * CHUNK < most:
        kept.append(bytearray(os.urandom(1)) * CHUNK)
        time.sleep(max(0.0, began + len(kept) * CHUNK / RATE - time.monotonic()))
    time.sleep(60)


if __name__ == "__main__":
    main()
