"""`ledger.node_ledger` for nodes side by side: from what was brought to the size that each row should have."""

from fallow_core.ledger.fleet.arrays import Records, compiled
from fallow_core.ledger.fleet.cross_resource import cut
from fallow_core.ledger.fleet.lanes import Rules
from fallow_core.ledger.fleet.sharing import grown, of_rows, promised_to_all, shares


@compiled
def compute(sides: Records, rules: Rules) -> None:
    """Compute the ledgers of the nodes that were brought."""
    cut(sides)
    for side in sides:
        if rules.shared:
            promised_to_all(side)
        else:
            shares(side)
        of_rows(side)
        grown(side, rules.shared)
