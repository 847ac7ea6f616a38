"""Tables of parameters that the processes of one machine share.

A copy for each worker would have to be sent, and the copies would compete for the caches of the
processor, where the E step looks for a table. So the table lies in memory that has no name (a memfd
of Linux), and workers on the same machine map it. The system frees it after its last user.
"""

import mmap
import os
import stat
from dataclasses import dataclass
from secrets import token_bytes
from typing import Any
from weakref import WeakValueDictionary, finalize

import numpy as np

from coem.engine._dask_parcels import has_only_columns
from coem.kernels.counts import table_in
from coem.kernels.summing import LANES
from coem.typing import Array

CAN_SHARE = hasattr(os, "memfd_create")
HERE = "/proc/{}/fd"  # where other processes find the open files of this one
POPULATE = getattr(mmap, "MAP_POPULATE", 0)  # all pages at once, and not at the first look at each


class NotSharedError(Exception):
    """A worker cannot reach the memory of the process that runs `fit`."""


class SharedTable:
    """An array in memory of this process that others can map; a `Reference` where it is unpickled.

    Raises
    ------
    OSError
        If the system has no such memory, or not enough of it.
    """

    def __init__(self, value: Array) -> None:
        self.value = value
        by_columns = has_only_columns(value)
        cells = np.ascontiguousarray(value.T if by_columns else value)
        spare = np.zeros(LANES if by_columns else 0, value.dtype)
        token = token_bytes(16)
        number = os.memfd_create("coem-table")
        finalize(self, os.close, number)
        with os.fdopen(number, "wb", closefd=False) as file:
            file.write(cells.reshape(-1).view(np.uint8).data)
            file.write(spare.tobytes() + token)
        path = f"{HERE.format(os.getpid())}/{number}"
        self._reference = Reference(path, token, value.dtype.str, value.shape, by_columns)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle where the array is, and not what is in it."""
        return _same, (self._reference,)


@dataclass(frozen=True)
class Reference:
    """Where another process of this machine has an array."""

    path: str
    token: bytes  # what stands behind the array; another machine may have a file of the same path
    dtype: str
    shape: tuple[int, ...]
    by_columns: bool

    @property
    def value(self) -> Array:
        """The array, in the memory of the other process; it cannot be written to.

        Raises
        ------
        NotSharedError
            If that memory cannot be reached from here.
        """
        cells = _cells.get(self)
        if cells is None:
            cells = _cells[self] = self._map()
        return table_in(cells, self.shape[0]) if self.by_columns else cells.reshape(self.shape)

    def _map(self) -> Array:
        """Return all cells, spare ones included."""
        n_cells = int(np.prod(self.shape)) + LANES * self.by_columns
        size = n_cells * np.dtype(self.dtype).itemsize
        try:
            memory = _mapped(self.path, size + len(self.token))
        except (OSError, ValueError) as error:
            raise NotSharedError(self.path) from error
        if memory[size:] != self.token:
            raise NotSharedError(self.path)
        return np.frombuffer(memory, self.dtype, n_cells)


# What this process has mapped: once for all of its threads, as long as one of them uses it.
_cells: WeakValueDictionary[Reference, Array] = WeakValueDictionary()


def _mapped(path: str, size: int) -> mmap.mmap:
    """Return a file of this size in memory, to be read."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(number)
        if not stat.S_ISREG(found.st_mode) or found.st_size != size:
            raise ValueError(f"{path} is another file")
        return mmap.mmap(number, size, flags=mmap.MAP_SHARED | POPULATE, prot=mmap.PROT_READ)
    finally:
        os.close(number)


def _same(reference: Reference) -> Reference:
    """Return what was pickled: `__reduce__` needs a function to call."""
    return reference
