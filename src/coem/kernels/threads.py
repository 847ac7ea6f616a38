"""What an engine lends to the kernels while it runs: its threads, and memory for scratch.

Kernels are serial and release the GIL. A face whose work divides into independent parts spreads
them over the threads of the engine that is running, if there is one; how many there are never
changes a bit of the result.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from coem.typing import Array

WAVE = 16  # results for each worker that may wait to be added up


class Pool(Protocol):
    """A number of workers and an ordered map."""

    n_workers: int

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return the results in the order of the items."""
        ...


@dataclass
class _Loan:
    pool: Pool
    scratch: dict[str, Array] = field(default_factory=dict)


# A worker thread starts with an empty context, so what runs inside a task is serial.
_loan: ContextVar[_Loan | None] = ContextVar("coem_loan", default=None)


@contextmanager
def lend(pool: Pool) -> Iterator[None]:
    """Let the kernels called in this context use `pool`."""
    token = _loan.set(_Loan(pool))
    try:
        yield
    finally:
        _loan.reset(token)


def n_workers() -> int:
    """Return how many threads a face may use here."""
    loan = _loan.get()
    return 1 if loan is None else loan.pool.n_workers


def spread(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return the results of `function`, in the order of the items, on the lent threads."""
    loan = _loan.get()
    return [function(item) for item in items] if loan is None else loan.pool.map(function, items)


def add_up(function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
    """Return the sum of the results of `function`, added in the order of the items.

    Only some of the results exist at a time, however many items there are.
    """
    total: Any = None
    items, step = list(items), WAVE * n_workers()
    for first in range(0, len(items), step):
        for result in spread(function, items[first : first + step]):
            total = result if total is None else total + result
    return total


def scratch(name: str, shape: tuple[int, ...]) -> Array:
    """Return float64 memory that is used and forgotten within one call of a face.

    While an engine runs the same memory serves every round: fresh pages cost more than the sums
    that are put into them, and malloc would keep the old ones besides.
    """
    loan = _loan.get()
    if loan is None:
        return np.empty(shape)
    kept = loan.scratch.get(name)
    if kept is None or kept.shape != shape:
        kept = loan.scratch[name] = np.empty(shape)
    return kept
