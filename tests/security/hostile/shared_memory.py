"""Uses memory that is not private: `shared_memory.py KIND MIB PROCESSES`, each of which maps the same memory.

Prints the pids of all, and sleeps.
"""

import mmap
import os
import sys
import time

kind, size, processes = sys.argv[1], int(sys.argv[2]) << 20, int(sys.argv[3])
if kind == "anonymous":
    memory = mmap.mmap(-1, size)
else:
    file = os.memfd_create("x") if kind == "memfd" else os.open("/dev/shm", os.O_TMPFILE | os.O_RDWR)
    os.ftruncate(file, size)
    memory = mmap.mmap(file, size)
for at in range(0, size, 4096):
    memory[at] = 1
children = []
for _ in range(processes - 1):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        for at in range(0, size, 4096):
            memory[at] = 2
        os.write(write, b"x")
        time.sleep(60)
        os._exit(0)
    os.read(read, 1)
    children.append(child)
print(os.getpid(), *children, flush=True)
time.sleep(60)
