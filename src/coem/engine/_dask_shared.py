"""Parcels whose arrays the processes of one machine share.

Copies would have to be sent, and those of a table of parameters would compete for the caches of the
processor, where the E step looks for it. So arrays lie in memory that has no name (a memfd of
Linux), and other processes of the machine map it. The system frees it after its last user.
"""

import mmap
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from secrets import token_bytes
from threading import Lock
from typing import Any, Generic

import numpy as np

from coem.engine._dask_parcels import Parcel, Value, has_only_columns, pack, unpack
from coem.held_file import HeldFile
from coem.kernels.counts import table_in
from coem.kernels.summing import LANES
from coem.typing import Array

CAN_SHARE = hasattr(os, "memfd_create")
HERE = "/proc/{}/fd"  # where other processes find the open files of this one
POPULATE = getattr(mmap, "MAP_POPULATE", 0)  # all pages at once, and not at the first look at each
LINE = 64  # bytes of a line of a cache, where an array begins


class NotSharedError(Exception):
    """A process cannot reach the memory of another one."""


class SharedParcel(Parcel[Value]):
    """A parcel that becomes a `Reference` where it is unpickled, if there is room for that.

    The memory is filled when the parcel is first pickled, and belongs to it from then on.
    """

    def __init__(self, value: Value) -> None:
        super().__init__(value)
        self._lock = Lock()
        self._where: tuple[Any, ...] | None = None
        self._file: HeldFile | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle where the arrays are, and not what is in them."""
        with self._lock:
            if self._where is None:
                with suppress(OSError):  # no room
                    self._where = self._filled()
        return super().__reduce__() if self._where is None else (Reference, self._where)

    def _filled(self) -> tuple[Any, ...]:
        """Copy the arrays into memory of their own, and return where they are."""
        skeleton, arrays = pack(self.value)
        places, size = _laid_out(arrays)
        token = token_bytes(16)
        file = HeldFile(os.memfd_create("coem-arrays"), "wb")
        for place, array in zip(places, arrays, strict=True):
            cells = np.ascontiguousarray(array.T if place.by_columns else array)
            _write(file, cells.reshape(-1).view(np.uint8).data, place.begin)
        file.truncate(size)  # spare cells are zero
        _write(file, token, size)
        self._file = file
        return _path_of(file), token, skeleton, places, size


def parcel(value: Value, shares: bool) -> Parcel[Value]:
    """Return a parcel for other processes, which may be able to map its arrays."""
    return SharedParcel(value) if shares else Parcel(value)


@dataclass(frozen=True)
class Place:
    """Where an array lies, and how."""

    begin: int
    dtype: str
    shape: tuple[int, ...]
    by_columns: bool

    @property
    def n_cells(self) -> int:
        """Number of cells; one by columns has spare ones, as the tables of kernels do."""
        return int(np.prod(self.shape)) + LANES * self.by_columns

    @property
    def end(self) -> int:
        """Where the last cell ends."""
        return self.begin + self.n_cells * np.dtype(self.dtype).itemsize

    def array_in(self, memory: mmap.mmap) -> Array:
        """Return the array."""
        cells = np.frombuffer(memory, self.dtype, self.n_cells, self.begin)
        return table_in(cells, self.shape[0]) if self.by_columns else cells.reshape(self.shape)


class Reference(Generic[Value]):
    """A value whose arrays are in memory that processes of this machine share.

    Parameters
    ----------
    path : str
        Where another process has the memory open. This one opens it at once, so that it stays if
        the other lets go of it or ends.
    token : bytes
        What stands behind the arrays: on another machine, the path may be that of another file.
    skeleton : bytes
        The pickled value without its arrays.
    places : list of Place
        Where the arrays are.
    size : int
        Bytes before the token.
    """

    def __init__(
        self, path: str, token: bytes, skeleton: bytes, places: list[Place], size: int
    ) -> None:
        self._path, self._about = path, (token, skeleton, places, size)
        self._memory: mmap.mmap | None = None
        with suppress(OSError, ValueError):
            self._file = _opened(path, token, size)
            self._path = _path_of(self._file)
            how = {"flags": mmap.MAP_SHARED | POPULATE, "prot": mmap.PROT_READ}
            self._memory = mmap.mmap(self._file.fileno(), size, **how)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle where this process has the memory open."""
        return Reference, (self._path, *self._about)

    @property
    def value(self) -> Value:
        """The value; its arrays cannot be written to.

        Raises
        ------
        NotSharedError
            If this process cannot reach the memory.
        """
        memory = self._memory
        if memory is None:
            raise NotSharedError(self._path)
        _, skeleton, places, _ = self._about
        found: Value = unpack(skeleton, [place.array_in(memory) for place in places])
        return found


def _laid_out(arrays: Sequence[Array]) -> tuple[list[Place], int]:
    """Return where each array lies if they follow each other, and the bytes of all."""
    places: list[Place] = []
    end = 0
    for array in arrays:
        by_columns = array.ndim == 2 and has_only_columns(array)
        places.append(Place(-(-end // LINE) * LINE, array.dtype.str, array.shape, by_columns))
        end = places[-1].end
    return places, end


def _write(file: FileIO, data: Any, at: int) -> None:
    """Write bytes at a place; the system writes 2 GB at most at a time."""
    file.seek(at)
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _path_of(file: FileIO) -> str:
    """Return where other processes find an open file of this one."""
    return f"{HERE.format(os.getpid())}/{file.fileno()}"


def _opened(path: str, token: bytes, size: int) -> HeldFile:
    """Open memory of another process; raise unless it is what is looked for."""
    file = HeldFile(path, "rb", opener=_without_waiting)
    about = os.fstat(file.fileno())
    is_like_it = stat.S_ISREG(about.st_mode) and about.st_size == size + len(token)
    if not is_like_it or os.pread(file.fileno(), len(token), size) != token:
        raise ValueError(f"{path} is another file")
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)
