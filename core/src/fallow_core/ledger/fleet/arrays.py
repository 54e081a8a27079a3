"""The types of the arrays, and integer arithmetic that stays exact where products do not fit 64 bits."""

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]

NONE = 1 << 60
"""No bound."""
LARGEST = 1 << 44
"""The largest amount of a node that these functions take: 16 TiB. Others are computed one by one."""
LARGEST_CPU = 1 << 28
"""The same in milli-cores; so sizes fit 32 bits."""
LARGEST_PENDING = 1 << 56
HEAVIEST = 1 << 10
"""The largest weight of an account; so sums of amounts × weights fit 64 bits."""


def quotient(a: Ints, b: Ints) -> Ints:
    """a / b rounded down, for 0 ≤ a < 2⁵³ and b ≥ 1.

    Exact: a/b lies at least 1/b away from the next integer, which is more than a float of this size is off.
    """
    return (a.astype(np.float64) / b.astype(np.float64)).astype(np.int64)


def product_quotient(a: Ints, b: Ints, c: Ints) -> Ints:
    """a × b / c rounded down, for a, b ≥ 0, c ≥ 1 and results below 2⁵⁰; the product may be larger than 64 bits.

    The float is off by one at most, and what is left then is small: it is right even where the products wrapped.
    """
    found = (a.astype(np.float64) * b.astype(np.float64) / c.astype(np.float64)).astype(np.int64)
    left = a * b - found * c
    found += left >> 63
    found -= (c - 1 - left) >> 63
    return found


def product_sign(a: Ints, b: Ints, c: Ints, d: Ints) -> Ints:
    """The sign of a × b − c × d, for products below 2¹⁰⁰."""
    first, second = a.astype(np.float64) * b, c.astype(np.float64) * d
    apart = np.abs(first - second) > (first + second) * 2.0**-48
    return np.where(apart, np.sign(first - second).astype(np.int64), np.sign(a * b - c * d))


def in_units(amounts: Ints, units: Ints) -> Ints:
    """Amounts below 2⁵³ rounded down to whole units."""
    found = quotient(amounts, units)
    found *= units
    return found


def up_to_units(amounts: Ints, units: Ints) -> Ints:
    """Amounts rounded up to whole units."""
    return in_units(amounts + units - 1, units)
