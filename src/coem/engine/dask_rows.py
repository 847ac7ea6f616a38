"""Dask collections as rows that stay on the workers."""

import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import Any, NoReturn, Self

import numpy as np

from coem.engine._dask_cluster import Cluster, release, resumed, retried
from coem.engine._dask_parcels import Parcel, n_bytes
from coem.engine.dask import checked_client, current_client
from coem.row_store import Job, RowStore, stacked
from coem.typing import Array, Rows
from coem.views import Views, as_views, row_keys

WHAT = "a dask array, a dask bag of row blocks, or a list of dask.delayed blocks"


@dataclass(frozen=True)
class Meta:
    """What a block says of itself."""

    names: tuple[str, ...]
    widths: tuple[int, ...]
    n_rows: int
    n_bytes: int
    digest: str


class HeldShard:
    """The rows of a block, for the functions that `RowStore` calls on a worker."""

    def __init__(self, views: Views) -> None:
        self._views, self.n_rows = views, len(views)

    def read(self) -> Views:
        """Return the rows."""
        return self._views

    def read_rows(self, rows: Rows) -> Views:
        """Return some of the rows."""
        return self._views[rows]

    @property
    def keys(self) -> Array:
        """A number for each row that stands for its content."""
        return row_keys(self._views)


@dataclass(frozen=True, eq=False)
class RemoteShard:
    """The rows of a block that a worker holds."""

    cluster: Cluster
    block: Any  # the future of a parcel with the views
    meta: Meta
    names: tuple[str, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.meta.n_rows

    @property
    def n_bytes(self) -> int:
        """What the rows take in memory."""
        return self.meta.n_bytes

    @property
    def maker(self) -> Callable[[Parcel[Views]], Views]:
        """A function from the block to its rows."""
        return partial(_some, names=self.names)

    def read(self) -> Views:
        """Return the rows, sent to this process."""
        views: Views = retried(lambda: self.cluster.fetch(self.block))
        return views[list(self.names)]

    def read_rows(self, rows: Rows) -> Views:
        """Return some of the rows, sent to this process."""
        return self.read()[rows]

    def load(self) -> Views:
        """Return what `read` returns."""
        return self.read()

    def content(self) -> list[Any]:
        """Return what stands for the rows."""
        return [self.block]


class Held:
    """Futures that are released with the last reference to this object."""

    def __init__(self, futures: Sequence[Any]) -> None:
        weakref.finalize(self, release, futures)


class DaskRows(RowStore):
    """Rows of one or several views in blocks on the workers of a cluster.

    Estimators make one of a dask collection themselves. Make one yourself if you fit or predict
    several times: the blocks are computed once, and stay on the workers until it is deleted.

    Parameters
    ----------
    blocks : dask array, dask bag, or list of dask.delayed
        The row chunks of an array, sparse or dense; or blocks, each a matrix, a dict of matrices or
        a `Views`.
    client : distributed.Client, optional
        By default the current client.
    """

    def __init__(self, blocks: Any, client: Any = None) -> None:
        client = current_client() if client is None else checked_client(client)
        cluster = Cluster(client)
        futures = client.compute([*_opened(blocks)])
        self._held = Held(futures)
        metas = retried(lambda: _described(cluster, futures))
        pairs = [pair for pair in zip(futures, metas, strict=True) if pair[1].n_rows]
        if not pairs:
            raise ValueError("X has no rows: all of its blocks are empty")
        _check_same(metas)
        names = pairs[0][1].names
        self._set(cluster, [RemoteShard(cluster, *pair, names) for pair in pairs], names)

    def _set(self, cluster: Cluster, shards: Sequence[RemoteShard], names: Sequence[str]) -> None:
        self._cluster, self.shards, self._names = cluster, shards, tuple(names)
        self.bounds = [0, *np.cumsum([shard.n_rows for shard in shards]).tolist()]
        text = "".join(shard.meta.digest for shard in shards)
        self._digest = blake2b(text.encode(), digest_size=16).hexdigest()

    def __reduce__(self) -> NoReturn:
        """Raise, because other processes have no client for the blocks."""
        raise TypeError("DaskRows cannot be pickled; make them where they are needed")

    @property
    def digest(self) -> str:
        """What stands for all that the blocks hold."""
        return self._digest

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the views, in order."""
        return self._names

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of columns of every view."""
        meta = self.shards[0].meta
        known = dict(zip(meta.names, meta.widths, strict=True))
        return tuple(known[name] for name in self._names)

    def __repr__(self) -> str:
        """Return the views and the number of rows in one line."""
        pairs = zip(self.names, self.widths, strict=True)
        views = ", ".join(f"{name!r} ({width} columns)" for name, width in pairs)
        return f"<DaskRows of {len(self)} rows in {len(self.shards)} blocks: {views}>"

    def some_views(self, names: Sequence[str]) -> Self:
        """Return the same rows in some views, in the given order."""
        other = type(self).__new__(type(self))
        other._held = self._held
        shards = [replace(shard, names=tuple(names)) for shard in self.shards]
        other._set(self._cluster, shards, names)
        return other

    def _each(self, function: Callable[..., Any], jobs: Sequence[Job]) -> Iterator[Any]:
        return resumed(lambda first: self._each_from(function, jobs[first:]), len(jobs))

    def _each_from(self, function: Callable[..., Any], jobs: Sequence[Job]) -> Iterator[Any]:
        shards = [self.shards[number] for number, _ in jobs]
        blocks, makers = [s.block for s in shards], [s.maker for s in shards]
        works = [partial(_on_shard, function, arguments) for _, arguments in jobs]
        futures = self._cluster.start(_called, blocks, makers, works)
        try:
            while futures:
                found = self._cluster.fetch(futures[0])
                release([futures.pop(0)])
                yield found
        finally:
            self._cluster.cancel(futures)


def is_collection(X: Any) -> bool:
    """Return True if `X` is a dask collection, or a list of them."""
    several = X if isinstance(X, list | tuple) and X else [X]
    return all(hasattr(x, "__dask_graph__") and hasattr(x, "dask") for x in several)


def _opened(blocks: Any) -> Iterator[Any]:
    """Yield a delayed parcel of views for each block."""
    import dask.array as da
    import dask.bag as db
    from dask.delayed import Delayed, delayed

    if isinstance(blocks, da.Array):
        if blocks.ndim != 2:
            raise ValueError(f"X is a dask array of {blocks.ndim} dimensions; it must have 2")
        blocks = blocks.rechunk({1: -1}).to_delayed().ravel().tolist()
    several = isinstance(blocks, db.Bag)
    blocks = blocks.to_delayed() if several else blocks
    known = isinstance(blocks, list | tuple) and all(isinstance(b, Delayed) for b in blocks)
    if not known or not blocks:
        raise TypeError(f"X must be {WHAT}, got {type(blocks).__name__}")
    for number, block in enumerate(blocks):
        yield delayed(_parcel, pure=False)(block, number, several)


def _parcel(block: Any, number: int, several: bool) -> Parcel[Views | None]:
    """Return the views of a block; None if it has no rows."""
    found = [one for one in (block if several else [block]) if _n_rows(one)]
    views = [as_views(one, what=f"X, block {number}") for one in found]
    return Parcel(stacked(views) if len(views) > 1 else views[0] if views else None)


def _n_rows(block: Any) -> int:
    """Return the number of rows of a matrix, a dict or a `Views`."""
    one = next(iter(block.values()), ()) if isinstance(block, Mapping) else block
    return int(one.shape[0]) if hasattr(one, "shape") else len(one)


def _described(cluster: Cluster, futures: Sequence[Any]) -> list[Meta]:
    """Return what the blocks say of themselves, after one pass over them on the workers."""
    looks = cluster.start(_describe, futures)
    try:
        return [cluster.fetch(look) for look in looks]
    finally:
        release(looks)


def _describe(block: Parcel[Views | None]) -> Parcel[Meta]:
    views = block.value
    if views is None:
        return Parcel(Meta((), (), 0, 0, ""))
    digest = blake2b(row_keys(views).tobytes(), digest_size=16).hexdigest()
    return Parcel(Meta(views.names, views.widths, len(views), n_bytes(views), digest))


def _check_same(metas: Sequence[Meta]) -> None:
    """Raise unless all blocks with rows have the same views."""
    full = [(number, meta) for number, meta in enumerate(metas) if meta.n_rows]
    spelt = {number: dict(zip(m.names, m.widths, strict=True)) for number, m in full}
    first, *others = spelt
    for number in others:
        if [*spelt[number].items()] != [*spelt[first].items()]:
            raise ValueError(
                f"all blocks of X must have the same views: block {first} has {spelt[first]}, and "
                f"block {number} has {spelt[number]} (views and their columns)"
            )


def _some(block: Parcel[Views], names: Sequence[str]) -> Views:
    """Return some views of a block."""
    views = block.value
    return views if views.names == tuple(names) else views[list(names)]


def _on_shard(function: Callable[..., Any], arguments: tuple[Any, ...], views: Views) -> Any:
    return function(HeldShard(views), *arguments)


def _called(
    block: Parcel[Views], make: Callable[[Any], Views], work: Callable[[Views], Any]
) -> Any:
    return Parcel(work(make(block)))
