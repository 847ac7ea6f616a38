"""A corpus with one more view, which is computed from the stored views when rows are read."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coem.corpus import Corpus, Shard, StoredView
from coem.typing import Matrix, Rows
from coem.views import Views

Make = Callable[[Views], Matrix]
"""From the stored views of some rows to the new view. Each row must be computed by itself."""


@dataclass(frozen=True)
class DerivedShard(Shard):
    """A shard whose rows have one more view."""

    base: Shard
    new: StoredView
    make: Make

    def read(self) -> Views:
        """Return the views."""
        return self.read_rows(slice(None))

    def read_rows(self, rows: Rows) -> Views:
        """Return some rows of the views; the new one is computed for these rows only."""
        stored = self.base.read_rows(rows)
        found = {view.name: stored[view.name] for view in self.views if view != self.new}
        made = self.make(stored)
        return Views._of({v.name: found.get(v.name, made) for v in self.views})

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
    """

    def __init__(
        self,
        corpus: Corpus,
        new: StoredView,
        make: Make,
        stamp: str,
        names: Sequence[str] | None = None,
    ) -> None:
        if new.name in corpus.names:
            raise ValueError(f"there is a view {new.name!r} already; give another name=")
        self.base, self.new, self.make, self.stamp = corpus, new, make, stamp
        self.path, self.manifest, self.bounds = corpus.path, corpus.manifest, corpus.bounds
        known = {view.name: view for view in (*corpus.views, new)}
        self.views = tuple(known[name] for name in names or known)
        self.shards = tuple(
            DerivedShard(shard.folder, shard.n_rows, self.views, shard, new, make)
            for shard in corpus.shards
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path of the folder, and how the view is computed."""
        return DerivedCorpus, (self.base, self.new, self.make, self.stamp, self.names)

    @property
    def digest(self) -> str:
        """A number that stands for all that the corpus holds, and the new view."""
        return hashlib.blake2b(f"{self.base.digest} {self.stamp}".encode()).hexdigest()[:32]

    def _some(self, names: list[str]) -> Corpus:
        if self.new.name not in names:
            return self.base[names]
        return DerivedCorpus(self.base, self.new, self.make, self.stamp, names)
