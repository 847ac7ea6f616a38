"""Rows that are kept in a folder, and read one part after the other.

A corpus holds more rows than fit in memory. Its folder has a manifest and some *shards*: rows that
follow each other, with the arrays of each view as ``.npy`` files. A shard is mapped into memory
when it is needed, and checked then. `coem.io.corpus_writer` writes the folder.
"""

import json
import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias, overload

import numpy as np
import scipy.sparse as sp

from coem.sparse import sound_csr
from coem.typing import CSR, Array, Matrix, Rows, is_sparse
from coem.views import Views

MANIFEST = "corpus.json"
SCHEMA = 1
Job: TypeAlias = tuple[int, tuple[Any, ...]]  # the number of a shard, and arguments
MOST_IN_MEMORY = 1 << 32  # bytes that `Corpus.load` takes without being asked


@dataclass(frozen=True)
class StoredView:
    """What a corpus says of one view."""

    name: str
    width: int
    sparse: bool
    dtype: str


@dataclass(frozen=True)
class Shard:
    """Rows that follow each other, in a folder of their own."""

    folder: Path
    n_rows: int
    views: tuple[StoredView, ...]

    def read(self) -> Views:
        """Return the views, mapped into memory and checked."""
        return Views._of({view.name: self._matrix(view) for view in self.views})

    def load(self) -> Views:
        """Return what `read` returns: a shard is a `coem.protocols.Stored`."""
        return self.read()

    def content(self) -> list[Any]:
        """Return what stands for the rows."""
        return [self]

    @property
    def keys(self) -> Array:
        """A number for each row that stands for its content: see `coem.views.row_keys`."""
        return self._array("keys", (self.n_rows,))

    @property
    def n_bytes(self) -> int:
        """What the views take in memory."""
        return sum(path.stat().st_size for v in self.views for path in self._files(v))

    def _files(self, view: StoredView) -> list[Path]:
        names = ("indptr", "indices", "data") if view.sparse else ("values",)
        return [self.folder / f"{view.name}.{part}.npy" for part in names]

    def _matrix(self, view: StoredView) -> Matrix:
        shape = self.n_rows, view.width
        if not view.sparse:
            return self._array(f"{view.name}.values", shape)
        indptr = self._array(f"{view.name}.indptr", (self.n_rows + 1,))
        indices = self._array(f"{view.name}.indices", None)
        data = self._array(f"{view.name}.data", indices.shape)
        # Not by the constructor, which reads the arrays before they are checked.
        rows: Any = sp.csr_matrix(shape, dtype=data.dtype)
        rows.indptr, rows.indices, rows.data = indptr, indices, data
        return sound_csr(rows, f"corpus, {self.folder.name}, view {view.name!r}: ")

    def _array(self, name: str, shape: tuple[int, ...] | None) -> Array:
        path = self.folder / f"{name}.npy"
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise ValueError(f"the corpus is damaged: {path} cannot be read ({error})") from error
        if shape is not None and array.shape != shape:
            raise ValueError(
                f"the corpus is damaged: {path} has the shape {array.shape} and not {shape}"
            )
        return np.asarray(array)


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
        """A number for each row that stands for its content."""

    def read(self) -> Views:
        """Return the rows."""

    def load(self) -> Views:
        """Return the rows."""

    def content(self) -> list[Any]:
        """Return what stands for the rows."""


class RowStore(ABC):
    """Rows of one or several views that are kept elsewhere, a shard after the other.

    It takes the place of `X` in estimators: `Corpus` is a folder, `coem.engine.dask_rows.DaskRows`
    are blocks on the workers of a cluster.
    """

    shards: Sequence[Any]  # of `AnyShard`
    bounds: list[int]  # the first row of every shard, and the number of rows
    digest: str  # stands for all that the store holds

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the views, in order."""

    @property
    @abstractmethod
    def widths(self) -> tuple[int, ...]:
        """The number of columns of every view."""

    @abstractmethod
    def some_views(self, names: Sequence[str]) -> Self:
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
            return self if tuple(key) == self.names else self.some_views(key)
        return self.take(np.arange(len(self))[key])

    def rows(self, lo: int, hi: int) -> Views:
        """Return rows `lo` to `hi`; those of one shard are mapped and not copied."""
        pieces = [shard.read()[a:b] for shard, a, b in self._spans(lo, hi)]
        return pieces[0] if len(pieces) == 1 else stacked(pieces)

    def take(self, rows: Array) -> Views:
        """Return copies of some rows, in the given order."""
        rows = np.asarray(rows)
        order = np.argsort(rows, kind="stable")
        jobs: list[Job] = []
        for number, (lo, hi) in enumerate(pairwise(self.bounds)):
            first, last = np.searchsorted(rows[order], [lo, hi])
            if last > first:
                jobs.append((number, (rows[order[first:last]] - lo,)))
        if not jobs:
            jobs.append((0, (np.empty(0, np.int64),)))
        return stacked(list(self._each(_taken, jobs)))[np.argsort(order, kind="stable")]

    def sample(self, n: int, seed: int = 0, among: Array | None = None) -> Array:
        """Return the numbers of `n` rows, drawn by their content, in order; all if there are fewer.

        The order of the rows in the store has no effect on which rows are drawn. `among` are the
        numbers of the rows to draw from, in order; by default all rows.
        """
        jobs: list[Job] = []
        for number, (lo, hi) in enumerate(pairwise(self.bounds)):
            own = None if among is None else among[slice(*np.searchsorted(among, [lo, hi]))] - lo
            jobs.append((number, (own, seed, n)))
        best = np.empty(0, np.uint64), np.empty(0, np.int64)
        for lo, (lots, rows) in zip(self.bounds[:-1], self._each(_drawn, jobs), strict=True):
            best = np.concatenate([best[0], lots]), np.concatenate([best[1], rows + lo])
            kept = np.lexsort(best[::-1])[:n]
            best = best[0][kept], best[1][kept]
        return np.sort(best[1])

    def load(self, most: int = MOST_IN_MEMORY, *, what: str = "this model") -> Views:
        """Return all rows in memory.

        Raises
        ------
        ValueError
            If they would take more than `most` bytes.
        """
        if self.n_bytes > most:
            raise ValueError(
                f"{what} needs all rows in memory, and those of {self!r} take "
                f"{self.n_bytes / 1e9:.1f} GB; take some of them, such as "
                "X[X.sample(100_000)], or use MixtureClusterer, which reads a part at a time"
            )
        return stacked([shard.read() for shard in self.shards])

    def _spans(self, lo: int, hi: int) -> Iterator[tuple[AnyShard, int, int]]:
        """Return the shards that hold rows `lo` to `hi`, and which of their rows."""
        first = bisect_right(self.bounds, lo) - 1
        for shard, begin in zip(self.shards[first:], self.bounds[first:], strict=False):
            if begin >= hi and begin > lo:
                return
            yield shard, max(lo - begin, 0), min(hi - begin, shard.n_rows)


class Corpus(RowStore):
    """Rows of one or several views in a folder; it takes the place of `X` in estimators.

    Parameters
    ----------
    path : path
        The folder, written by `coem ingest` or `coem.io.corpus_writer.CorpusWriter`.
    names : sequence of str, optional
        The views to read, in this order; by default all of them.

    Examples
    --------
    >>> from coem import open_corpus, MixtureClusterer  # doctest: +SKIP
    >>> model = MixtureClusterer(50).fit(open_corpus("posts.corpus"))  # doctest: +SKIP
    """

    def __init__(self, path: str | os.PathLike[str], names: Sequence[str] | None = None) -> None:
        self.path = Path(path)
        self.manifest = _read_manifest(self.path)
        known = {view["name"]: StoredView(**view) for view in self.manifest["views"]}
        self.views = tuple(known[name] for name in names or known)
        folder = self.path.absolute()  # other processes may have another working directory
        self.shards = tuple(
            Shard(folder / shard["name"], shard["n_rows"], self.views)
            for shard in self.manifest["shards"]
        )
        self.bounds = [0, *np.cumsum([shard.n_rows for shard in self.shards]).tolist()]
        self.digest = str(self.manifest["digest"])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: other processes and machines open the folder themselves."""
        return Corpus, (os.path.abspath(self.path), self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the views, in order."""
        return tuple(view.name for view in self.views)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of every view."""
        return tuple(view.width for view in self.views)

    def __repr__(self) -> str:
        """Return the path, the views and the number of rows in one line."""
        views = ", ".join(f"{v.name!r} ({v.width} columns)" for v in self.views)
        return f"<Corpus {self.path} of {len(self)} rows: {views}>"

    def some_views(self, names: Sequence[str]) -> "Corpus":
        """Return the same rows in some views, in the given order."""
        return Corpus(self.path, names)

    def _each(self, function: Callable[..., Any], jobs: Sequence[Job]) -> Iterator[Any]:
        return (function(self.shards[number], *arguments) for number, arguments in jobs)


def open_corpus(path: str | os.PathLike[str]) -> Corpus:
    """Return the corpus in a folder, which estimators take in the place of `X`."""
    return Corpus(path)


def stacked(pieces: list[Views]) -> Views:
    """Return the rows of several views with the same names, one below the other, copied."""
    return Views._of({name: _below([p[name] for p in pieces]) for name in pieces[0].names})


def _below(parts: list[Matrix]) -> Matrix:
    if is_sparse(parts[0]):
        rows: CSR = sp.vstack(parts, format="csr")
        return rows
    return np.concatenate([np.asarray(part) for part in parts])


def _taken(shard: AnyShard, rows: Array) -> Views:
    """Return copies of some rows of a shard."""
    return shard.read()[rows]


def _drawn(shard: AnyShard, among: Array | None, seed: int, n: int) -> tuple[Array, Array]:
    """Return the lots of the `n` rows of a shard that are drawn first, and their numbers."""
    own = np.arange(shard.n_rows) if among is None else among
    lots = _lots(shard.keys[own], seed)
    kept = np.lexsort((own, lots))[:n]
    return lots[kept], own[kept]


def _lots(keys: Array, seed: int) -> Array:
    """Return random numbers that depend on the content of rows alone (splitmix64)."""
    with np.errstate(over="ignore"):
        z = keys.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def _read_manifest(path: Path) -> Mapping[str, Any]:
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path} is not a corpus ({error}); write one with `coem ingest`"
        ) from error
    if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
        raise ValueError(f"{path} is a corpus of another version of coem; ingest it again")
    return manifest
