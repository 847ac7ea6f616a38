"""Sums of sparse rows that list the words of each component, and no zeros."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.kernels import _compiled, threads
from coem.kernels.row_lists import RowLists
from coem.kernels.summing import csr_arrays
from coem.typing import CSR, Array, Resp

PART = 1 << 22  # non-zeros that one task brings into the order of the words
CHUNK = 1 << 20  # pairs that one task looks at
CUTS = 8  # most parts of the rows in which words are counted
FULL = 8  # non-zeros a word of such a part


@dataclass(frozen=True)
class SparseSums:
    """Sums (n_components, n_features). You can use them like the array of mostly zeros.

    They have the operations of statistics, and some that an M step needs: ``a + b``, ``a * c``,
    ``a.sum(axis=1)``, ``a[components]`` (a slice), ``a[:, words]``. ``np.asarray(a)`` is the dense
    array.

    Parameters
    ----------
    offsets : int64 array of shape (n_features + 1,)
        Word `w` has the pairs from ``offsets[w]`` to ``offsets[w + 1]``.
    components : int32 array
        The component of each pair; those of a word are in order.
    sums : float64 array
        The sum of each pair.
    n_components : int
        The number of components k.
    """

    offsets: Array
    components: Array
    sums: Array
    n_components: int

    @classmethod
    def of(cls, X: CSR, resp: Resp) -> "SparseSums":
        """Return ``resp.T @ X``.

        The rows of a word are added in their order, so that no bit depends on the threads.
        """
        if resp.shape[0] != X.shape[0]:
            raise ValueError(f"{resp.shape[0]} rows of responsibilities for {X.shape[0]} rows")
        lists, csr, k = row_lists(resp), csr_arrays(X, X.shape[1]), resp.shape[1]
        offsets = np.ascontiguousarray(lists.offsets)
        by_row = offsets, lists.components, lists.values
        entries, room = _count_words(csr, offsets, X.shape[1])
        np.minimum(room, k, out=room)
        ordered = bool(X.has_sorted_indices)

        def work(cut: tuple[int, int]) -> tuple[Array, Array, Array]:
            lo, hi = cut
            found, most = np.empty(hi - lo, np.int64), int(room[lo:hi].sum())
            owners, sums = np.empty(most, np.int32), np.empty(most)
            n = _compiled.sum_words(
                *csr, *by_row, lo, ordered, entries[lo:hi], k, found, owners, sums
            )
            return found, owners[:n].copy(), sums[:n].copy()

        parts = threads.spread(work, list(pairwise(_cuts(entries))))
        found, owners, sums = (joined([part[i] for part in parts]) for i in range(3))
        return cls(ends(found), owners.astype(np.int32), sums.astype(np.float64), k)

    @classmethod
    def of_dense(cls, sums: Array) -> "SparseSums":
        """Return an array without its zeros."""
        csr = sp.csr_matrix(np.asarray(sums, dtype=np.float64).T)
        return cls.of_words(csr)

    @classmethod
    def of_words(cls, words: Any) -> "SparseSums":
        """Return the sums of a CSR matrix (n_features, n_components)."""
        words.sort_indices()
        offsets, components = words.indptr.astype(np.int64), words.indices.astype(np.int32)
        return cls(offsets, components, words.data, words.shape[1])

    def check(self) -> None:
        """Raise unless the arrays fit each other, for those of a file."""
        check_lists(self.offsets, self.components, self.sums, self.n_components)
        if self.sums.dtype != np.float64:
            raise ValueError("sparse sums must be float64")

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the dense array."""
        return self.n_components, len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return self.offsets.nbytes + self.components.nbytes + self.sums.nbytes

    def words(self) -> Any:
        """Return the sums as a CSR matrix (n_features, n_components)."""
        # Not the constructor, which would look for the smallest type of indices.
        csr = sp.csr_matrix(self.shape[::-1])
        few = len(self.sums) <= np.iinfo(np.int32).max  # SciPy would make both arrays int64
        offsets = self.offsets.astype(np.int32) if few else self.offsets
        csr.data, csr.indices, csr.indptr = self.sums, self.components, offsets
        return csr

    def __add__(self, other: "SparseSums | Array") -> "SparseSums":
        """Return the sums of both."""
        other = other if isinstance(other, SparseSums) else self.of_dense(other)
        return self.of_words(self.words() + other.words())

    __radd__ = __add__
    __array_ufunc__ = None  # so that NumPy leaves ``array + sums`` to this class

    def __mul__(self, factor: float) -> "SparseSums":
        """Return the sums times a number."""
        return SparseSums(self.offsets, self.components, self.sums * factor, self.n_components)

    def beside(self, other: "SparseSums | Array") -> "SparseSums":
        """Return the sums of more components: those of `other` come after its own."""
        other = other if isinstance(other, SparseSums) else self.of_dense(other)
        return self.of_words(sp.hstack([self.words(), other.words()], format="csr"))

    def sum(self, axis: int) -> Array:
        """Return the total of each component (k,); `axis` must be 1."""
        return self.totals(-np.inf)

    def totals(self, least: float) -> Array:
        """Return the total of each component (k,), without sums below `least`."""

        def work(lo: int) -> Array:
            sums, owners = self.sums[lo : lo + CHUNK], self.components[lo : lo + CHUNK]
            sums = np.where(sums >= least, sums, 0.0)
            return np.bincount(owners, sums, minlength=self.n_components)

        return np.asarray(threads.add_up(work, range(0, max(len(self.sums), 1), CHUNK)))

    def any(self, axis: None = None, out: None = None) -> bool:
        """Return whether any sum is not zero."""
        return bool(self.sums.any())

    def __getitem__(self, key: Any) -> Any:
        """Return sums of some components, or with ``[:, words]`` those of some words, an array."""
        if isinstance(key, tuple):
            return self.words()[key[1]].toarray().T
        return self.of_words(self.words()[:, key])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the dense array."""
        if copy is False:
            raise ValueError("SparseSums has no dense array to share")
        dense: Array = self.words().toarray().T
        return dense if dtype is None else dense.astype(dtype)


def row_lists(resp: Resp) -> RowLists:
    """Return responsibilities as lists."""
    if isinstance(resp, RowLists):
        return resp
    resp = np.asarray(resp)
    n, k = resp.shape
    step = max(1, CHUNK // k)

    def work(lo: int) -> RowLists:
        part = resp[lo : lo + step]
        places = np.flatnonzero(part)
        rows, components = np.divmod(places, k)
        counts = np.bincount(rows, minlength=len(part))
        return RowLists(ends(counts), components.astype(np.int32), part.ravel()[places], k)

    return RowLists.joined(threads.spread(work, range(0, max(n, 1), step)))


def check_lists(offsets: Array, components: Array, values: Array, k: int) -> None:
    """Raise unless arrays list components below `k` for each word, each once and in order."""
    for array, kind in ((offsets, np.int64), (components, np.int32)):
        if not (isinstance(array, np.ndarray) and array.dtype == kind and array.ndim == 1):
            raise ValueError("the lists of a sparse table have other types")
    n = len(components)
    whole = isinstance(values, np.ndarray) and values.shape == (n,) and type(k) is int
    if not whole or not len(offsets) or offsets[0] != 0 or offsets[-1] != n:
        raise ValueError("the lists of a sparse table have other lengths")
    if (np.diff(offsets) < 0).any():
        raise ValueError("the lists of a sparse table are not in order")
    if n and not 0 <= components.min() <= components.max() < k:
        raise ValueError("the lists of a sparse table name components that are not there")
    rising = np.diff(components) > 0
    edges = offsets[1:-1]
    rising[edges[(edges > 0) & (edges < n)] - 1] = True
    if not rising.all():
        raise ValueError("the lists of a sparse table are not in order")


def ends(counts: Array) -> Array:
    """Return where each of some pieces begins, and where the last one ends."""
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def joined(parts: Sequence[Array]) -> Array:
    """Return arrays one after the other."""
    return np.concatenate(parts) if parts else np.empty(0)


def _count_words(csr: Any, offsets: Array, n_features: int) -> tuple[Array, Array]:
    """Return in how many rows each word is, and how many components these rows have."""
    indptr, indices, data = csr
    n = len(indptr) - 1

    def work(cut: tuple[int, int]) -> Array:
        counts = np.zeros((2, n_features), dtype=np.int64)
        rows = slice(cut[0], cut[1] + 1)
        _compiled.count_words(indptr[rows], indices, data, offsets[rows], counts[0], counts[1])
        return counts

    # Each part has counts of all words, which should be few beside its non-zeros.
    n_cuts = min(max(len(indices) // (FULL * max(n_features, 1)), 1), CUTS)
    cuts = np.unique(np.linspace(0, n, n_cuts + 1).astype(int)).tolist()
    counts = threads.add_up(work, list(pairwise(cuts)))
    return (counts[0], counts[1]) if counts is not None else (np.zeros(n_features, np.int64),) * 2


def _cuts(entries: Array) -> list[int]:
    """Return where to cut the words, so that the parts have about as many non-zeros."""
    total = np.cumsum(entries)
    n_parts = max(2 * threads.n_workers(), -(-int(total[-1]) // PART)) if len(total) else 1
    aims = [int(total[-1]) * i // n_parts for i in range(1, n_parts)] if len(total) else []
    places = np.searchsorted(total, aims, side="right")
    return sorted({0, *places.tolist(), len(entries)})
