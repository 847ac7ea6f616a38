"""Rows that are kept in a folder, and read one part after the other.

A corpus holds more rows than fit in memory. Its folder has a manifest and some *shards*: rows that
follow each other, with the arrays of each view as ``.npy`` files, and the columns of the table that
they come from. A shard is mapped into memory when it is needed, and checked then.
`coem.io.corpus_writer` writes the folder; docs/corpora.md describes it.
"""

import hashlib
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from coem.sparse import shorten, sound_csr
from coem.stored import (
    INDICES,
    KEYS,
    READER,
    TABLE,
    StoredShard,
    StoredView,
    check_file,
    check_size,
    damaged,
    map_array,
    map_table,
    read_manifest,
    shard_name,
)
from coem.typing import CSR, Array, Matrix, is_sparse
from coem.views import Views

MOST_IN_MEMORY = 1 << 32  # bytes that `Corpus.load` takes without being asked


@dataclass(frozen=True)
class Shard:
    """Rows that follow each other, in a folder of their own."""

    folder: Path
    views: tuple[StoredView, ...]
    stored: StoredShard
    max_length: Mapping[str, float] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.stored.n_rows

    def read(self) -> Views:
        """Return the views, mapped into memory and checked."""
        matrices = {view.name: self._matrix(i, view) for i, view in enumerate(self.views)}
        for name, most in self.max_length.items():
            matrices[name] = shorten(matrices[name], most)
        return Views._of(matrices)

    @property
    def keys(self) -> Array:
        """A number for each row that stands for its content: see `coem.views.row_keys`."""
        return self._array(KEYS, (self.n_rows,), ("int64",))

    @property
    def n_bytes(self) -> int:
        """What the views take in memory."""
        return sum(self.stored.files[name].size for name in self.stored.files if _is_part(name))

    def table(self, columns: list[str] | None = None) -> Any:
        """Return columns of the rows as a `pyarrow.Table`, mapped into memory."""
        if TABLE not in self.stored.files:
            raise ValueError(f"{self.folder} has no table: its rows were written as views alone")
        table = map_table(self.folder / TABLE, self.stored.files[TABLE], self.n_rows)
        return table if columns is None else table.select(columns)

    def verify(self) -> None:
        """Compare all files with what was written."""
        for name, known in self.stored.files.items():
            check_file(self.folder / name, known)
        self.read()
        if TABLE in self.stored.files:
            self.table()

    def _matrix(self, number: int, view: StoredView) -> Matrix:
        shape = self.n_rows, view.width
        if not view.sparse:
            return self._array(f"{number}.values.npy", shape, (view.dtype,))
        indptr = self._array(f"{number}.indptr.npy", (self.n_rows + 1,), INDICES)
        indices = self._array(f"{number}.indices.npy", (None,), INDICES)
        data = self._array(f"{number}.data.npy", indices.shape, (view.dtype,))
        # Not by the constructor, which reads the arrays before they are checked.
        rows: Any = sp.csr_array(shape, dtype=data.dtype)
        rows.indptr, rows.indices, rows.data = indptr, indices, data
        return sound_csr(rows, f"corpus, {self.folder.name}, view {view.name!r}: ")

    def _array(self, name: str, shape: tuple[int | None, ...], dtypes: Any) -> Array:
        return map_array(self.folder / name, self.stored.files[name], shape, dtypes)


def _is_part(name: str) -> bool:
    return name[0].isdigit()


class Corpus:
    """Rows of one or several views in a folder; it takes the place of `X` in estimators.

    Parameters
    ----------
    path : path
        The folder, written by `coem ingest` or `coem.io.corpus_writer.CorpusWriter`.
    max_length : dict of str to float, optional
        For views of counts, the largest total of a row; longer rows are scaled down when they are
        read.

    Examples
    --------
    >>> from coem import open_corpus, MixtureClusterer  # doctest: +SKIP
    >>> model = MixtureClusterer(50).fit(open_corpus("posts.corpus"))  # doctest: +SKIP
    """

    def __init__(
        self, path: str | os.PathLike[str], *, max_length: Mapping[str, float] | None = None
    ) -> None:
        self.path = Path(path)
        self.manifest = read_manifest(self.path)
        self.views = self.manifest.views
        self.max_length = dict(max_length or {})
        unknown = [name for name in self.max_length if name not in self._sparse_names()]
        if unknown:
            raise ValueError(f"max_length: {self.path} has no view of counts {unknown[0]!r}")
        self.shards = tuple(
            Shard(self.path / shard_name(i), self.views, shard, self.max_length)
            for i, shard in enumerate(self.manifest.shards)
        )
        self.bounds = [0, *np.cumsum([shard.n_rows for shard in self.shards]).tolist()]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: other processes and machines open the folder themselves."""
        return _opened, (os.path.abspath(self.path), self.max_length)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the views, in order."""
        return tuple(view.name for view in self.views)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of every view."""
        return tuple(view.width for view in self.views)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of the columns of all views together."""
        return len(self), sum(self.widths)

    @property
    def n_bytes(self) -> int:
        """What the rows would take in memory."""
        return sum(shard.n_bytes for shard in self.shards)

    @cached_property
    def digest(self) -> str:
        """A number that stands for all that the corpus holds."""
        known = self.manifest.digest
        if not self.max_length:
            return known
        told = f"{known} {sorted(self.max_length.items())}"
        return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()

    # -- what the rows come from --

    @property
    def columns(self) -> list[str]:
        """The columns of the table that the rows come from; none if they were given as views."""
        if not self.shards or TABLE not in self.manifest.shards[0].files:
            return []
        return list(self.shards[0].table().column_names)

    def table(self, lo: int = 0, hi: int | None = None, columns: list[str] | None = None) -> Any:
        """Return columns of rows `lo` to `hi` as a `pyarrow.Table`, mapped into memory."""
        spans = self._spans(lo, len(self) if hi is None else hi)
        return pa.concat_tables([s.table(columns).slice(a, b - a) for s, a, b in spans])

    def take_table(self, rows: Array, columns: list[str] | None = None) -> Any:
        """Return columns of some rows as a `pyarrow.Table`, in the given order."""
        rows = np.asarray(rows)
        pieces = [shard.table(columns).take(pa.array(own)) for shard, own in self._owners(rows)]
        order = np.argsort(np.argsort(rows, kind="stable"), kind="stable")
        if not pieces:
            return self.table(0, 0, columns)
        return pa.concat_tables(pieces).take(pa.array(order))

    @property
    def ids(self) -> list[str]:
        """What the rows are called: their ids, or else their numbers from 1 on."""
        column = self.manifest.columns.get("id")
        if column is None:
            return [str(i + 1) for i in range(len(self))]
        values = self.table(columns=[column]).column(column).to_pylist()
        return ["" if value is None else str(value) for value in values]

    @property
    def labels(self) -> Array | None:
        """The label of every row as text, None where there is none; None if no column has them."""
        column = self.manifest.columns.get("label")
        if column is None:
            return None
        values = self.table(columns=[column]).column(column).to_pylist()
        found = [None if value in (None, "") else str(value) for value in values]
        return np.array(found, dtype=object)

    def texts(self, rows: Array) -> list[str]:
        """Return the texts of some rows: the columns of the views of text, below each other."""
        reader = self.text_views
        specs = [] if reader is None else reader.views_.values()
        names = [name for s in specs if s["kind"] in ("text", "embed") for name in s["columns"]]
        columns = list(dict.fromkeys(names))
        if not columns:
            return [""] * len(rows)
        found = self.take_table(rows, columns).to_pylist()
        return ["\n\n".join(str(row[name]) for name in columns if row[name]) for row in found]

    @cached_property
    def text_views(self) -> Any:
        """The fitted `coem.text.TextViews` that made the views, or None if they were given."""
        if READER not in self.manifest.files:
            return None
        path = self.path / READER
        check_size(path, self.manifest.files[READER])
        # By its name, because model files are made of all that is above this module.
        reader = import_module("coem.models").load(path)
        widths = {view: len(words) for view, words in getattr(reader, "vocabulary_", {}).items()}
        if widths != {view.name: view.width for view in self.views}:
            damaged(path, "has other views than the corpus")
        return reader

    def feature_names(self, view: str) -> Array | None:
        """Return the names of the columns of a view, or None if they are not known."""
        if view not in self.names:
            raise KeyError(f"no view {view!r}; there are {', '.join(map(repr, self.names))}")
        reader = self.text_views
        return None if reader is None else np.asarray(reader.get_feature_names_out(view))

    def shortened(self, max_length: Mapping[str, float]) -> "Corpus":
        """Return the corpus with the rows of some views of counts scaled down to a total.

        The rows are scaled when they are read, as `TextViews(max_length=...)` does.
        """
        return Corpus(self.path, max_length=max_length)

    def verify(self) -> None:
        """Read all files, and compare them with what was written.

        Raises
        ------
        ValueError
            If a file is not what it was. The message names it.
        """
        for name, known in self.manifest.files.items():
            check_file(self.path / name, known)
        for shard in self.shards:
            shard.verify()

    # -- rows --

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.bounds[-1])

    def __repr__(self) -> str:
        """Return the path, the views and the number of rows in one line."""
        views = ", ".join(f"{v.name!r} ({v.width} columns)" for v in self.views)
        return f"<Corpus {self.path} of {len(self)} rows: {views}>"

    def __getitem__(self, rows: Any) -> Views:
        """Return some rows in memory: a slice, an array of numbers, or a mask."""
        return self.take(np.arange(len(self))[rows])

    def rows(self, lo: int, hi: int) -> Views:
        """Return rows `lo` to `hi`; those of one shard are mapped and not copied."""
        pieces = [shard.read()[a:b] for shard, a, b in self._spans(lo, hi)]
        return pieces[0] if len(pieces) == 1 else stacked(pieces)

    def take(self, rows: Array) -> Views:
        """Return copies of some rows, in the given order."""
        rows = np.asarray(rows)
        pieces = [shard.read()[own] for shard, own in self._owners(rows)]
        if not pieces:
            return stacked([shard.read()[:0] for shard in self.shards[:1]])
        order = np.argsort(rows, kind="stable")
        return stacked(pieces)[np.argsort(order, kind="stable")]

    def sample(self, n: int, seed: int = 0) -> Array:
        """Return the numbers of `n` rows, drawn by their content, in order.

        The order of the rows in the corpus has no effect on which rows are drawn.
        """
        best = np.empty(0, np.uint64), np.empty(0, np.int64)
        for shard, lo in zip(self.shards, self.bounds[:-1], strict=True):
            lots = _lots(shard.keys, seed)
            lots, rows = (
                np.concatenate(pair)
                for pair in zip(best, (lots, lo + np.arange(shard.n_rows)), strict=True)
            )
            kept = np.lexsort((rows, lots))[:n]
            best = lots[kept], rows[kept]
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
                f"{what} needs all rows in memory, and those of {self.path} take "
                f"{self.n_bytes / 1e9:.1f} GB; take some of them, such as "
                "corpus[corpus.sample(100_000)], or use MixtureClusterer, which reads a part at a "
                "time"
            )
        return stacked([shard.read() for shard in self.shards])

    def _owners(self, rows: Array) -> Iterator[tuple[Shard, Array]]:
        """Return the shards that hold some rows, and which of their rows, in order."""
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"rows are numbered from 0 to {len(self) - 1}")
        ordered = np.sort(rows, kind="stable")
        for shard, (lo, hi) in zip(self.shards, pairwise(self.bounds), strict=True):
            first, last = np.searchsorted(ordered, [lo, hi])
            if last > first:
                yield shard, ordered[first:last] - lo

    def _sparse_names(self) -> list[str]:
        return [view.name for view in self.views if view.sparse]

    def _spans(self, lo: int, hi: int) -> Iterator[tuple[Shard, int, int]]:
        """Return the shards that hold rows `lo` to `hi`, and which of their rows."""
        first = bisect_right(self.bounds, lo) - 1
        for shard, begin in zip(self.shards[first:], self.bounds[first:], strict=False):
            if begin >= hi and begin > lo:
                return
            yield shard, max(lo - begin, 0), min(hi - begin, shard.n_rows)


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


def _lots(keys: Array, seed: int) -> Array:
    """Return random numbers that depend on the content of rows alone (splitmix64)."""
    with np.errstate(over="ignore"):
        z = keys.view(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))


def _opened(path: str, max_length: Mapping[str, float]) -> Corpus:
    return Corpus(path, max_length=max_length)
