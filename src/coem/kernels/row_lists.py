"""Responsibilities of rows that have a few components each, without an (n, k) array."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.typing import Array


@dataclass(frozen=True)
class RowLists:
    """The components of each row. You can use it like the array of mostly zeros it stands for.

    It has the operations that an M step needs: ``resp[rows]``, ``resp * weight[:, None]``,
    ``resp.sum(axis=0)`` and ``weight @ resp``. Their cost does not depend on the number of
    components. ``np.asarray(resp)`` is the dense array.

    Parameters
    ----------
    offsets : int64 array of shape (n + 1,)
        Row `i` has the entries from ``offsets[i]`` to ``offsets[i + 1]``.
    components : int32 array
        The component of each entry; those of a row are in order.
    values : float array
        The responsibility of each entry.
    n_components : int
        The number of components k.
    slots : bool, default=False
        Whether it stands for an array (1, n, k), of the one slot of a state.
    """

    offsets: Array
    components: Array
    values: Array
    n_components: int
    slots: bool = False

    __array_ufunc__ = None  # so that NumPy leaves ``weight @ resp`` to this class

    @classmethod
    def joined(cls, parts: "Sequence[RowLists]") -> "RowLists":
        """Return the rows of all parts, one part after the other."""
        lengths = np.concatenate([np.diff(part.offsets) for part in parts])
        return cls(
            np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            np.concatenate([part.components for part in parts]),
            np.concatenate([part.values for part in parts]),
            parts[0].n_components,
        )

    @classmethod
    def of_labels(cls, labels: Array, n_components: int, dtype: Any) -> "RowLists":
        """Return the one slot of a state in which each row has the component of its label."""
        n = len(labels)
        own = labels.astype(np.int32), np.ones(n, dtype=dtype)
        return cls(np.arange(n + 1, dtype=np.int64), *own, n_components, slots=True)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense array."""
        own = len(self.offsets) - 1, self.n_components
        return (1, *own) if self.slots else own

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        return self.values.dtype

    def __len__(self) -> int:
        """Return the length of the first axis."""
        return self.shape[0]

    def __getitem__(self, key: Any) -> "RowLists":
        """Return some rows, or the slot. If they are a slice, nothing is copied but offsets."""
        if self.slots:
            slot, rows = key if isinstance(key, tuple) else (key, slice(None))
            return replace(self, slots=isinstance(slot, slice) and self.slots)._rows(rows)
        return self._rows(key)

    def _rows(self, rows: Any) -> "RowLists":
        if not isinstance(rows, slice):
            some = self._csr()[rows]
            return replace(
                self,
                offsets=some.indptr.astype(np.int64),
                components=some.indices.astype(np.int32),
                values=some.data,
            )
        start, stop, _ = rows.indices(len(self.offsets) - 1)
        first, last = self.offsets[start], self.offsets[stop]
        return replace(
            self,
            offsets=self.offsets[start : stop + 1] - first,
            components=self.components[first:last],
            values=self.values[first:last],
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the dense array."""
        if copy is False:
            raise ValueError("RowLists has no dense array to share")
        dense: Array = self._csr().toarray().reshape(self.shape)
        return dense if dtype is None else dense.astype(dtype)

    def _csr(self) -> Any:
        shape = len(self.offsets) - 1, self.n_components
        return sp.csr_matrix((self.values, self.components, self.offsets), shape=shape)

    def astype(self, dtype: Any, copy: bool = True) -> "RowLists":
        """Return the same responsibilities in another precision."""
        return replace(self, values=self.values.astype(dtype, copy=copy))

    def argmax(self, axis: int = -1) -> Array:
        """Return the first of the largest components of each row; the axis must be the last."""
        return np.asarray(np.asarray(self).argmax(axis=-1))

    def rows(self) -> Array:
        """Return the row of each entry, as int32."""
        lengths = np.diff(self.offsets)
        return np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)

    def __mul__(self, weight: Array) -> "RowLists":
        """Return the product with weights of shape (n, 1), in float64."""
        column = np.asarray(weight, dtype=np.float64)[:, 0]
        return replace(self, values=self.values * column[self.rows()])

    def sum(self, axis: int = 0, dtype: Any = np.float64) -> Array:
        """Return the mass of each component (k,), added up in float64 in the order of the rows."""
        mass = np.bincount(self.components, self.values, minlength=self.n_components)
        return np.asarray(mass, dtype=dtype)

    def __rmatmul__(self, weight: Array) -> Array:
        """Return ``weight @ resp`` (k,), for weights of shape (n,)."""
        return (self * weight[:, np.newaxis]).sum()

    def by_component(self) -> tuple[Array, Array, Array]:
        """Return for each component where its entries begin, and their rows and values."""
        columns = self._csr().tocsc()  # counts them: faster than to put them in order
        rows = columns.indices.astype(np.int32, copy=False)
        return columns.indptr.astype(np.int64), rows, columns.data
