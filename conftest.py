"""Settings of all tests."""

import os
import signal

from hypothesis import HealthCheck, settings

# How long an example takes depends on what else runs. Continuous integration tries the same examples every time: what
# a developer's run finds anew becomes a test, and does not stop somebody else's change.
settings.register_profile(
    "fallow", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=os.environ.get("CI") == "true"
)
settings.load_profile("fallow")

# A shell that starts the tests in the background makes them ignore SIGINT, and the processes that they start with them.
signal.signal(signal.SIGINT, signal.default_int_handler)
