"""Values on their way between machines.

A transport hands arrays over wherever they happen to lie in its buffers. Kernels want whole numbers
in their place, and tables with spare cells. So a value travels as a `Parcel`, and its arrays are
put in order once, when it arrives.
"""

import io
import pickle
from collections.abc import Sequence
from functools import cache
from typing import Any, Generic, TypeVar

import numpy as np

from coem.kernels.counts import new_table
from coem.typing import Array

LARGE = 1 << 12  # bytes of an array that travels beside the rest

Value = TypeVar("Value")


class Parcel(Generic[Value]):
    """A value that can be pickled, with arrays that are in order wherever it is opened."""

    def __init__(self, value: Value) -> None:
        self.value = value
        self._n_bytes: int | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays beside the rest, so that the transport need not copy them."""
        return _opened, pack(self.value)

    def __sizeof__(self) -> int:
        """Return the bytes of the arrays, so that the scheduler moves tasks to large values."""
        if self._n_bytes is None:
            self._n_bytes = n_bytes(self.value)
        return self._n_bytes


def pack(value: Any, least: int = LARGE) -> tuple[bytes, list[Array]]:
    """Return a pickled value without its large arrays, and these arrays."""
    arrays: list[Array] = []
    skeleton = io.BytesIO()
    _packer()(skeleton, arrays, least).dump(value)
    return skeleton.getvalue(), arrays


def unpack(skeleton: bytes, arrays: Sequence[Array]) -> Any:
    """Return the value that was packed."""
    return _Unpacker(skeleton, arrays).load()


@cache
def _packer() -> Any:
    """Return the class that packs; cloudpickle comes with Dask, and is not always there.

    It is made once. A class refers to itself: one for each value would hold its arrays until Python
    looks for cycles.
    """
    import cloudpickle

    class Packer(cloudpickle.Pickler):  # type: ignore[misc, unused-ignore]
        def __init__(self, file: io.BytesIO, arrays: list[Array], least: int) -> None:
            super().__init__(file, protocol=5)
            self._arrays, self._least = arrays, least
            self._places: dict[int, int] = {}

        def persistent_id(self, found: Any) -> int | None:
            """Return the number of an array that is left out, or None for anything else."""
            if type(found) is not np.ndarray or found.nbytes < self._least or found.dtype.hasobject:
                return None
            place = self._places.setdefault(id(found), len(self._arrays))
            if place == len(self._arrays):
                self._arrays.append(found)
            return place

    return Packer


class _Unpacker(pickle.Unpickler):
    def __init__(self, skeleton: bytes, arrays: Sequence[Array]) -> None:
        super().__init__(io.BytesIO(skeleton))
        self._arrays = arrays

    def persistent_load(self, place: int) -> Array:
        """Return an array that was left out."""
        return self._arrays[place]


def n_bytes(value: Any) -> int:
    """Return the bytes of a value, most of which are those of its arrays."""
    skeleton, arrays = pack(value)
    return len(skeleton) + sum(array.nbytes for array in arrays)


def _opened(skeleton: bytes, arrays: Sequence[Array]) -> Parcel[Any]:
    return Parcel(unpack(skeleton, [_in_order(array) for array in arrays]))


def _in_order(array: Array) -> Array:
    """Return an array that the kernels can read as it is.

    Bytes are copied, and not numbers: NumPy copies numbers out of their place one by one.
    """
    if array.ndim == 2 and array.dtype.kind == "f" and has_only_columns(array):
        k, n_features = array.shape
        table = new_table(k, n_features, array.dtype)
        _bytes_of(table.T)[...] = _bytes_of(array.T)
        return table
    if array.flags.aligned:
        return array
    if not array.flags.c_contiguous:
        return np.require(array, requirements="A")
    ordered = np.empty(array.shape, array.dtype)
    _bytes_of(ordered)[...] = _bytes_of(array)
    return ordered


def has_only_columns(array: Array) -> bool:
    """Return whether the columns of an array follow each other in memory, and its rows do not."""
    return array.flags.f_contiguous and not array.flags.c_contiguous


def _bytes_of(array: Array) -> Array:
    """Return the memory of an array whose rows follow each other."""
    return array.reshape(-1).view(np.uint8)
