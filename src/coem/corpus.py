"""Rows that are kept in a folder, and read one part after the other.

A corpus holds more rows than fit in memory. Its folder has a manifest and some *shards*: rows that
follow each other, with the arrays of each view as ``.npy`` files, and the columns of the table that
they come from. A shard is mapped into memory when it is needed, and checked then.
`coem.io.corpus_writer` writes the folder; docs/corpora.md describes it.
"""

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from coem.row_store import Job, RowStore
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
from coem.typing import CSR, Array, Matrix, Rows
from coem.views import Views

_sound: dict[tuple[Path, str], Any] = {}  # views of shards that were checked, and their stamps


@dataclass(frozen=True)
class Shard:
    """Rows that follow each other, in a folder of their own."""

    folder: Path
    views: tuple[StoredView, ...]
    stored: StoredShard
    max_length: Mapping[str, float] = field(default_factory=dict)
    places: tuple[int, ...] | None = None  # of the views among all views; None if all are there

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.stored.n_rows

    def read(self) -> Views:
        """Return the views, mapped into memory and checked."""
        places = range(len(self.views)) if self.places is None else self.places
        pairs = zip(places, self.views, strict=True)
        matrices = {view.name: self._matrix(place, view) for place, view in pairs}
        for name in self.max_length.keys() & matrices.keys():
            matrices[name] = shorten(matrices[name], self.max_length[name])
        return Views._of(matrices)

    def read_rows(self, rows: Rows) -> Views:
        """Return some rows of the views."""
        return self.read()[rows]

    def load(self) -> Views:
        """Return what `read` returns: a shard is a `coem.protocols.Stored`."""
        return self.read()

    def content(self) -> list[Any]:
        """Return what stands for the rows."""
        return [self]

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
        if columns is None:
            return table
        gone = [name for name in columns if table.column_names.count(name) != 1]
        if gone:
            damaged(self.folder / TABLE, f"does not have one column {gone[0]!r:.60}")
        return table.select(columns)

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
        names = [f"{number}.{part}.npy" for part in view.parts]
        stamp = [_stamp(self.folder / name) for name in names]
        if _sound.get((self.folder, view.name)) == stamp:
            rows.has_canonical_format = True
            known: CSR = rows
            return known
        try:
            sound = sound_csr(rows)
        except ValueError as error:
            self._tell_damage(names, view, error)
        if sound is rows:
            _sound[self.folder, view.name] = stamp
        return sound

    def _tell_damage(self, names: Sequence[str], view: StoredView, error: ValueError) -> NoReturn:
        """Raise an error that names which file of a view was changed."""
        for name in names:
            check_file(self.folder / name, self.stored.files[name])
        why = f"{error.__cause__ or error!s:.120}"  # without the advice for makers of matrices
        damaged(self.folder / names[0], f"does not fit other files of view {view.name!r} ({why})")

    def _array(self, name: str, shape: tuple[int | None, ...], dtypes: Any) -> Array:
        return map_array(self.folder / name, self.stored.files[name], shape, dtypes)


def _is_part(name: str) -> bool:
    return name[0].isdigit()


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes if a file is written to."""
    info = os.stat(path)
    return info.st_ino, info.st_size, info.st_mtime_ns


class Corpus(RowStore):
    """Rows of one or several views in a folder; it takes the place of `X` in estimators.

    Parameters
    ----------
    path : path
        The folder, written by `coem ingest` or `coem.io.corpus_writer.CorpusWriter`.
    names : sequence of str, optional
        The views to read, in this order; by default all of them.
    max_length : dict of str to float, optional
        For views of counts, the largest total of a row; longer rows are scaled down when they are
        read.

    Examples
    --------
    >>> from coem import open_corpus, MixtureClusterer  # doctest: +SKIP
    >>> model = MixtureClusterer(50).fit(open_corpus("posts.corpus"))  # doctest: +SKIP
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        names: Sequence[str] | None = None,
        *,
        max_length: Mapping[str, float] | None = None,
    ) -> None:
        self.path = Path(path)
        self.manifest = read_manifest(self.path)
        known = {view.name: (i, view) for i, view in enumerate(self.manifest.views)}
        places, self.views = zip(*(known[name] for name in names or known), strict=True)
        self.max_length = dict(max_length or {})
        sparse = [view.name for view in self.manifest.views if view.sparse]
        unknown = [name for name in self.max_length if name not in sparse]
        if unknown:
            raise ValueError(f"max_length: {self.path} has no view of counts {unknown[0]!r}")
        folder = self._folder
        self.shards = tuple(
            Shard(folder / shard_name(i), self.views, shard, self.max_length, places)
            for i, shard in enumerate(self.manifest.shards)
        )
        self.bounds = [0, *np.cumsum([shard.n_rows for shard in self.shards]).tolist()]

    @property
    def _folder(self) -> Path:
        """Where the files are: a path may lead there through a link, or from another folder."""
        return Path(os.path.realpath(self.path))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: other processes and machines open the folder themselves."""
        return _opened, (os.path.abspath(self.path), self.names, self.max_length)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the views, in order."""
        return tuple(view.name for view in self.views)

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of every view."""
        return tuple(view.width for view in self.views)

    @property
    def digest(self) -> str:
        """A number that stands for all that the corpus holds."""
        known = self.manifest.digest
        if not self.max_length:
            return known
        text = f"{known} {sorted(self.max_length.items())}"
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    # -- what the rows come from --

    @property
    def columns(self) -> list[str]:
        """The columns of the table that the rows come from; none if they were given as views."""
        if not self.shards or TABLE not in self.manifest.shards[0].files:
            return []
        return list(self.shards[0].table().column_names)

    def table(self, lo: int = 0, hi: int | None = None, columns: list[str] | None = None) -> Any:
        """Return columns of rows `lo` to `hi` as a `pyarrow.Table`, mapped into memory."""
        if not self.shards:
            raise ValueError(f"the corpus in {self.path} has no rows, and so no table of them")
        spans = self._spans(lo, len(self) if hi is None else hi)
        return _joined([(s, s.table(columns).slice(a, b - a)) for s, a, b in spans])

    def take_table(self, rows: Array, columns: list[str] | None = None) -> Any:
        """Return columns of some rows as a `pyarrow.Table`, in the given order."""
        rows = np.asarray(rows)
        found = self._owners(rows)
        owners = [(self.shards[i], own) for i, own in found]
        pieces = [(shard, shard.table(columns).take(pa.array(own))) for shard, own in owners]
        order = np.argsort(np.argsort(rows, kind="stable"), kind="stable")
        if not pieces:
            return self.table(0, 0, columns)
        return _joined(pieces).take(pa.array(order))

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
        # NaN is not equal to itself.
        found = [None if v in (None, "") or v != v else str(v) for v in values]
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
        path = self._folder / READER
        check_size(path, self.manifest.files[READER])
        # By its name, because model files are made of all that is above this module.
        reader = import_module("coem.models").load(path)
        widths = {view: len(words) for view, words in getattr(reader, "vocabulary_", {}).items()}
        if widths != {view.name: view.width for view in self.manifest.views}:
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
        return Corpus(self.path, self.names, max_length=max_length)

    def some_views(self, names: Sequence[str]) -> "Corpus":
        """Return the same rows in some views, in the given order."""
        return Corpus(self.path, names, max_length=self.max_length)

    def _each(self, function: Callable[..., Any], jobs: Sequence[Job]) -> Iterator[Any]:
        return (function(self.shards[number], *arguments) for number, arguments in jobs)

    def verify(self) -> None:
        """Read all files, and compare them with what was written.

        Raises
        ------
        ValueError
            If a file is not what it was. The message names it.
        """
        for name, known in self.manifest.files.items():
            check_file(self._folder / name, known)
        for shard in self.shards:
            shard.verify()

    def __repr__(self) -> str:
        """Return the path, the views and the number of rows in one line."""
        views = ", ".join(f"{v.name!r} ({v.width} columns)" for v in self.views)
        return f"<Corpus {self.path} of {len(self)} rows: {views}>"


def _joined(pieces: Sequence[tuple[Shard, Any]]) -> Any:
    """Return tables of shards as one; raise ValueError unless they have the same columns."""
    (first, head), *others = pieces
    for shard, table in others:
        if not table.schema.equals(head.schema):
            damaged(shard.folder / TABLE, f"has other columns than {first.folder.name}/{TABLE}")
    return pa.concat_tables([table for _, table in pieces])


def open_corpus(path: str | os.PathLike[str]) -> Corpus:
    """Return the corpus in a folder, which estimators take in the place of `X`."""
    return Corpus(path)


def _opened(path: str, names: Sequence[str], max_length: Mapping[str, float]) -> Corpus:
    return Corpus(path, names, max_length=max_length)
