"""Says its user and sleeps: what every other program is compared with."""

import os
import time

print(os.getuid(), flush=True)
time.sleep(60)
