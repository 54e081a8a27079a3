"""The signals of a Fallow process."""

import signal
from collections.abc import Callable
from types import FrameType


def handle(stop: Callable[[], None], reload: Callable[[], None]) -> None:
    """Call `stop` on SIGTERM and SIGINT, and `reload` on SIGHUP. A second SIGTERM ends the process at once."""

    def stop_once(number: int, _frame: FrameType | None) -> None:
        stop()
        signal.signal(number, signal.SIG_DFL)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop_once)
    signal.signal(signal.SIGHUP, lambda _number, _frame: reload())
