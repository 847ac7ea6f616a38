"""Base of the families over sparse non-negative rows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from coem.families.base import Family, StatsT, ThetaT
from coem.typing import CSR, Array, Matrix, is_sparse

NATIVE = (np.float32, np.float64, np.int32, np.int64)  # types that the kernels can read


@dataclass(frozen=True)
class CountFamily(Family[ThetaT, StatsT, CSR]):
    """Base of the families whose rows are sparse and not negative.

    Dense rows become CSR once, so that dense and sparse input run the same code. Parameters are
    tables of float32 by default, sums over rows always float64.
    """

    alpha: float = 1.0
    dtype: Any = None

    wide: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = True
    single_precision: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise unless the pseudo-count is a finite number of 0 or more."""
        if not (isinstance(self.alpha, Real) and 0 <= self.alpha < np.inf):
            raise ValueError(f"alpha must be 0 or more, got {self.alpha!r}")

    @property
    def precision(self) -> Any:
        """The dtype of the parameters."""
        return np.float32 if self.dtype is None else self.dtype

    def empty(self, X: Matrix) -> Array:
        """Return which rows have no counts."""
        if is_sparse(X):
            if X.data.all():
                return np.asarray(np.diff(X.indptr) == 0)
            # Stored zeros are not counts. X != 0 would add up duplicates in the caller's matrix.
            return np.asarray(np.diff(np.append(0, np.cumsum(X.data != 0))[X.indptr]) == 0)
        return np.asarray(~np.any(X, axis=1))

    def bind(self, X: Matrix, dtype: Any) -> Self:
        """Return the family with what it learns from the rows, and the requested precision."""
        return self.bind_pieces([X], dtype)

    def bind_pieces(self, pieces: Iterable[Matrix], dtype: Any) -> Self:
        """Return the family with the requested precision."""
        return self if dtype is None else replace(self, dtype=dtype)

    def encode(self, X: Matrix) -> CSR:
        """Return the rows as CSR; a CSR matrix of a native type is returned as it is."""
        if X.dtype not in NATIVE:  # convert once, without loss
            X = X.astype(np.float32 if np.can_cast(X.dtype, np.float32) else np.float64)
        return X if is_sparse(X) and X.format == "csr" else sp.csr_matrix(X)
