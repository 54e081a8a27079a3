"""Sizes in YARN's units and in Fallow's: 1 "MB" of YARN is 1 MiB; a setting has the milli-cores of a vcore."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from fallow_hookspecs import Resources

MIB_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """An amount of memory in YARN's MB (1048576 bytes) and of vcores."""

    memory_mb: int
    vcores: int


ZERO: Final = Size(0, 0)


def smallest_of(sizes: Iterable[Size]) -> Size:
    """The smallest memory and the smallest number of vcores of one or more sizes, which may be different ones'."""
    return _each(min, sizes)


def largest_of(sizes: Iterable[Size]) -> Size:
    """The largest memory and the largest number of vcores of one or more sizes, which may be different ones'."""
    return _each(max, sizes)


def size_within(*, cpu_milli: int, memory_bytes: int, vcore_milli: int) -> Size:
    """The largest size within the given amounts. `vcore_milli`: milli-cores of one vcore."""
    return Size(memory_bytes // MIB_BYTES, cpu_milli // vcore_milli)


def cpu_milli(size: Size, vcore_milli: int) -> int:
    """The vcores of a size in milli-cores."""
    return size.vcores * vcore_milli


def memory_bytes(size: Size) -> int:
    """The memory of a size in bytes."""
    return size.memory_mb * MIB_BYTES


def resources(size: Size, vcore_milli: int) -> Resources:
    """A size as an amount of each resource."""
    return Resources(cpu_milli=cpu_milli(size, vcore_milli), memory_bytes=memory_bytes(size))


def _each(choose: Callable[[Iterable[int]], int], sizes: Iterable[Size]) -> Size:
    listed = tuple(sizes)
    return Size(choose(size.memory_mb for size in listed), choose(size.vcores for size in listed))


def size_words(size: Size) -> str:
    """A size in YARN's units."""
    return f"{size.memory_mb} MB and {size.vcores} vcore{'' if size.vcores == 1 else 's'}"
