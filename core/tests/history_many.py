"""Drawn histories: what happens in the one of each number. Most have one node, some have several that come and go."""

from random import Random

from core.tests.history_frameworks import NOTHING
from core.tests.history_happenings import FLOOR, Layout, Step
from core.tests.history_one import ONLY_DRAINING, TAKING_BACK, History

from fallow_core.model.policy import PublishingPolicy

ROWS = ((("a", 1), ("b", 1)), (("a", 1), ("b", 1), ("c", 1)), (("a", 1), ("b", 2)))
HAPPENS = (
    *("promise",) * 6,
    *("end",) * 3,
    *("load",) * 5,
    *("calls",) * 8,
    *("reports",) * 3,
    *("register",) * 2,
    *("kill",) * 2,
    *("nothing", "samples", "clock", "ages", "repeats", "restart", "lose", "resize", "switch"),
)
FULL = (*("promise",) * 10, *("load",) * 8, *("calls",) * 4, *HAPPENS)
LASTS_SECONDS = 60


def drawn(seed: int, *, full: bool = False) -> tuple[list[Layout], list[list[Step]]]:
    """The nodes of a history with what happens to each; in a full one more is often promised than can be lent."""
    rng = Random(seed)
    nodes = rng.choice((1, 1, 1, 1, 1, 1, 1, 1, 2, 3))
    common = Layout(
        rows=(),
        floor=rng.choice((FLOOR, NOTHING)),
        says_pending=rng.random() < 0.5,
        limit_percent=rng.choice((None, 60)),
    )
    layouts = [common._replace(rows=rng.choice(ROWS)) for _ in range(nodes)]
    return layouts, [_steps(rng, number, full=full) for number in range(nodes)]


def _steps(rng: Random, number: int, *, full: bool) -> list[Step]:
    """All but the first node come a little later."""
    later = [Step("nothing", 0, 0, rng.randrange(20))] if number else []
    count = rng.randrange(4, 13) * (2 if full else 1)
    happens = FULL if full else HAPPENS
    return later + [
        Step(rng.choice(happens), rng.randrange(4), rng.randrange(101), rng.randrange(16)) for _ in range(count)
    ]


def lived(seed: int, policy: PublishingPolicy, *, full: bool = False, dense: bool = False) -> History:
    """The history of that number; an error says which one it was, and what happened."""
    layouts, steps = drawn(seed, full=full)
    history = History(layouts, policy, TAKING_BACK if full else ONLY_DRAINING, dense=dense)
    for world in history.worlds:
        world.offers_last = LASTS_SECONDS
    try:
        history.live(steps)
    except AssertionError as error:
        lines = [f"history {seed}, at {history.world.now} s:"]
        for layout, of_node in zip(layouts, steps, strict=True):
            lines += [str(layout), *(f"  {step}" for step in of_node)]
        error.add_note("\n".join(lines))
        raise
    return history
