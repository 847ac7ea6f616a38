"""Rows of a corpus as partitions that are loaded when they are needed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np

from coem.corpus import Corpus
from coem.families.base import AnyFamily
from coem.latent.block import Partition, any_empty, given_rows
from coem.typing import Array
from coem.views import RowError, Views

SAMPLE = 20_000  # rows that starts are drawn from, and that views are compared on


@dataclass(frozen=True)
class Encoding:
    """How the rows of a corpus become those of a partition."""

    families: tuple[AnyFamily, ...]
    silent: Array  # (n_views,) bool: views that are left out
    choices: Array | None = None  # (n_kinds, n_components) bool: what the kinds of labels allow

    def partition(self, views: Views, weight: Array | None, kinds: Array | None) -> Partition:
        """Return rows encoded; `kinds` are the labels of the rows, as rows of `choices`."""
        matrices = [views[name] for name in views.names]
        pairs = list(zip(self.families, matrices, strict=True))
        empty = any_empty([family.empty(X) for family, X in pairs])
        allowed = None if kinds is None or self.choices is None else self.choices[kinds]
        encoded = tuple(family.encode(X) for family, X in pairs)
        return Partition(encoded, empty, weight, allowed).silenced(self.silent)


@dataclass(frozen=True)
class StoredPartition:
    """Some rows of a corpus, with what is known about them."""

    corpus: Corpus
    lo: int
    hi: int
    encoding: Encoding
    weight: Array | None
    kinds: Array | None
    given: Array | None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.hi - self.lo

    def load(self) -> Partition:
        """Return the rows, encoded."""
        views = self.corpus.rows(self.lo, self.hi)
        part = self.encoding.partition(views, self.weight, self.kinds)
        return part if self.given is None else part.starting_from(self.given)


@dataclass(frozen=True)
class StoredRows:
    """All rows of a corpus, with what is known about them, in the place of a `Partition`.

    Each shard of the corpus is a partition. So sums over partitions depend on the corpus alone.
    """

    corpus: Corpus
    encoding: Encoding
    weight: Array | None = None  # (n,), or None if all weights are one
    kinds: Array | None = None  # (n,), the label of every row: a row of `choices`; None without any
    empty: Array | None = None  # (n, n_views) bool, or None if no row is empty, or none was seen

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.corpus)

    @property
    def n_views(self) -> int:
        """Number of views."""
        return len(self.encoding.families)

    def parts(self, given: Array | None = None) -> Sequence[StoredPartition]:
        """Return the partitions, with `given` as the start of their rows."""
        return [StoredPartition(*self._part(*ends, given)) for ends in pairwise(self.corpus.bounds)]

    def _part(self, lo: int, hi: int, given: Array | None) -> tuple[Any, ...]:
        """Return the fields of the partition of rows `lo` to `hi`."""

        def own(array: Array | None) -> Array | None:
            return None if array is None else array[lo:hi]

        start = None if given is None else given_rows(given, slice(lo, hi))
        return self.corpus, lo, hi, self.encoding, own(self.weight), own(self.kinds), start

    def take(self, rows: Array) -> Partition:
        """Return some rows in memory."""
        weight = None if self.weight is None else self.weight[rows]
        kinds = None if self.kinds is None else self.kinds[rows]
        return self.encoding.partition(self.corpus.take(rows), weight, kinds)

    @cached_property
    def sample(self) -> Partition:
        """Some rows in memory, drawn by their content; all of them if they are few."""
        rows = np.arange(self.n_rows)
        return self.take(rows if self.n_rows <= SAMPLE else self.corpus.sample(SAMPLE))

    def silenced(self, silent: Array) -> Self:
        """Return the rows with some views left out, (n_views,) bool: all rows are empty there."""
        return replace(self, encoding=replace(self.encoding, silent=silent))

    def without_labels(self) -> Self:
        """Return the same rows, of which nothing is known but their weights."""
        return replace(self, kinds=None)

    def has_rows(self) -> Array:
        """Return which views have rows that are not empty there; all if there are none."""
        found = ~self.encoding.silent
        found = found if self.empty is None else found & ~self.empty.all(axis=0)
        return found if found.any() else np.ones_like(found)

    def row_weight(self) -> Array:
        """Return the weights of the rows; zero for rows that are empty in every view."""
        weight = np.ones(self.n_rows) if self.weight is None else self.weight
        return weight if self.empty is None else weight * ~self._blank()

    def _blank(self) -> Array:
        """Return which rows are empty in every view that is not silent."""
        assert self.empty is not None
        return np.asarray((self.empty | self.encoding.silent).all(axis=1))

    def content(self) -> list[Any]:
        """Return what stands for the rows and what is known of them, for a fingerprint."""
        known = (self.encoding.silent, self.encoding.choices, self.weight, self.kinds)
        return [self.corpus.digest, self.corpus.names, *known]


def survey(
    corpus: Corpus, families: Sequence[AnyFamily], precision: Any
) -> tuple[tuple[AnyFamily, ...], Array | None]:
    """Return families that have seen all rows, and which rows are empty in which view.

    Every value is checked. The rows are read once, and once more by each family that has to learn
    something from them before the first step.
    """
    empty = np.zeros((len(corpus), len(families)), dtype=bool)
    for shard, (lo, hi) in zip(corpus.shards, pairwise(corpus.bounds), strict=True):
        views = shard.read()
        for v, (family, name) in enumerate(zip(families, corpus.names, strict=True)):
            empty[lo:hi, v] = _look(family, views, name, lo)
    bound = tuple(
        family.bind_pieces(_Pieces(corpus, name), precision)
        for family, name in zip(families, corpus.names, strict=True)
    )
    return bound, empty if empty.any() else None


def _look(family: AnyFamily, views: Views, name: str, lo: int) -> Array:
    """Return which rows of a view are empty, after a check of their values."""
    try:
        return family.empty(family.check(views[name], name))
    except RowError as error:
        view, row, text, before = error.args
        raise RowError(view, row + lo, text, before) from None


@dataclass(frozen=True)
class _Pieces:
    """The rows of one view, a shard at a time; it can be gone through again."""

    corpus: Corpus
    name: str

    def __iter__(self) -> Any:
        """Yield a matrix for each shard."""
        return (shard.read()[self.name] for shard in self.corpus.shards)
