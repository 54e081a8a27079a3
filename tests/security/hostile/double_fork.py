"""Forks twice, so that init adopts the second child, and prints the pid of that one, which sleeps.

It starts when it is told to by a line. With `hop` that one is replaced by a child of its own every few milliseconds,
for half a minute.
"""

import os
import signal
import sys
import time

sys.stdin.readline()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        if "hop" in sys.argv:
            end = time.monotonic() + 30
            while time.monotonic() < end:
                if os.fork():
                    os._exit(0)
                time.sleep(0.003)
        time.sleep(30)
    os._exit(0)
os.wait()
