"""The threads of this process."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from contextvars import Context
from functools import cache
from typing import Any, Self

import joblib
from threadpoolctl import ThreadpoolController

from coem.kernels import threads

WAVE = 16  # results for each worker that may wait to be added up


class LocalEngine:
    """Work on blocks with the threads of this process.

    Parameters
    ----------
    n_jobs : int, optional
        Number of threads, as in scikit-learn: None is 1 (or what a joblib context says), -1 all
        processors. The number never changes a bit of any result.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_workers = int(joblib.effective_n_jobs(n_jobs))
        self._pool: ThreadPoolExecutor | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start the threads, lend them to the kernels and keep BLAS to one thread."""
        # BLAS sums differently with more threads, and would compete with ours.
        self._stack.enter_context(_blas().limit(limits=1, user_api="blas"))
        if self.n_workers > 1:
            self._pool = self._stack.enter_context(ThreadPoolExecutor(self.n_workers - 1))
        self._stack.enter_context(threads.lend(self))
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the threads."""
        self._stack.close()
        self._pool = None

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return the results of `function` in the order of the items."""
        items = list(items)
        if self._pool is None or len(items) < 2:
            return [function(item) for item in items]
        results: list[Any] = [None] * len(items)
        places = iter(range(len(items)))  # shared: whoever is free takes the next one

        def work() -> None:
            for place in places:
                results[place] = function(items[place])

        # One wake-up a thread and not one an item, which costs more than many items do; the
        # calling thread works too, in a context without a loan, so that tasks are serial.
        helpers = min(self.n_workers, len(items)) - 1
        waiting = [self._pool.submit(work) for _ in range(helpers)]
        try:
            Context().run(work)
        finally:
            for _ in places:  # after an error nobody shall start another item
                pass
            wait(waiting)
        for future in waiting:
            future.result()
        return results

    def reduce(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """Return the sum of the results, added in the order of the items.

        Only some of the results exist at a time, whatever the number of items.
        """
        total: Any = None
        items = list(items)
        for first in range(0, len(items), WAVE * self.n_workers):
            for result in self.map(function, items[first : first + WAVE * self.n_workers]):
                total = result if total is None else total + result
        return total


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
