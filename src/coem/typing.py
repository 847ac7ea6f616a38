"""Names for the types that travel between the layers."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias, TypeVar, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

if TYPE_CHECKING:
    from typing_extensions import TypeIs

Array: TypeAlias = NDArray[Any]
"""A dense array."""

Rows: TypeAlias = slice | Array | Sequence[int]
"""What selects some rows of a matrix and keeps it two-dimensional."""


class CSR(Protocol):
    """The part of scipy's CSR matrices and arrays that coem uses; scipy has no type hints."""

    data: Array
    indices: Array
    indptr: Array

    @property
    def format(self) -> Literal["csr"]:
        """The name of the format."""
        ...

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the values."""
        ...

    @property
    def nnz(self) -> int:
        """Number of stored values."""
        ...

    def resize(self, shape: tuple[int, int], /) -> None:
        """Set the shape; rows and columns beyond it are dropped."""
        ...

    @property
    def has_sorted_indices(self) -> bool:
        """True if the columns of each row are in order."""
        ...

    @property
    def has_canonical_format(self) -> bool:
        """True if the columns of each row are in order and none is there twice."""
        ...

    @property
    def T(self) -> Any:
        """The transposed matrix, which is not CSR."""
        ...

    @overload
    def __getitem__(self, key: Rows, /) -> Self: ...
    @overload
    def __getitem__(self, key: tuple[Any, ...], /) -> Any: ...

    def __matmul__(self, other: Any, /) -> Any:
        """Return the product, dense if `other` is dense."""
        ...

    def __rmatmul__(self, other: Any, /) -> Any:
        """Return the product, dense if `other` is dense."""
        ...

    def __abs__(self) -> Self:
        """Return the absolute values."""
        ...

    def multiply(self, other: Any, /) -> Any:
        """Return the element-wise product, in a sparse format that depends on `other`."""
        ...

    def max(self, axis: int | None = None) -> Any:
        """Return the largest value, or those along an axis in a sparse format."""
        ...

    def sum(self, axis: int | None = None) -> Any:
        """Return the sum of all values, or the sums along an axis."""
        ...

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Self:
        """Return the matrix with values of another type."""
        ...

    def copy(self) -> Self:
        """Return a copy."""
        ...

    def tocsr(self) -> Self:
        """Return the matrix itself."""
        ...

    def toarray(self) -> Array:
        """Return the dense array."""
        ...

    def sum_duplicates(self) -> None:
        """Add up values of the same row and column, in place."""
        ...

    def eliminate_zeros(self) -> None:
        """Remove stored zeros, in place."""
        ...


Matrix: TypeAlias = Array | CSR
"""One view: a dense two-dimensional array, or a scipy CSR matrix or array."""

MatrixT = TypeVar("MatrixT", bound=Matrix)
"""A matrix of one kind, dense or CSR, where two places must have the same kind."""

Theta: TypeAlias = Array | tuple[Array, ...]
"""Parameters of a family: an array, or a NamedTuple of arrays, components on the first axis."""

Resp: TypeAlias = Any
"""Responsibilities (n_rows, n_components): a dense array, or what can be used like one, a
`kernels.one_hot.OneHot` or a `kernels.row_lists.RowLists`."""

Rng: TypeAlias = np.random.Generator
"""A source of random numbers."""


def is_sparse(X: Matrix) -> "TypeIs[CSR]":
    """Return whether a matrix is sparse. Unlike ``issparse``, it tells the type checker."""
    return bool(sp.issparse(X))
