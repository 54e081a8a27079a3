"""Floors that are not offered for a while, as they keep losing tasks to pressure; see `qos.floors`. Says so once."""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from fallow_core.ledger.rows import ZERO, Row, RowKey
from fallow_core.log import event

log = logging.getLogger("fallow.controller")


class Floors:
    """`given_up`: until when, by row, on the clock of who says it."""

    def __init__(self) -> None:
        self.given_up: dict[RowKey, float] = {}

    def step(self, node: str, rows: Iterable[Row], given_up: Mapping[RowKey, float]) -> tuple[Row, ...]:
        """The rows of a node, without those floors."""
        rows = tuple(rows)
        before = {key: until for key, until in self.given_up.items() if key.node == node}
        offered = {row.key for row in rows if row.floor != ZERO}
        now = {row.key: given_up[row.key] for row in rows if row.key in given_up and row.key in offered | before.keys()}
        for key in now.keys() - before.keys():
            event(log, logging.WARNING, "floor_given_up", cluster=key.cluster, node=key.framework_node)
        for key in before.keys() - now.keys():
            event(log, logging.INFO, "floor_offered_again", cluster=key.cluster, node=key.framework_node)
        self.given_up = {key: until for key, until in self.given_up.items() if key not in before} | now
        return tuple(replace(row, floor=ZERO) if row.key in now else row for row in rows)
