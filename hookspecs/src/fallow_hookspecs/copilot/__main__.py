"""`python -m fallow_hookspecs.copilot`."""

import sys

from fallow_hookspecs.copilot.command import main

sys.exit(main())
