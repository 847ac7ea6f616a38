"""Sparse matrices as a user gives them: checked before SciPy or a kernel reads them.

SciPy lets users replace the arrays of a matrix, and its compiled code trusts them. So this is the
one place where a sparse matrix comes in. It looks at all indices once.
"""

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.kernels.structure import CANONICAL, LOOSE, structure
from coem.typing import CSR, Array


def sound_csr(X: Any, prefix: str = "") -> CSR:
    """Return a sparse matrix as CSR, with rows in order and each cell once.

    Parameters
    ----------
    X : sparse matrix or array
        Of any format. It is not changed.
    prefix : str
        The beginning of error messages.

    Returns
    -------
    rows : CSR matrix or array
        `X` itself if it is like that already, even if its arrays are read-only.

    Raises
    ------
    ValueError
        If the arrays of `X` do not fit each other or its shape, or hold no numbers.
    """
    name = str(getattr(X, "format", type(X).__name__))
    if name not in _READERS or len(X.shape) != 2:
        raise ValueError(
            f"{prefix}Expected 2D input, got a sparse {name} array of shape {X.shape} instead. "
            "Reshape your data, for example with X.reshape(1, -1) if it is one row"
        )
    try:
        return _READERS[name](X)
    except _FAULTS as error:
        raise ValueError(
            f"{prefix}the {name.upper()} matrix is damaged: {error}; {ADVICE}"
        ) from error


def shorten(X: Any, longest: float) -> CSR:
    """Return a sparse matrix of counts whose rows have a total of `longest` at most.

    Longer rows are scaled down, and the others stay as they are.
    """
    totals = np.asarray(X.sum(axis=1, dtype=np.float64)).ravel()
    by = np.minimum(1.0, longest / np.maximum(totals, 1e-300))
    shorter: CSR = X.astype(np.float32, copy=True)
    shorter.data *= np.repeat(by, np.diff(X.indptr)).astype(np.float32)
    return shorter


# What is raised below, or by NumPy and SciPy when they read a member.
_FAULTS = (AttributeError, IndexError, OverflowError, TypeError, ValueError)
ADVICE = "build it again, for example with scipy.sparse.coo_array((values, (rows, columns)), shape)"


# -- compressed rows, columns and blocks --------------------------------------------------------


def _from_csr(X: Any) -> CSR:
    data, indices, indptr = _numbers(X.data), _integers(X, "indices"), _integers(X, "indptr")
    n_stored, found = _look(X, indptr, indices, len(data), X.shape)
    parts = data, indices, indptr
    same = all(a is b for a, b in zip(parts, (X.data, X.indices, X.indptr), strict=True))
    exact = len(data) == len(indices) == n_stored and indices.dtype == indptr.dtype
    if found == CANONICAL and same and exact:
        return X  # type: ignore[no-any-return]
    loose = found == LOOSE
    trimmed = data[:n_stored], indices[:n_stored], indptr
    rows = _kind(X, "csr")(trimmed, shape=X.shape, copy=loose)
    if loose:
        rows.sum_duplicates()
    return rows  # type: ignore[no-any-return]


def _from_csc(X: Any) -> CSR:
    data, indices, indptr = _numbers(X.data), _integers(X, "indices"), _integers(X, "indptr")
    n_stored, _ = _look(X, indptr, indices, len(data), X.shape[::-1])
    trimmed = data[:n_stored], indices[:n_stored], indptr
    return _from_csr(_kind(X, "csc")(trimmed, shape=X.shape).tocsr())


def _from_bsr(X: Any) -> CSR:
    data, indices, indptr = _numbers(X.data, 3), _integers(X, "indices"), _integers(X, "indptr")
    height, width = data.shape[1:]
    if not (height and width) or X.shape[0] % height or X.shape[1] % width:
        raise ValueError(f"blocks of {height} x {width} do not fill the shape {X.shape}")
    shape = X.shape[0] // height, X.shape[1] // width
    n_stored, _ = _look(X, indptr, indices, len(data), shape)
    trimmed = data[:n_stored], indices[:n_stored], indptr
    return _from_csr(_kind(X, "bsr")(trimmed, shape=X.shape).tocsr())


def _look(
    X: Any, indptr: Array, indices: Array, n_values: int, shape: tuple[int, int]
) -> tuple[int, int]:
    """Return how many values are stored, and what `structure` says; raise if it is damage."""
    if len(indptr) != shape[0] + 1:
        raise ValueError(f"indptr has {len(indptr)} entries and must have {shape[0] + 1}")
    first, last = int(indptr[0]), int(indptr[-1])
    if first != 0:
        raise ValueError(f"indptr begins with {first} and must begin with 0")
    if last > min(n_values, len(indices)):
        raise ValueError(
            f"indptr ends with {last}, but there are {len(indices)} indices, {n_values} values"
        )
    if indptr.dtype != indices.dtype:
        indptr, indices = indptr.astype(np.int64), indices.astype(np.int64)
    found = structure(indptr, indices, shape[1])
    if found >= 0:
        line = "column" if X.format == "csc" else "block of rows" if X.format == "bsr" else "row"
        raise ValueError(f"{line} {found} points outside the matrix or its arrays")
    return last, found


# -- other formats ------------------------------------------------------------------------------


def _from_coo(X: Any) -> CSR:
    if len(getattr(X, "coords", (0, 0))) != 2:  # older versions of SciPy have no coords
        raise ValueError("it must have the row and the column of each value")
    places = _integers(X, "row"), _integers(X, "col")
    return _from_places(X, _numbers(X.data), *places)


def _from_dok(X: Any) -> CSR:
    keys = np.array(list(X.keys()) or np.empty((0, 2), dtype=np.int64))
    if keys.ndim != 2 or keys.shape[1] != 2:
        raise ValueError("its keys must be pairs of row and column")
    rows, columns = (_whole(places, "its keys") for places in keys.T)
    return _from_places(X, _numbers(np.array(list(X.values()), dtype=X.dtype)), rows, columns)


def _from_places(X: Any, data: Array, rows: Array, columns: Array) -> CSR:
    """Return the CSR matrix of values whose rows and columns are given."""
    if not len(rows) == len(columns) == len(data):
        raise ValueError(
            f"it has {len(rows)} rows and {len(columns)} columns of {len(data)} values"
        )
    for name, places, size in (("row", rows, X.shape[0]), ("column", columns, X.shape[1])):
        if len(places) and not (places.min() >= 0 and places.max() < size):
            bad = places[(places < 0) | (places >= size)][0]
            raise ValueError(f"it has the {name} {bad}, but {name}s go from 0 to {size - 1}")
    pairs = _kind(X, "coo")((data, (rows, columns)), shape=X.shape)
    return _from_csr(pairs.tocsr())


def _from_dia(X: Any) -> CSR:
    data, offsets = _numbers(X.data, 2), _integers(X, "offsets")
    if len(offsets) != len(data) or len(np.unique(offsets)) != len(offsets):
        raise ValueError(f"its {len(data)} diagonals must each have one offset")
    inside = (offsets > -X.shape[0]) & (offsets < X.shape[1])
    kept = _kind(X, "dia")((data[inside], offsets[inside]), shape=X.shape)
    return _from_csr(kept.tocsr())


def _from_lil(X: Any) -> CSR:
    lists = X.rows, X.data
    for name, given in zip(("rows", "data"), lists, strict=True):
        if np.shape(given) != (X.shape[0],) or not all(isinstance(part, list) for part in given):
            raise ValueError(f"{name} must have a list for each of {X.shape[0]} rows")
    lengths, others = ([len(part) for part in given] for given in lists)
    if lengths != others:
        raise ValueError("a row has more or fewer columns than values")
    columns = np.array(list(chain(*X.rows)) or np.empty(0, dtype=np.int64))
    values = np.array(list(chain(*X.data)), dtype=X.dtype)
    rows = np.repeat(np.arange(X.shape[0]), lengths)
    return _from_places(X, _numbers(values), rows, _whole(columns, "rows"))


# -- members ------------------------------------------------------------------------------------


def _integers(X: Any, name: str) -> Array:
    """Return an array of places; itself if it is of a type that SciPy and the kernels take."""
    array = getattr(X, name)
    if isinstance(array, np.ndarray) and array.dtype in (np.int32, np.int64) and array.ndim == 1:
        return array if array.flags.c_contiguous else np.ascontiguousarray(array)
    return _whole(array, name)


def _whole(array: Any, name: str) -> Array:
    """Return integers as int64; raise unless they are integers in one dimension."""
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
        kind = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
        raise ValueError(f"{name} must be an array of integers, not {kind}")
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, not {array.ndim}")
    return np.ascontiguousarray(array, dtype=np.int64)  # what is too large is below 0 then


def _numbers(array: Any, n_dim: int = 1) -> Array:
    """Return values in a type that SciPy's code reads; themselves if they are."""
    if not isinstance(array, np.ndarray) or array.ndim != n_dim:
        raise ValueError(f"data must be an array of {n_dim} dimensions")
    if array.dtype.kind not in "biufcO":
        raise ValueError(f"data holds {array.dtype}, not numbers")
    if array.dtype.kind == "O":
        return array.astype(np.float64)
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if array.dtype.isnative and array.flags.c_contiguous:
        return array
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def _kind(X: Any, name: str) -> Callable[..., Any]:
    """Return SciPy's class of a format: an array if `X` is one, else a matrix."""
    found: Callable[..., Any] = getattr(
        sp, f"{name}_{'array' if isinstance(X, sp.sparray) else 'matrix'}"
    )
    return found


_READERS: dict[str, Callable[[Any], CSR]] = {
    "csr": _from_csr,
    "csc": _from_csc,
    "bsr": _from_bsr,
    "coo": _from_coo,
    "dok": _from_dok,
    "dia": _from_dia,
    "lil": _from_lil,
}
