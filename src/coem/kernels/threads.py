"""Threads and scratch memory that an engine lends to the kernels while it runs.

Kernels are serial and release the GIL. The Python functions that call them may divide the work into
independent parts, and run the parts on the threads of the running engine, if there is one. The
number of threads never changes a bit of the result.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from coem.typing import Array

WAVE = 16  # results per worker that may wait to be added


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


# A worker thread starts with an empty context, so the code inside a task is serial.
_loan: ContextVar[_Loan | None] = ContextVar("coem_loan", default=None)


@contextmanager
def lend(pool: Pool) -> Iterator[None]:
    """Let the kernels use `pool` inside this context."""
    token = _loan.set(_Loan(pool))
    try:
        yield
    finally:
        _loan.reset(token)


def n_workers() -> int:
    """Return how many threads the caller may use."""
    loan = _loan.get()
    return 1 if loan is None else loan.pool.n_workers


def spread(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Call `function` with every item on the lent threads; return the results in order."""
    loan = _loan.get()
    return [function(item) for item in items] if loan is None else loan.pool.map(function, items)


def add_up(function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
    """Return the sum of the results of `function`, added in the order of the items.

    Only `WAVE` results per worker exist at a time, however many items there are.
    """
    total: Any = None
    items, step = list(items), WAVE * n_workers()
    for first in range(0, len(items), step):
        for result in spread(function, items[first : first + step]):
            total = result if total is None else total + result
    return total


def scratch(name: str, shape: tuple[int, ...]) -> Array:
    """Return float64 memory for use within one call; its contents are undefined.

    While an engine runs, the same memory is reused in every round. New pages would cost more time
    than the sums that are written to them, and malloc would keep the old pages too.
    """
    loan = _loan.get()
    if loan is None:
        return np.empty(shape)
    kept = loan.scratch.get(name)
    if kept is None or kept.shape != shape:
        kept = loan.scratch[name] = np.empty(shape)
    return kept
