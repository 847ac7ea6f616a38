"""Sums of sparse rows under responsibilities, for some components at a time."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from coem.kernels import _compiled, threads
from coem.kernels.row_lists import RowLists
from coem.typing import CSR, Array, Resp

LANES = 8
ENTRIES = 4096  # fewest rows of a component that are worth sums of their own
PIECES = 10  # most such sums, besides one for each component: each is as wide as a row
CUTS = 8  # parts of the rows that are listed one by one
FEW = 2  # a component has few words if its rows have so many times fewer non-zeros than there are
FEWER = 3  # the same for all components together: lists of words take memory

_NATIVE = (np.float32, np.float64, np.int32, np.int64)

Triple = tuple[Array, Array, Array]


class Rows:
    """Rows with responsibilities, to be summed for `width` components at a time."""

    def __init__(self, X: CSR, resp: Resp) -> None:
        n, k = resp.shape
        if n != X.shape[0]:
            raise ValueError(f"{n} rows of responsibilities for {X.shape[0]} rows")
        self.X = X
        self.csr = csr_arrays(X, X.shape[1])
        self.k = k
        # Lists pay while a row has few components: one costs about 2/5 of eight in a tile.
        capacity = n * min(k, 5 * -(-k // LANES) // 2)
        if isinstance(resp, RowLists) and len(resp.values) <= capacity:
            self.lists, self.sparse = resp.by_component(), True
        else:
            self.resp = np.ascontiguousarray(resp)
            offsets, rows = np.empty(k + 1, np.int64), np.empty(capacity, np.int32)
            self.lists = offsets, rows, np.empty(capacity, resp.dtype)
            self.sparse = self._list_active()
        # A tile is eight wide. Lists can be any number; a quarter keeps the scratch memory small.
        self.width = LANES * max(1, k // (4 * LANES)) if self.sparse else LANES

    def _list_active(self) -> bool:
        """List the rows of every component, in their order; False if there are too many."""
        offsets, rows, weights = self.lists
        n, k = self.resp.shape
        cuts = list(pairwise(np.linspace(0, n, min(n, CUTS) + 1).astype(int).tolist()))
        counts = np.array(
            threads.spread(lambda cut: _compiled.count_active(self.resp[slice(*cut)]), cuts)
        ).reshape(-1, k)
        offsets[0] = 0
        np.cumsum(counts.sum(axis=0), out=offsets[1:])
        if offsets[-1] > len(rows):
            return False
        places = offsets[:-1] + np.cumsum(counts, axis=0) - counts  # (n_cuts, k)

        def work(part: int) -> None:
            first, last = cuts[part]
            _compiled.list_active(self.resp[first:last], first, places[part], rows, weights)

        threads.spread(work, range(len(cuts)))
        return True

    def with_few_words(self) -> Array:
        """Return which components have so few words that most of their sums are zero, (k,).

        A component that is summed in pieces does not count as one.
        """
        if not self.sparse:
            return np.zeros(self.k, dtype=bool)
        offsets, rows, _ = self.lists
        self.places = np.append(0, np.cumsum(np.diff(self.X.indptr)[rows[: offsets[-1]]]))
        self.places = self.places[offsets]  # where the words of each component would begin
        width, words = self.X.shape[1], np.diff(self.places)
        small = words * FEW <= width
        if words[small].sum() * FEWER > len(words) * width:
            small = words * FEWER <= width
        return np.asarray(small & (np.diff(offsets) <= self._step))

    @property
    def _step(self) -> int:
        """The most entries of a component that are summed at once."""
        return max(ENTRIES, -(-int(self.lists[0][-1]) // PIECES))

    def few(self, j: int, sums: Array) -> tuple[Array, Array, float]:
        """Return the words of a component, their sums and the total; `sums` are zero, and stay."""
        offsets, rows, weights = self.lists
        lo, hi = offsets[j], offsets[j + 1]
        words = np.empty(self.places[j + 1] - self.places[j], np.int32)
        n = _compiled.touch(*self.csr, rows, weights, lo, hi, sums, words)
        words, found = words[:n].copy(), np.empty(n)
        _compiled.collect(sums, words, found, n)
        return words, found, float(np.sum(found))

    def sums(self, first: int, last: int | None = None) -> Array:
        """Return the sums (m, n_features) of the components from `first` on, until next asked."""
        m = min(self.width, (self.k if last is None else last) - first)
        memory = threads.scratch("sums", (self.X.shape[1] * self.width,))
        if not self.sparse:
            return self._sum_tile(memory, first, m)
        sums = memory.reshape(self.width, -1)[:m]
        self._add_lists(sums, first, fresh=True)
        return sums

    def add_to(self, total: Array) -> None:
        """Add the sums of all components to `total` (k, n_features)."""
        if self.sparse:
            self._add_lists(total, 0, fresh=False)
            return
        for first in range(0, self.k, self.width):
            total[first : first + self.width] += self.sums(first)

    def _sum_tile(self, memory: Array, first: int, m: int) -> Array:
        """Sum all rows; threads divide the features."""
        tile = memory.reshape(-1, LANES)
        ordered = bool(self.X.has_sorted_indices)

        def work(cut: tuple[int, int]) -> None:
            lo, hi = cut
            _compiled.accumulate_tile(*self.csr, self.resp, first, first + m, lo, hi, ordered, tile)

        threads.spread(work, pairwise(_feature_cuts(self.X.indices, len(tile))))
        return tile.T[:m]

    def _add_lists(self, sums: Array, first: int, *, fresh: bool) -> None:
        """Add each component's own rows to its sums, from `first` on; if `fresh`, to zeros.

        Threads divide the components. A component with many rows is cut into pieces, and all but
        the first have sums of their own: one large component would keep one thread busy and the
        others idle.
        """
        offsets = self.lists[0].tolist()
        step = self._step
        spans = list(pairwise(offsets[first : first + len(sums) + 1]))
        pieces = [
            (j, lo, min(lo + step, end))
            for j, (start, end) in enumerate(spans)
            for lo in range(start, max(end, start + 1), step)  # at least one, to set zeros
        ]

        def work(piece: tuple[int, int, int]) -> Array | None:
            j, lo, hi = piece
            extra = None if lo == spans[j][0] else np.zeros(sums.shape[1])
            target = sums[j] if extra is None else extra
            if fresh and extra is None:
                target[...] = 0.0
            _compiled.accumulate_list(*self.csr, *self.lists[1:], lo, hi, target)
            return extra

        for (j, _, _), extra in zip(pieces, threads.spread(work, pieces), strict=True):
            if extra is not None:
                sums[j] += extra


def _feature_cuts(indices: Array, n_features: int) -> list[int]:
    """Return where to cut the features so that each thread meets about as many non-zeros."""
    n_parts = min(threads.n_workers(), n_features)
    sample = np.sort(indices[:: max(1, len(indices) // 4096)])
    places = [len(sample) * i // n_parts for i in range(1, n_parts)] if len(sample) else []
    return sorted({0, *sample[places].tolist(), n_features})


def csr_arrays(X: CSR, n_features: int) -> Triple:
    """Return the arrays of a CSR matrix, converting its values only if no kernel reads them."""
    if not sp.issparse(X) or X.format != "csr":
        raise TypeError("the kernels take CSR matrices")
    if X.shape[1] != n_features or n_features >= 2**31:
        raise ValueError(f"{X.shape[1]} features do not fit a table of {n_features}")
    data = X.data if X.data.dtype in _NATIVE else X.data.astype(np.float32)
    # No copies but of what is not one piece of memory.
    parts = (np.ascontiguousarray(part) for part in (X.indptr, X.indices, data))
    indptr, indices, values = parts
    return indptr, indices, values
