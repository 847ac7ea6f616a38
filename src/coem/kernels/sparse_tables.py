"""Tables of components that list the words which each component has.

With pseudo-counts, all words that a component has not seen have the same probability. So a
component is one number, and the words that it has. A table of k components and V words then takes
the memory of the pairs of words and components that occur together, and not that of k V cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib.mixins import NDArrayOperatorsMixin

from coem.kernels import _compiled, threads
from coem.kernels.counts import LOG_ZERO, WORDS, as_table, memory_of, new_table
from coem.kernels.indices import ALL, Index, axes, places_of
from coem.kernels.sparse_sums import CHUNK, SparseSums, check_lists, ends, joined
from coem.kernels.summing import csr_arrays
from coem.typing import CSR, Array

COMMON = 4  # a word has all cells if one in so many components has it: that is smaller, and faster
NEGLIGIBLE = 1e-6  # of the pseudo-count: smaller sums change a cell by less than float32 can hold
TINY = float(np.finfo(np.float64).tiny)  # smaller numbers lose digits, and their logs are LOG_ZERO
DENSE_CELLS = 1 << 28  # cells of the largest dense table, 1 GB in float32


# Two tables are compared cell by cell, as arrays are, and not by their parts.
@dataclass(frozen=True, eq=False)
class SparseTable(NDArrayOperatorsMixin):
    """A table (n_components, n_features). You can use it like the array that it stands for.

    Indices are those of NumPy: integers, slices, lists of integers, and masks, for components,
    words or both. Two lists name pairs, so ``table[[0, 1], [2, 3]]`` has two cells. Whole
    components, ``table[components]``, are a table again, and one of them, ``table[j]``, is an
    array. All other cells are arrays, ``table[:, words]`` too. `None` and ``...`` are refused, and
    no cell can be changed.

    ``np.asarray(table)`` is the dense array, if it is not too large; `toarray` in any case. `T`,
    operators such as ``table * 2``, and functions of NumPy such as ``np.exp(table)`` make this
    array, too. `exp`, `total`, `scores` and ``share @ table`` do not.

    Parameters
    ----------
    unseen : float64 array of shape (k,)
        The cells of words that a component does not list.
    places : int32 array of shape (n_features,)
        The place in `common` of words that have all cells, else -1.
    common : table of shape (k, n_common)
        The cells of these words.
    offsets : int64 array of shape (n_features + 1,)
        Any other word `w` has the cells from ``offsets[w]`` to ``offsets[w + 1]``.
    components : int32 array
        The component of each of these cells; those of a word are in order.
    cells : array of the type of `common`
        The cells.
    """

    unseen: Array
    places: Array
    common: Array
    offsets: Array
    components: Array
    cells: Array

    def __post_init__(self) -> None:
        """Lay `common` out for the kernels, which a pickled table is not."""
        common = self.common
        if isinstance(common, np.ndarray) and common.ndim == 2 and common.dtype.kind == "f":
            object.__setattr__(self, "common", as_table(self.common))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays."""
        return SparseTable, self.parts

    def check(self) -> None:
        """Raise unless the arrays fit each other, for those of a file."""
        unseen, places, common, offsets, components, cells = self.parts
        right = [isinstance(part, np.ndarray) for part in self.parts]
        if not all(right) or unseen.dtype != np.float64 or unseen.ndim != 1 or not len(unseen):
            raise ValueError("a sparse table needs a number for each component")
        check_lists(offsets, components, cells, len(unseen))
        if places.dtype != np.int32 or places.shape != (len(offsets) - 1,):
            raise ValueError("a sparse table needs a place for each feature")
        if cells.dtype != common.dtype or cells.dtype not in (np.float32, np.float64):
            raise ValueError("the cells of a sparse table have other types")
        if common.ndim != 2 or len(common) != len(unseen):
            raise ValueError("the common features of a sparse table have other components")
        if len(places) and not -1 <= places.min() <= places.max() < common.shape[1]:
            raise ValueError("a sparse table has places that are not there")

    @property
    def parts(self) -> tuple[Array, Array, Array, Array, Array, Array]:
        """The arrays."""
        own = self.unseen, self.places, self.common, self.offsets, self.components, self.cells
        return own

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the dense array."""
        return len(self.unseen), len(self.places)

    @property
    def size(self) -> int:
        """The number of cells of the dense array."""
        return self.shape[0] * self.shape[1]

    @property
    def ndim(self) -> int:
        """The number of axes of the dense array."""
        return 2

    @property
    def T(self) -> Array:
        """The dense array with its axes exchanged, if it is not too large."""
        return np.asarray(self).T

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the cells."""
        return self.cells.dtype

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(part.nbytes for part in self.parts)

    def __len__(self) -> int:
        """Return the number of components."""
        return len(self.unseen)

    def scores(self, X: CSR) -> Array:
        """Return ``X @ table.T`` as float64; the words that all have in the precision of cells."""
        out = np.empty((X.shape[0], len(self)))
        unseen, places, common, offsets, components, cells = self.parts
        csr, memory = csr_arrays(X, self.shape[1]), memory_of(common)
        _compiled.sparse_scores(*csr, unseen, places, memory, offsets, components, cells, out)
        return out

    def total(self) -> float:
        """Return the sum of all cells in float64, the same for any number of threads."""

        def work(lo: int) -> float:
            own = slice(lo, lo + CHUNK)
            more = self.cells[own].sum(dtype=np.float64) - self.unseen[self.components[own]].sum()
            return float(more)

        listed = sum(threads.spread(work, range(0, len(self.cells), CHUNK)))
        n_listed = self.shape[1] - self.common.shape[1]
        return float(listed + n_listed * self.unseen.sum() + self.common.sum(dtype=np.float64))

    def exp(self) -> "SparseTable":
        """Return the exponentials of all cells, in float64."""
        unseen, places, common, offsets, components, cells = self.parts
        new = new_table(len(common), common.shape[1], np.float64)
        np.exp(common, out=new, dtype=np.float64)
        cells = np.exp(cells.astype(np.float64))
        return SparseTable(np.exp(unseen), places, new, offsets, components, cells)

    def listed(self) -> Any:
        """Return how much more than `unseen` all cells are, as a CSR matrix (n_features, k)."""
        n_features = self.shape[1]
        lists = self._lists(self.cells.astype(np.float64) - self.unseen[self.components])
        words = np.flatnonzero(self.places >= 0)
        common = self.common.T[self.places[words]].astype(np.float64) - self.unseen
        rows = sp.csr_matrix(
            (np.ones(len(words)), (words, np.arange(len(words)))), shape=(n_features, len(words))
        )
        return lists + rows @ sp.csr_matrix(common)

    def _lists(self, values: Array) -> Any:
        """Return values of the cells that are listed as a CSR matrix (n_features, k)."""
        lists = sp.csr_matrix(self.shape[::-1], dtype=values.dtype)
        # SciPy 1.12 takes indices of one type alone.
        columns = self.components.astype(self.offsets.dtype)
        lists.data, lists.indices, lists.indptr = values, columns, self.offsets
        return lists

    def __getitem__(self, key: Any) -> Any:
        """Return whole components as a table, and other cells as an array."""
        rows, words = axes(key, self.shape)
        if isinstance(words, slice) and words == ALL:
            return self._whole(rows)
        if isinstance(rows, slice) or isinstance(words, slice):
            return self._block(rows, words)
        return self._pairs(rows, words)

    def _whole(self, rows: Index) -> "SparseTable | Array":
        """Return whole components: a table, or an array for one of them."""
        if isinstance(rows, slice):
            return self if rows == ALL else self._some(places_of(rows, len(self)))
        return self._some(rows) if rows.ndim == 1 else self._block(rows, ALL)

    def _block(self, rows: Index, words: Index) -> Array:
        """Return the cells of all words that are chosen, of all components that are."""
        whole = isinstance(rows, slice) and rows == ALL
        rows, words = places_of(rows, len(self)), places_of(words, self.shape[1])
        chosen, few = rows.ravel(), COMMON * len(self) * words.size < len(self.cells)
        if whole or few:  # a table of some components takes a look at all cells
            cells = self._words(words.ravel())
            cells = cells if whole else cells[chosen]
        else:
            cells = self._some(chosen)._words(words.ravel())
        return cells.reshape(rows.shape + words.shape)

    def _pairs(self, rows: Array, words: Array) -> Any:
        """Return a cell for each pair of a component and a word, or the one cell."""
        try:
            rows, words = np.broadcast_arrays(rows, words)
        except ValueError:
            raise IndexError(
                f"components of shape {rows.shape} and features of shape {words.shape} make no "
                "pairs; table[components][:, features] has the cells of all of them"
            ) from None
        shape, rows, words = rows.shape, rows.ravel(), words.ravel()
        cells = self.unseen[rows].astype(self.dtype)
        there = self.places[words] >= 0
        cells[there] = self.common[rows[there], self.places[words[there]]]
        pairs, listed = self._find(rows, words)
        cells[pairs] = self.cells[listed]
        return cells.reshape(shape)[()]

    def _find(self, rows: Array, words: Array) -> tuple[Array, Array]:
        """Return which pairs of components and words are listed, and where; by bisection."""
        low, high = self.offsets[words], self.offsets[words + 1]
        last = high
        while (apart := low < high).any():
            middle = (low + high) // 2
            below = self.components.take(middle, mode="clip") < rows
            low = np.where(apart & below, middle + 1, low)
            high = np.where(below, high, middle)
        pairs = np.flatnonzero(low < last)
        pairs = pairs[self.components[low[pairs]] == rows[pairs]]
        return pairs, low[pairs]

    def _some(self, chosen: Array) -> "SparseTable":
        """Return a table of some components."""
        own = self._lists(self.cells)[:, chosen]
        own.sort_indices()
        lists = own.indptr.astype(np.int64), own.indices.astype(np.int32), own.data
        return SparseTable(self.unseen[chosen], self.places, self.common[chosen], *lists)

    def _words(self, words: Array) -> Array:
        """Return the cells of some words, of all components, as an array."""
        out = np.repeat(self.unseen.astype(self.dtype)[:, np.newaxis], len(words), axis=1)
        there = self.places[words] >= 0
        out[:, there] = self.common[:, self.places[words[there]]]
        lengths = self.offsets[words + 1] - self.offsets[words]
        columns = np.repeat(np.arange(len(words)), lengths)
        first = self.offsets[words] - ends(lengths)[:-1]
        pairs = np.arange(len(columns)) + first[columns]
        out[self.components[pairs], columns] = self.cells[pairs]
        return out

    def toarray(self) -> Array:
        """Return the dense array, whatever its size."""
        dense = new_table(*self.shape, self.dtype)
        for lo in range(0, self.shape[1], WORDS):
            words = np.arange(lo, min(lo + WORDS, self.shape[1]))
            dense[:, words] = self._words(words)
        return dense

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the dense array, if it has no more cells than the largest dense table."""
        if copy is False:
            raise ValueError("SparseTable has no dense array to share")
        if self.size > DENSE_CELLS:
            k, n_features = self.shape
            size = self.size * np.dtype(self.dtype if dtype is None else dtype).itemsize
            raise ValueError(
                f"the table of {k:,} components and {n_features:,} features would take "
                f"{size / 1e9:.1f} GB as an array; take some components, table[components], some "
                "features, table[:, features], or table.toarray() for all"
            )
        dense = self.toarray()
        return dense if dtype is None else dense.astype(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """Apply a function to the dense array, or ``share @ table`` to the lists."""
        if method == "at" or any(isinstance(x, SparseTable) for x in settings.get("out", ())):
            raise TypeError("a sparse table cannot be changed; np.asarray(table) can, it is a copy")
        if ufunc is np.matmul and not settings and not isinstance(inputs[0], SparseTable):
            return inputs[1].__rmatmul__(inputs[0])
        dense = (np.asarray(x) if isinstance(x, SparseTable) else x for x in inputs)
        return getattr(ufunc, method)(*dense, **settings)

    def __rmatmul__(self, share: Array) -> "SparseTable":
        """Return ``share @ table`` for shares of shape (n, k)."""
        unseen = share @ self.unseen
        more = self.listed() @ sp.csr_matrix(share.T)
        return _of_words(unseen, more.tocsr(), np.float64)

    @classmethod
    def of_dense(cls, table: Array) -> "SparseTable":
        """Return a dense table; the smallest cell of each component is that of unseen words."""
        unseen = table.min(axis=1).astype(np.float64)
        more = sp.csr_matrix(np.asarray(table, dtype=np.float64).T - unseen)
        return _of_words(unseen, more, table.dtype)

    @classmethod
    def stacked(cls, parts: "Sequence[SparseTable | Array]") -> "SparseTable":
        """Return a table of the components of all parts, one part after the other."""
        tables = [
            part if isinstance(part, cls) else cls.of_dense(np.asarray(part)) for part in parts
        ]
        more = sp.hstack([table.listed() for table in tables], format="csr")
        return _of_words(joined([t.unseen for t in tables]), more, tables[0].dtype)


def _of_words(unseen: Array, more: Any, dtype: Any) -> SparseTable:
    """Return a table, from how much more than `unseen` cells are: CSR of (n_features, k)."""
    more.sort_indices()
    n_features, k = more.shape
    cells = (more.data + unseen[more.indices]).astype(dtype)
    lists = more.indptr.astype(np.int64), more.indices.astype(np.int32), cells
    nowhere = np.full(n_features, -1, np.int32)
    return SparseTable(unseen, nowhere, new_table(k, 0, dtype), *lists)


def log_table(sums: SparseSums, alpha: float, dtype: Any) -> SparseTable:
    """Return the logarithms of the rows of ``sums + alpha``, each normalised to one.

    A zero becomes `LOG_ZERO`, and a row of zeros the uniform distribution. Sums below `NEGLIGIBLE`
    times `alpha`, or below `TINY`, are taken to be zero. What is left is the M step on the other
    sums. It falls short of the M step on all sums by less than the sum of s * s / alpha over the
    sums s left out: by less than alpha / 10^12 for each.
    """
    k, n_features = sums.shape
    least = max(NEGLIGIBLE * alpha, TINY)  # sums times 0 are still listed
    totals = sums.totals(least) + alpha * n_features
    nothing = totals < TINY
    scale = 1.0 / np.where(nothing, 1.0, totals)
    unseen = _unseen(scale, alpha, dtype)
    unseen[nothing] = np.asarray(-np.log(n_features), dtype=dtype)
    lengths = _lengths(sums, least)
    common = lengths * COMMON > k
    places = np.where(common, np.cumsum(common) - 1, -1).astype(np.int32)
    table = new_table(k, int(common.sum()), dtype)
    offsets = ends(np.where(common, 0, lengths))
    components, cells = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], dtype)
    pairs = sums.offsets, sums.components, sums.sums
    target = unseen, places, memory_of(table), offsets, components, cells

    def work(lo: int) -> None:
        hi = min(lo + WORDS, n_features)
        _compiled.fill_sparse(*pairs, alpha, scale, LOG_ZERO, least, lo, hi, *target)

    threads.spread(work, range(0, n_features, WORDS))
    return SparseTable(unseen, places, table, offsets, components, cells)


def _unseen(scale: Array, alpha: float, dtype: Any) -> Array:
    """Return the cell of a word without counts, of every component, to the bits of a dense one."""
    one = new_table(len(scale), 1, dtype)
    _compiled.fill_nothing(0, 1, alpha, scale, LOG_ZERO, memory_of(one))
    return one[:, 0].astype(np.float64)


def _lengths(sums: SparseSums, least: float) -> Array:
    """Return how many sums of each word are not below `least`."""
    if sums.sums.min(initial=np.inf) >= least:
        return np.diff(sums.offsets)
    kept = ends(sums.sums >= least)
    return np.diff(kept[sums.offsets])
