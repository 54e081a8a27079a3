"""Takes the picture of README.md: the screen of `fallow demo` a moment after its load has risen, as docs/demo.svg.

python tools/picture.py
"""

import io
import re
import tempfile
import time
from pathlib import Path

from rich.console import Console

from fallow_core.cli.demo.framework import load
from fallow_core.cli.demo.phases import PHASES
from fallow_core.cli.demo.show import Show
from fallow_core.cli.demo.stage import Stage
from fallow_core.cli.live.screen import Frame, screen
from fallow_core.cli.live.view_state import ViewState

FILE = Path(__file__).parent.parent / "docs" / "demo.svg"
WIDTH, HEIGHT = 100, 30
TAKEN_AT_SECONDS = PHASES[1].begins_at + 5


def main() -> None:
    """Run the demo until then."""
    with tempfile.TemporaryDirectory() as folder, Stage(load("yarn"), "yarn", Path(folder)) as stage:
        stage.load.percent = PHASES[0].load_percent
        stage.begin()
        show = Show(stage, time.monotonic())
        while time.monotonic() < show.began_at + TAKEN_AT_SECONDS:
            extra, snapshot = show.extra(), show.snapshot()
            time.sleep(0.2)
    frame = Frame(title="fallow demo", clock="12:00:00", snapshot=snapshot, state=ViewState(), extra=extra)
    console = Console(record=True, width=WIDTH, height=HEIGHT, file=io.StringIO(), force_terminal=True)
    console.print(screen(frame, WIDTH, HEIGHT))
    svg = console.export_svg(title="fallow demo")
    # no font from the network, and no comment on the tool
    FILE.write_text(re.sub(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", "", svg, flags=re.DOTALL))


if __name__ == "__main__":
    main()
