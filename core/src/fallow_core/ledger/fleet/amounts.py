"""Amounts of a node in whole units."""

from fallow_core.ledger.fleet.arrays import compiled


@compiled
def in_units(amount: int, unit: int) -> int:
    """An amount that is not negative, rounded down.

    A division of floats takes a third of one of integers. It is exact: a quotient lies at least 1 / unit away from the
    next whole number, which is more than it is rounded by, as amounts are below 2⁵³.
    """
    return int(amount / unit) * unit


@compiled
def up_to_units(amount: int, unit: int) -> int:
    """The same rounded up."""
    found = in_units(amount, unit)
    return found if found == amount else found + unit
