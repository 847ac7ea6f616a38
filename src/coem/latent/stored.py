"""Rows of a corpus as partitions that are loaded when they are needed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Self

import numpy as np

from coem.families.base import AnyFamily
from coem.latent.block import Partition, any_empty, given_rows
from coem.protocols import Engine
from coem.row_store import RowStore
from coem.typing import Array, Matrix
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
class Known:
    """What is known about rows that are kept elsewhere, and how they are encoded."""

    encoding: Encoding
    weight: Array | None
    kinds: Array | None

    def __call__(self, views: Views) -> Partition:
        """Return rows as a partition."""
        return self.encoding.partition(views, self.weight, self.kinds)


@dataclass(frozen=True)
class RowRange:
    """Rows of a corpus that follow each other, in one shard or in several."""

    corpus: RowStore
    lo: int
    hi: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.hi - self.lo

    @property
    def n_bytes(self) -> int:
        """What the rows take in memory, about."""
        return self.corpus.n_bytes * self.n_rows // max(len(self.corpus), 1)

    def load(self) -> Views:
        """Return the rows."""
        return self.corpus.rows(self.lo, self.hi)


@dataclass(frozen=True)
class StoredPartition:
    """Some rows of a corpus, with what is known about them."""

    shard: Any  # an `AnyShard`, or a `RowRange`
    known: Known
    given: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.shard.n_rows)

    @property
    def n_bytes(self) -> int:
        """What the rows take in memory."""
        return int(self.shard.n_bytes)

    def load(self) -> Partition:
        """Return the rows, encoded."""
        part = self.known(self.shard.load())
        return part if self.given is None else part.starting_from(self.given)

    def starting_from(self, given: Array | None) -> Self:
        """Return the same rows with `given` as their start."""
        return replace(self, given=given)

    def content(self) -> list[Any]:
        """Return what stands for the rows and what is known of them: the same for all starts."""
        return [self.known]


@dataclass(frozen=True)
class RemotePartition(StoredPartition):
    """The rows of a block that a worker of a cluster holds."""

    @property
    def block(self) -> Any:
        """The future of the rows."""
        return self.shard.block

    @property
    def maker(self) -> Callable[[Any], Partition]:
        """A function from the block to the partition."""
        return partial(_made, self.shard.maker, self.known)


def _made(read: Callable[[Any], Views], known: Known, block: Any) -> Partition:
    return known(read(block))


@dataclass(frozen=True)
class StoredRows:
    """All rows of a corpus, with what is known about them, in the place of a `Partition`.

    Each shard of the corpus is a partition. So sums over partitions depend on the corpus alone.
    """

    corpus: RowStore
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

    @cached_property
    def _parts(self) -> list[StoredPartition]:
        """The partitions without a start: one for each shard."""
        parts = []
        for shard, ends in zip(self.corpus.shards, pairwise(self.corpus.bounds), strict=True):
            kind = RemotePartition if hasattr(shard, "block") else StoredPartition
            parts.append(kind(shard, self._known(*ends)))
        return parts

    def _known(self, lo: int, hi: int) -> Known:
        """Return what is known of rows `lo` to `hi`."""

        def own(array: Array | None) -> Array | None:
            return None if array is None else array[lo:hi]

        return Known(self.encoding, own(self.weight), own(self.kinds))

    def parts(self, given: Array | None = None) -> Sequence[StoredPartition]:
        """Return the partitions, with `given` as the start of their rows."""
        if given is None:
            return self._parts
        pairs = zip(self._parts, pairwise(self.corpus.bounds), strict=True)
        return [part.starting_from(given_rows(given, slice(*rows))) for part, rows in pairs]

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
    corpus: RowStore, families: Sequence[AnyFamily], precision: Any, engine: Engine
) -> tuple[tuple[AnyFamily, ...], Array | None]:
    """Return families that have seen all rows, and which rows are empty in which view.

    Every value is checked. The rows are read once, and once more by each family that has to learn
    something from them before the first step. The engine reads them, where they are.
    """
    empty = np.zeros((len(corpus), len(families)), dtype=bool)
    look = partial(_look, families=tuple(families))
    found = engine.each_part(look, corpus.shards)
    for lo, hi in pairwise(corpus.bounds):
        with _counting_from(lo):
            empty[lo:hi] = next(found).T
    bound = tuple(
        family.bind_pieces(_Pieces(corpus, name, engine), precision)
        for family, name in zip(families, corpus.names, strict=True)
    )
    return bound, empty if empty.any() else None


def _look(views: Views, families: Sequence[AnyFamily]) -> Array:
    """Return which rows are empty in which view, (n_views, n_rows), after a check of all values."""
    pairs = zip(families, views.names, strict=True)
    return np.stack([family.empty(family.check(views[name], name)) for family, name in pairs])


@contextmanager
def _counting_from(lo: int) -> Iterator[None]:
    """Let errors name rows by their numbers in the corpus, for rows of a shard."""
    try:
        yield
    except RowError as error:
        view, row, text, before = error.args
        raise RowError(view, row + lo, text, before) from None


@dataclass(frozen=True)
class _Pieces:
    """The rows of one view, a shard at a time; they can be read again."""

    corpus: RowStore
    name: str
    engine: Engine

    def __iter__(self) -> Iterator[Matrix]:
        """Yield a matrix for each shard."""
        return (shard.read()[self.name] for shard in self.corpus.shards)

    def map(self, function: Callable[[Matrix], Any]) -> Iterator[Any]:
        """Yield what a function finds in each shard, wherever it is."""
        return self.engine.each_part(partial(_of_view, self.name, function), self.corpus.shards)


def _of_view(name: str, function: Callable[[Matrix], Any], views: Views) -> Any:
    return function(views[name])
