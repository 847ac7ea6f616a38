"""The threads that an engine lends to the kernels.

Kernels are serial and release the GIL. A face whose work divides into independent parts spreads
them over the threads of the engine that is running, if there is one; how many there are never
changes a bit of the result.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol


class Pool(Protocol):
    """What an engine lends: a number of workers and an ordered map."""

    n_workers: int

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return the results in the order of the items."""
        ...


# A worker thread starts with an empty context, so what runs inside a task is serial.
_lent: ContextVar[Pool | None] = ContextVar("coem_lent_pool", default=None)


@contextmanager
def lend(pool: Pool) -> Iterator[None]:
    """Let the kernels called in this context use `pool`."""
    token = _lent.set(pool)
    try:
        yield
    finally:
        _lent.reset(token)


def n_workers() -> int:
    """Return how many threads a face may use here."""
    pool = _lent.get()
    return 1 if pool is None else pool.n_workers


def spread(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return the results of `function`, in the order of the items, on the lent threads."""
    pool = _lent.get()
    return [function(item) for item in items] if pool is None else pool.map(function, items)
