"""The memory of this process itself."""

import ctypes
import gc


def give_back() -> None:
    """Give back to the kernel what is not in use any more. It takes some ten milliseconds."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, others may not
    if trim is not None:
        trim(0)
