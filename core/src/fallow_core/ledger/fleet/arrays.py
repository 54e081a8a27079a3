"""The types of the arrays, and how whole numbers stay exact in them.

Amounts are whole numbers in 64-bit floats: those below 2⁵³ are exact, and so are their sums, products and quotients
rounded down as long as they stay below. A processor divides, compares and bounds eight of them at once; of integers it
divides one.
"""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

AnyArray: TypeAlias = npt.NDArray[Any]
Ints: TypeAlias = npt.NDArray[Any]
"""Places in other arrays, and whole numbers that are handed out."""
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]

NONE = float(1 << 60)
"""No bound."""
LARGEST = 1 << 42
"""The largest amount of a node that these functions take: 4 TiB. Others are computed one by one."""
LARGEST_CPU = 1 << 28
"""The same in milli-cores; so sizes fit 32 bits."""
LARGEST_PENDING = 1 << 56
HEAVIEST = 1 << 8
"""The largest weight of an account; so amounts × the sum of four weights are exact."""
MOST_PERCENT = 1 << 8
"""The largest overcommit ratio."""


def in_units(amounts: Floats, units: Floats) -> Floats:
    """Amounts rounded down to whole units.

    Exact: a quotient lies at least 1 / unit away from the next whole number, which is more than it is rounded by.
    """
    found = amounts / units
    np.floor(found, out=found)
    found *= units
    return found


def up_to_units(amounts: Floats, units: Floats) -> Floats:
    """Amounts rounded up to whole units."""
    found = amounts / units
    np.ceil(found, out=found)
    found *= units
    return found


def percent_of(amounts: Floats, percent: Floats | int) -> Floats:
    """A share of amounts in percent, rounded down."""
    found: Floats = amounts * percent
    found /= 100
    np.floor(found, out=found)
    return found
