"""Rows that are kept elsewhere, one shard after the other: in a folder, or on other machines."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any, Protocol, Self, TypeAlias, overload

import numpy as np
import scipy.sparse as sp

from coem.checks import check_number
from coem.typing import CSR, Array, Matrix, Rows, is_sparse
from coem.views import Views

Job: TypeAlias = tuple[int, tuple[Any, ...]]  # the number of a shard, and arguments
MOST_IN_MEMORY = 1 << 32  # bytes that `RowStore.load` takes without being asked


class AnyShard(Protocol):
    """Some rows of a `RowStore` that follow each other. It can be pickled."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_bytes(self) -> int:
        """What the rows take in memory."""

    @property
    def keys(self) -> Array:
        """A number for each row that stands for its content: see `coem.views.row_keys`."""

    def read(self) -> Views:
        """Return the rows."""

    def read_rows(self, rows: Rows) -> Views:
        """Return some of the rows."""

    def load(self) -> Views:
        """Return what `read` returns: a shard is a `coem.protocols.Stored`."""

    def content(self) -> list[Any]:
        """Return what stands for the rows."""


class RowStore(ABC):
    """Rows of one or several views that are kept elsewhere, a shard after the other.

    It takes the place of `X` in estimators: `Corpus` is a folder, `coem.engine.dask_rows.DaskRows`
    are blocks on the workers of a cluster.
    """

    shards: Sequence[Any]  # of `AnyShard`
    bounds: list[int]  # the first row of every shard, and the number of rows

    @property
    @abstractmethod
    def digest(self) -> str:
        """What stands for all that the store holds."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the views, in order."""

    @property
    @abstractmethod
    def widths(self) -> tuple[int, ...]:
        """The number of columns of every view."""

    @abstractmethod
    def some_views(self, names: Sequence[str]) -> Any:
        """Return the same rows in some views, in the given order."""

    @abstractmethod
    def _each(self, function: Callable[..., Any], jobs: Sequence[Job]) -> Iterator[Any]:
        """Yield ``function(shard, *arguments)`` for jobs, computed where the shards are."""

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of the columns of all views together."""
        return len(self), sum(self.widths)

    @property
    def n_bytes(self) -> int:
        """What the rows would take in memory."""
        return sum(shard.n_bytes for shard in self.shards)

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.bounds[-1])

    @overload
    def __getitem__(self, key: list[str]) -> Self: ...
    @overload
    def __getitem__(self, key: Rows) -> Views: ...

    def __getitem__(self, key: Any) -> "Self | Views":
        """Return a store of some views (a list of names), or some rows (any other key)."""
        if isinstance(key, list) and key and all(isinstance(name, str) for name in key):
            same: Self = self if tuple(key) == self.names else self.some_views(key)
            return same
        return self.take(np.atleast_1d(np.arange(len(self))[key]))

    def rows(self, lo: int, hi: int) -> Views:
        """Return rows `lo` to `hi`; all rows of one shard of a corpus are mapped and not copied."""
        pieces = [
            shard.read() if b - a == shard.n_rows else shard.read_rows(slice(a, b))
            for shard, a, b in self._spans(lo, hi)
        ]
        if not pieces:
            return self.take(np.arange(0))
        return pieces[0] if len(pieces) == 1 else stacked(pieces)

    def take(self, rows: Array) -> Views:
        """Return copies of some rows, in the given order."""
        rows = np.asarray(rows)
        jobs: list[Job] = [(number, (own,)) for number, own in self._owners(rows)]
        if not jobs:
            jobs.append((0, (slice(0, 0),)))
        found = stacked(list(self._each(_taken, jobs)))
        if bool((rows[1:] >= rows[:-1]).all()):
            return found
        return found[np.argsort(np.argsort(rows, kind="stable"), kind="stable")]

    def sample(self, n: int, seed: int = 0, among: Array | None = None) -> Array:
        """Return the numbers of `n` rows, drawn by their content, in order; all if there are fewer.

        The order of the rows in the store has no effect on which rows are drawn. `among` are the
        numbers of the rows to draw from, in order; by default all rows.
        """
        check_number("n", n, Integral, 0)
        jobs: list[Job] = []
        for number, (lo, hi) in enumerate(pairwise(self.bounds)):
            own = None if among is None else among[slice(*np.searchsorted(among, [lo, hi]))] - lo
            jobs.append((number, (own, seed, n)))
        best = np.empty(0, np.uint64), np.empty(0, np.int64)
        for lo, (drawn, rows) in zip(self.bounds[:-1], self._each(_drawn, jobs), strict=True):
            best = np.concatenate([best[0], drawn]), np.concatenate([best[1], rows + lo])
            kept = np.lexsort(best[::-1])[:n]
            best = best[0][kept], best[1][kept]
        return np.sort(best[1])

    def load(self, most: int | None = None, *, what: str = "this model") -> Views:
        """Return all rows in memory.

        `most` is by default 2**32, and `what` needs the rows.

        Raises
        ------
        ValueError
            If they would take more than `most` bytes.
        """
        most = MOST_IN_MEMORY if most is None else most
        if self.n_bytes > most:
            raise ValueError(
                f"{what} needs all rows in memory, and those of {self!r} take "
                f"{self.n_bytes / 1e9:.1f} GB, more than the {most / 1e9:.1f} GB that are loaded "
                "without being asked; give it a sample of the rows, X[X.sample(100_000)], or use "
                "MixtureClusterer, MixtureClassifier, PooledClassifier, HiddenMarkovModel or "
                "SphericalKMeans, which read a part at a time; X.load(most=...) loads more"
            )
        return stacked([shard.read() for shard in self.shards])

    def _owners(self, rows: Array) -> Iterator[tuple[int, Array]]:
        """Yield the numbers of the shards that hold some rows, and these rows, in order."""
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"rows are numbered from 0 to {len(self) - 1}")
        ordered = np.sort(rows, kind="stable")
        for number, (lo, hi) in enumerate(pairwise(self.bounds)):
            first, last = np.searchsorted(ordered, [lo, hi])
            if last > first:
                yield number, ordered[first:last] - lo

    def _spans(self, lo: int, hi: int) -> Iterator[tuple[Any, int, int]]:
        """Yield the shards that hold rows `lo` to `hi`, and which of their rows."""
        first = bisect_right(self.bounds, lo) - 1
        for shard, begin in zip(self.shards[first:], self.bounds[first:], strict=False):
            if begin >= hi and begin > lo:
                return
            yield shard, max(lo - begin, 0), min(hi - begin, shard.n_rows)


def stacked(pieces: Sequence[Views]) -> Views:
    """Return the rows of several views with the same names, one below the other, copied."""
    return Views._of({name: below([p[name] for p in pieces]) for name in pieces[0].names})


def below(parts: Sequence[Matrix]) -> Matrix:
    """Return the rows of several matrices of the same kind, one below the other, copied."""
    if is_sparse(parts[0]):
        rows: CSR = sp.vstack(parts, format="csr")
        return rows
    return np.concatenate([np.asarray(part) for part in parts])


def lots(keys: Array, seed: int = 0) -> Array:
    """Return random numbers, uint64, that depend on 64-bit keys alone (splitmix64)."""
    with np.errstate(over="ignore"):
        z = keys.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def _taken(shard: AnyShard, rows: Any) -> Views:
    """Return copies of some rows of a shard."""
    return shard.read_rows(rows)


def _drawn(shard: AnyShard, among: Array | None, seed: int, n: int) -> tuple[Array, Array]:
    """Return the lots of the `n` rows of a shard that are drawn first, and their numbers."""
    own = np.arange(shard.n_rows) if among is None else among
    drawn = lots(shard.keys[own], seed)
    kept = np.lexsort((own, drawn))[:n]
    return drawn[kept], own[kept]
