"""The memory of this process itself."""

import ctypes
import gc


def give_back() -> None:
    """Return unused memory to the kernel. It takes about ten milliseconds."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries than glibc may lack it
    if trim is not None:
        trim(0)
