"""What estimators do with a corpus: they join the results of its parts, if these fit in memory."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from coem.input import refuse_blocks
from coem.row_store import MOST_IN_MEMORY, RowStore
from coem.typing import Array
from coem.views import Views


def check_result(n_rows: int, row_bytes: float) -> None:
    """Raise if a result of so many rows, of so many bytes each, would not fit in memory."""
    size = n_rows * row_bytes
    if size > MOST_IN_MEMORY:
        raise ValueError(
            f"the result for {n_rows:,} rows would take {size / 1e9:.1f} GB; take a part of the "
            "rows at a time, such as [model.predict_proba(shard.read()) for shard in corpus.shards]"
        )


def joined(results: Iterable[Array], n_rows: int) -> Array:
    """Return the results of the parts of `n_rows` rows as one array.

    Raise after the first part if the array would not fit in memory.
    """
    out, done = np.empty(0), 0
    for found in results:
        if not done:
            check_result(n_rows, found.nbytes / max(len(found), 1))
            out = np.empty((n_rows, *found.shape[1:]), found.dtype)
        out[done : done + len(found)] = found
        done += len(found)
    return out


def over_shards(rows: Views | RowStore, work: Callable[[Views], Array]) -> Array:
    """Return what `work` makes of rows; of a corpus, one shard after the other."""
    if isinstance(rows, Views):
        return work(rows)
    return joined((work(shard.read()) for shard in rows.shards), len(rows))


def refuse_corpus(X: Any, method: str) -> None:
    """Raise if `X` is a corpus or has blocks of dask, which `method` takes one after the other."""
    refuse_blocks(X, method)
    if isinstance(X, RowStore):
        raise ValueError(
            f"{method} takes one batch of rows, and a corpus is many: call it for each shard, "
            f"for shard in corpus.shards: model.{method}(shard.read()), or call fit"
        )
