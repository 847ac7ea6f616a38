"""Large arrays that come and go every round."""

import math
import mmap
from typing import Any

import numpy as np

from coem.typing import Array

LARGE = 1 << 18  # bytes; below this malloc is as good
HUGE = 1 << 24  # bytes; from here on huge pages save more than they round up


def zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> Array:
    """Return an array of zeros whose memory goes back to the system when it is dropped.

    malloc keeps freed blocks of this size for later, in pieces that the next table may not fit:
    the peak of a fit would be nearly twice what it needs.
    """
    shape = shape if isinstance(shape, tuple) else (shape,)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < LARGE:
        return np.zeros(shape, dtype)
    pages = mmap.mmap(-1, size)
    if size >= HUGE and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.ndarray(shape, dtype, buffer=pages)
