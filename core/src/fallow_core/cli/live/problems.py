"""What is wrong in the Fallow that is shown, each in one text."""

from collections.abc import Iterator
from typing import Any

from fallow_core.cli.table import switch_words

Answer = dict[str, Any]


def problems(status: Answer, tasks: Answer) -> Iterator[str]:
    """All that the answers to `status` and `tasks` complain of."""
    yield from status["config_problems"]
    yield from (why if name in why else f"{name}: {why}" for name, why in status["failed"].items())
    yield from (f"{name}: not used on this host: {why}" for name, why in status.get("not_selected", {}).items())
    yield from (f"{name}: still being built" for name in status["building"])
    yield from (f"{name}: {why}" for name, why in status["sample_problems"].items())
    yield from status.get("probe_problems", ())
    wide = (switch for switch in status["switches"] if "/" not in switch["scope"])
    yield from (switch_words(switch) for switch in wide)
    for cluster in status["clusters"]:
        yield from (f"{cluster['cluster']}: {call} failed: {why}" for call, why in cluster["failing"].items())
        for row in cluster["rows"]:
            if row["refusal"]:
                yield f"{cluster['cluster']} {row['framework_node']}: refused: {row['refusal']}"
    yield from (f"{name}: not all tasks are known: {why}" for name, why in tasks["incomplete"].items())
    if status["restoring"]:
        yield "the sizes found first are being put back"
    texts = (status["journal_error"], status["journal_lost"], tasks["terminations_error"], tasks["terminations_lost"])
    yield from (text for text in texts if text)
