"""Amounts of nodes in whole units, and divisions that the processor does for several nodes at once: those of floats."""

from fallow_core.ledger.fleet.arrays import compiled


@compiled
def quotient(amount: int, divisor: int) -> int:
    """An amount that is not negative, divided and rounded down. The float is off by one at most, and put right."""
    found = int(amount / divisor)
    rest = amount - found * divisor
    return found + (rest >= divisor) - (rest < 0)


@compiled
def in_units(amount: int, unit: int) -> int:
    """An amount that is not negative, rounded down.

    It is exact: a quotient lies at least 1 / unit away from the next whole number, which is more than it is rounded by,
    as amounts are below 2⁵³.
    """
    return int(amount / unit) * unit


@compiled
def up_to_units(amount: int, unit: int) -> int:
    """The same rounded up."""
    found = in_units(amount, unit)
    return found if found == amount else found + unit
