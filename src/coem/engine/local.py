"""The threads of this process."""

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from typing import Any, Self

import joblib
from threadpoolctl import ThreadpoolController

from coem.kernels import threads


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
            self._pool = self._stack.enter_context(ThreadPoolExecutor(self.n_workers))
        self._stack.enter_context(threads.lend(self))
        return self

    def __exit__(self, *exception: object) -> None:
        """Stop the threads."""
        self._stack.close()
        self._pool = None

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
        """Return the results of `function` in the order of the items."""
        if self._pool is None:
            return [function(item) for item in items]
        return list(self._pool.map(function, items))

    def reduce(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Any:
        """Return the sum of the results, added in the order of the items.

        Only a few results exist at a time, whatever the number of items.
        """
        total: Any = None
        for result in self._results(function, items):
            total = result if total is None else total + result
        return total

    def _results(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
        if self._pool is None:
            yield from map(function, items)
            return
        waiting: deque[Future[Any]] = deque()
        for item in items:
            waiting.append(self._pool.submit(function, item))
            if len(waiting) > 2 * self.n_workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()
