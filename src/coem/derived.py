"""A corpus with one more view, which is computed from the stored views when rows are read."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coem.corpus import Corpus, Shard
from coem.sparse import shorten
from coem.stored import StoredView
from coem.typing import Array, Matrix, Rows
from coem.views import Views

Make = Callable[[Views], Matrix]
"""From the stored views of some rows to the new view. Each row must be computed by itself."""


@dataclass(frozen=True)
class DerivedShard:
    """A shard whose rows have one more view."""

    base: Shard
    views: tuple[StoredView, ...]
    new: StoredView
    make: Make
    max_length: Mapping[str, float] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.base.n_rows

    @property
    def keys(self) -> Array:
        """A number for each row that stands for its content: that of the stored views."""
        return self.base.keys

    def read(self) -> Views:
        """Return the views."""
        return self.read_rows(slice(None))

    def read_rows(self, rows: Rows) -> Views:
        """Return some rows of the views; the new one is computed for these rows only."""
        stored = self.base.read_rows(rows)
        found = {view.name: stored[view.name] for view in self.views if view != self.new}
        made = self.make(stored)  # of rows as they are stored, whatever their length
        matrices = {v.name: found.get(v.name, made) for v in self.views}
        for name in self.max_length.keys() & matrices.keys():
            matrices[name] = shorten(matrices[name], self.max_length[name])
        return Views._of(matrices)

    def load(self) -> Views:
        """Return what `read` returns."""
        return self.read()

    def content(self) -> list[Any]:
        """Return what stands for the rows."""
        return [self]

    def table(self, columns: list[str] | None = None) -> Any:
        """Return columns of the rows as a `pyarrow.Table`."""
        return self.base.table(columns)

    def verify(self) -> None:
        """Compare all files with what was written."""
        self.base.verify()

    @property
    def n_bytes(self) -> int:
        """What the views take in memory."""
        return self.base.n_bytes + self.n_rows * self.new.width * np.dtype(self.new.dtype).itemsize


class DerivedCorpus(Corpus):
    """A corpus with one more view, computed from the others. `LatentDirections` returns it.

    The view is computed whenever rows are read. To store it, write the rows of every shard to a new
    corpus: ``for shard in corpus.shards: writer.append(shard.read())``.

    Parameters
    ----------
    corpus : Corpus
        The stored rows.
    new : StoredView
        The name, the width and the type of the new view.
    make : callable
        From the stored views of some rows to the new view; it can be pickled.
    stamp : str
        Stands for all that `make` depends on, for checkpoints.
    names : sequence of str, optional
        The views to show, in this order; by default all of them, the new one last.
    max_length : dict of str to float, optional
        For views of counts, the largest total of a row. The new view is made of the rows before
        they are scaled down.
    """

    def __init__(
        self,
        corpus: Corpus,
        new: StoredView,
        make: Make,
        stamp: str,
        names: Sequence[str] | None = None,
        *,
        max_length: Mapping[str, float] | None = None,
    ) -> None:
        if new.name in corpus.names:
            raise ValueError(f"there is a view {new.name!r} already; give another name=")
        self.base, self.new, self.make, self.stamp = corpus, new, make, stamp
        self.path, self.manifest, self.bounds = corpus.path, corpus.manifest, corpus.bounds
        self.max_length = dict(max_length or {})
        known = {view.name: view for view in (*corpus.views, new)}
        self.views = tuple(known[name] for name in names or known)
        self.shards = tuple(
            DerivedShard(shard, self.views, new, make, self.max_length) for shard in corpus.shards
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path of the folder, and how the view is computed."""
        about = self.base, self.new, self.make, self.stamp, self.names, self.max_length
        return _derived, about

    @property
    def digest(self) -> str:
        """A number that stands for all that the corpus holds, and the new view."""
        text = f"{self.base.digest} {self.stamp}"
        text += f" {sorted(self.max_length.items())}" if self.max_length else ""
        return hashlib.blake2b(text.encode()).hexdigest()[:32]

    def some_views(self, names: Sequence[str]) -> Corpus:
        """Return the same rows in some views, in the given order."""
        kept = {name: most for name, most in self.max_length.items() if name in names}
        if self.new.name not in names:
            base = self.base.some_views(names)
            return base.shortened(kept) if kept else base
        about = self.base, self.new, self.make, self.stamp, names
        return DerivedCorpus(*about, max_length=self.max_length)

    def shortened(self, max_length: Mapping[str, float]) -> Corpus:
        """Return the corpus with the rows of some views of counts scaled down to a total."""
        about = self.base, self.new, self.make, self.stamp, self.names
        return DerivedCorpus(*about, max_length=max_length)


def _derived(*about: Any) -> DerivedCorpus:
    *given, max_length = about
    return DerivedCorpus(*given, max_length=max_length)
