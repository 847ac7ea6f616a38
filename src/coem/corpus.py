"""Rows that are kept in a folder, and read one part after the other.

A corpus holds more rows than fit in memory. Its folder has a manifest and some *shards*: rows that
follow each other, with the arrays of each view as ``.npy`` files. A shard is mapped into memory
when it is needed, and checked then. `coem.io.corpus_writer` writes the folder.
"""

import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from errno import ENOMEM
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
import scipy.sparse as sp

from coem.sparse import sound_csr
from coem.typing import CSR, Array, Matrix, Rows, is_sparse
from coem.views import Views

MANIFEST = "corpus.json"
SCHEMA = 1
_sound: dict[tuple[Path, str], Any] = {}  # views of shards that were checked, and their stamps

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

    def read_rows(self, rows: Rows) -> Views:
        """Return some rows of the views."""
        return self.read()[rows]

    @property
    def keys(self) -> Array:
        """A number for each row that stands for its content: see `coem.views.row_keys`."""
        return self._array("keys", (self.n_rows,))

    @property
    def n_bytes(self) -> int:
        """What the views take in memory."""
        return sum(info.st_size for view in self.views for info in self._stats(view))

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
        before = self._stamp(view)
        if _sound.get((self.folder, view.name)) == before:
            rows.has_canonical_format = True
            known: CSR = rows
            return known
        sound = sound_csr(rows, f"corpus, {self.folder.name}, view {view.name!r}: ")
        if sound is rows:
            _sound[self.folder, view.name] = before
        return sound

    def _stamp(self, view: StoredView) -> list[tuple[int, ...]]:
        """Return what changes if somebody writes to the files of a view."""
        found = self._stats(view)
        return [(info.st_ino, info.st_size, info.st_mtime_ns) for info in found]

    def _stats(self, view: StoredView) -> list[os.stat_result]:
        """Return what the system says of the files of a view."""
        try:
            return [path.stat() for path in self._files(view)]
        except OSError as error:
            raise ValueError(
                f"the corpus is damaged: {error.filename} cannot be read ({error})"
            ) from error

    def _array(self, name: str, shape: tuple[int, ...] | None) -> Array:
        path = self.folder / f"{name}.npy"
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            if isinstance(error, OSError) and error.errno == ENOMEM:
                raise MemoryError(f"there is no room to map {path}") from error
            raise ValueError(f"the corpus is damaged: {path} cannot be read ({error})") from error
        if shape is not None and array.shape != shape:
            raise ValueError(
                f"the corpus is damaged: {path} has the shape {array.shape} and not {shape}"
            )
        return np.asarray(array)


class Corpus:
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
        self.shards = tuple(
            Shard(self.path / shard["name"], shard["n_rows"], self.views)
            for shard in self.manifest["shards"]
        )
        self.bounds = [0, *np.cumsum([shard.n_rows for shard in self.shards]).tolist()]

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

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows, and of the columns of all views together."""
        return len(self), sum(self.widths)

    @property
    def n_bytes(self) -> int:
        """What the rows would take in memory."""
        return sum(shard.n_bytes for shard in self.shards)

    @property
    def digest(self) -> str:
        """A number that stands for all that the corpus holds."""
        return str(self.manifest["digest"])

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self.bounds[-1])

    def __repr__(self) -> str:
        """Return the path, the views and the number of rows in one line."""
        views = ", ".join(f"{v.name!r} ({v.width} columns)" for v in self.views)
        return f"<Corpus {self.path} of {len(self)} rows: {views}>"

    @overload
    def __getitem__(self, key: list[str]) -> "Corpus": ...
    @overload
    def __getitem__(self, key: Rows) -> Views: ...

    def __getitem__(self, key: Any) -> "Corpus | Views":
        """Return a corpus of some views (a list of names), or some rows (any other key)."""
        if isinstance(key, list) and key and all(isinstance(name, str) for name in key):
            return self if tuple(key) == self.names else self._some(key)
        return self.take(np.arange(len(self))[key])

    def _some(self, names: list[str]) -> "Corpus":
        """Return a corpus of some views."""
        return Corpus(self.path, names)

    def rows(self, lo: int, hi: int) -> Views:
        """Return rows `lo` to `hi`; all rows of one shard are mapped and not copied."""
        pieces = [
            shard.read() if b - a == shard.n_rows else shard.read_rows(slice(a, b))
            for shard, a, b in self._spans(lo, hi)
        ]
        return pieces[0] if len(pieces) == 1 else stacked(pieces)

    def take(self, rows: Array) -> Views:
        """Return copies of some rows, in the given order."""
        rows = np.asarray(rows)
        order = np.argsort(rows, kind="stable")
        pieces = []
        for shard, (lo, hi) in zip(self.shards, pairwise(self.bounds), strict=True):
            first, last = np.searchsorted(rows[order], [lo, hi])
            if last > first:
                pieces.append(shard.read_rows(rows[order[first:last]] - lo))
        if not pieces:
            return self.shards[0].read_rows(slice(0, 0))
        found = stacked(pieces)
        in_order = bool((rows[1:] >= rows[:-1]).all())
        return found if in_order else found[np.argsort(order, kind="stable")]

    def sample(self, n: int, seed: int = 0, among: Array | None = None) -> Array:
        """Return the numbers of `n` rows, drawn by their content, in order; all if there are fewer.

        The order of the rows in the corpus has no effect on which rows are drawn. `among` are the
        numbers of the rows to draw from, in order; by default all rows.
        """
        best = np.empty(0, np.uint64), np.empty(0, np.int64)
        for shard, lo in zip(self.shards, self.bounds[:-1], strict=True):
            own = np.arange(lo, lo + shard.n_rows)
            if among is not None:
                own = among[slice(*np.searchsorted(among, [lo, lo + shard.n_rows]))]
            drawn = np.concatenate([best[0], lots(shard.keys[own - lo], seed)])
            rows = np.concatenate([best[1], own])
            kept = np.lexsort((rows, drawn))[:n]
            best = drawn[kept], rows[kept]
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
                f"{what} needs all rows in memory, and those of {self.path} take "
                f"{self.n_bytes / 1e9:.1f} GB, more than the {most / 1e9:.1f} GB that are loaded "
                "without being asked; give it a sample of the rows, "
                "corpus[corpus.sample(100_000)], or use MixtureClusterer, MixtureClassifier, "
                "PooledClassifier, HiddenMarkovModel or SphericalKMeans, which read a part at a "
                "time; corpus.load(most=...) loads more"
            )
        return stacked([shard.read() for shard in self.shards])

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
