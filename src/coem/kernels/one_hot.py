"""Responsibilities of rows that belong to one component each, without an (n, k) array."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from coem.kernels.dense import sum_by_label
from coem.typing import Array


@dataclass(frozen=True)
class OneHot:
    """The labels of rows. You can use it like the array of zeros and ones that it stands for.

    It has the operations that an M step needs: ``resp[rows]``, ``resp * weight[:, None]``,
    ``resp.sum(axis=0)``, ``weight @ resp`` and ``resp.T @ X``. Their cost does not depend on the
    number of components. ``np.asarray(resp)`` is the dense array.

    Parameters
    ----------
    labels : int32 array of shape (n,) or (n_slots, n)
        The component of each row.
    n_components : int
        The number of components k.
    weight : array with the shape of the labels, optional
        The value of each row in place of 1.
    """

    labels: Array
    n_components: int
    weight: Array | None = None

    __array_ufunc__ = None  # so that NumPy leaves ``weight @ resp`` to this class

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the dense array."""
        return (*self.labels.shape, self.n_components)

    def __len__(self) -> int:
        """Return the length of the first axis."""
        return len(self.labels)

    def __getitem__(self, rows: Any) -> "OneHot":
        """Return some rows. If `rows` is a slice, the labels are not copied."""
        weight = None if self.weight is None else self.weight[rows]
        return OneHot(self.labels[rows], self.n_components, weight)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the dense array, by default in float64."""
        if copy is False:
            raise ValueError("OneHot has no dense array to share")
        dense = np.zeros(self.shape, dtype=np.float64 if dtype is None else dtype)
        weight = 1.0 if self.weight is None else self.weight[..., np.newaxis]
        np.put_along_axis(dense, self.labels[..., np.newaxis], weight, axis=-1)
        return dense

    def astype(self, dtype: Any, copy: bool = True) -> Self:
        """Return the same object: labels have no precision."""
        return self

    def argmax(self, axis: int = -1) -> Array:
        """Return the labels; the axis must be the last one."""
        return self.labels

    def __mul__(self, weight: Array) -> "OneHot":
        """Return the product with weights of shape (n, 1)."""
        column = np.asarray(weight, dtype=np.float64)[:, 0]
        column = column if self.weight is None else self.weight * column
        return OneHot(self.labels, self.n_components, column)

    def sum(self, axis: int = 0, dtype: Any = np.float64) -> Array:
        """Return the weight of each component (k,), for labels of shape (n,)."""
        counts = np.bincount(self.labels, self.weight, minlength=self.n_components)
        return np.asarray(counts, dtype=dtype)

    def __rmatmul__(self, weight: Array) -> Array:
        """Return ``weight @ resp`` (k,), for weights of shape (n,)."""
        return (self * weight[:, np.newaxis]).sum()

    @property
    def T(self) -> "Transposed":
        """The transposed array, which multiplies rows."""
        return Transposed(self)


@dataclass(frozen=True)
class Transposed:
    """A one-hot array (k, n); see `OneHot`."""

    resp: OneHot

    def __matmul__(self, rows: Array) -> Array:
        """Return the weighted sums (k, d) of the rows (n, d) of each component."""
        return sum_by_label(rows, self.resp.labels, self.resp.weight, self.resp.n_components)
