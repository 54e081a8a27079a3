"""The types of the arrays, the bounds within which 64-bit integers do not overflow, and how functions are compiled."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numba
import numpy as np
import numpy.typing as npt

P = ParamSpec("P")
T = TypeVar("T")

Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Records: TypeAlias = npt.NDArray[Any]
Record: TypeAlias = Any
"""One of `Records`, which compiled functions read and write by attributes."""

NONE = 1 << 60
"""No bound."""
LARGEST = 1 << 44
"""Amounts of a node are below this: 16 TiB. Nodes with larger ones are computed one by one."""
LARGEST_CPU = 1 << 28
"""The same in milli-cores."""
LARGEST_PENDING = 1 << 56
"""What waits in a cluster is cut to this: more than any cluster has."""
HEAVIEST = 1 << 10
"""The largest weight of an account; so amounts × the sum of some weights fit 64 bits."""
MOST_PERCENT = 1 << 10
"""The largest overcommit ratio."""


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """The function as machine code, which other threads run beside: arguments are numbers, arrays and tuples of them.

    It is compiled at the first call and not kept on disk, as Numba does not see there that what it calls has changed.
    What is called for each row takes numbers and records: who refers to an array is counted whenever one is handed on,
    in memory that all threads write to.
    """
    return numba.njit(nogil=True, error_model="numpy")(function)  # type: ignore[no-any-return]
