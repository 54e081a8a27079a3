"""`fallow run` as the controller of an agent on the same host: it writes the row of its ledger for it."""

import logging
import os
from pathlib import Path

from fallow_core.controller.controller import Controller
from fallow_core.log import event
from fallow_core.state.node_grant import AccountGrant, NodeGrant, encoded
from fallow_hookspecs import trusted_path

log = logging.getLogger("fallow.run")

EVERY_SECONDS = 2.0
LASTS_SECONDS = 15.0


def row_of(controller: Controller, node: str, wall_now: float) -> NodeGrant:
    """What a node's agent has to know of its ledger."""
    ledger = controller.ledgers[node].memory
    may_pay, stopped = controller.budgets(node), controller.state.stopped(node)
    return NodeGrant(
        node=node,
        written_at=wall_now,
        lasts_seconds=LASTS_SECONDS,
        to_take_back=ledger.to_take_back if ledger.capacity is not None else 0,
        accounts={
            account.cluster: AccountGrant(
                allocated=account.allocated,
                target=account.target,
                floor=account.floor,
                may_pay=may_pay.get(account.cluster, 0),
                stopped=account.cluster in stopped,
            )
            for account in ledger.accounts
        },
        restored=tuple(sorted(controller.restored)),
    )


class GrantWriter:
    """Writes the row now and then. It need not survive a crash of the host, so it is not synced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._next_at: float | None = None

    def step(self, controller: Controller, node: str, now: float, wall_now: float) -> None:
        """Write it if it is time to; what fails is told, and the row in the file expires."""
        if self._next_at is not None and now < self._next_at:
            return
        self._next_at = now + EVERY_SECONDS
        part = self._path.with_suffix(".part")
        try:
            trusted_path.check_folder(part.parent)
            with os.fdopen(trusted_path.create(part), "w") as file:
                file.write(encoded(row_of(controller, node, wall_now)))
            part.replace(self._path)
        except OSError as error:
            event(log, logging.ERROR, "ledger_row_not_written", file=self._path, reason=error.strerror)
