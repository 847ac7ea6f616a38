"""One BLAS thread while an engine of this process runs.

BLAS adds up in another order with more threads, and its threads compete with those of the engine.
Some libraries have one limit for the whole process. Engines that overlap share it: the first to
start sets it, the last to stop gives BLAS its threads back. Other libraries (MKL, and OpenBLAS with
OpenMP) have a limit per thread, which each engine sets and restores for its own thread. If your own
code holds a limit of threadpoolctl in another thread when an engine starts, that limit stays.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_n_users = 0
_before: list[tuple[Any, int]] = []  # libraries with one limit per process, and their threads


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside the context, whatever other threads enter or leave it."""
    own = [(library, library.num_threads) for library in _libraries() if _is_per_thread(library)]
    for library, _ in own:
        library.set_num_threads(1)
    _enter()
    try:
        yield
    finally:
        _leave()
        for library, n_threads in own:
            library.set_num_threads(n_threads)


def _enter() -> None:
    """Set the limits of the process, if this is the first engine."""
    global _n_users
    with _lock:
        if _n_users == 0:
            shared = [library for library in _libraries() if not _is_per_thread(library)]
            _before[:] = [(library, library.num_threads) for library in shared]
            for library in shared:
                library.set_num_threads(1)
        _n_users += 1


def _leave() -> None:
    """Restore the limits of the process, if this was the last engine."""
    global _n_users
    with _lock:
        _n_users -= 1
        if _n_users == 0:
            for library, n_threads in _before:
                _restore(library, n_threads)
            _before.clear()


def _restore(library: Any, n_threads: int) -> None:
    """Give a library its threads back, unless another thread holds a limit of its own.

    Since version 3.8 threadpoolctl lets only that thread change a limit that has set it. The
    thread that ends the last engine need not be the one that started the first.
    """
    if library.num_threads != 1:
        return  # ours was never in force
    release = getattr(library, "clear_controlling_thread", lambda **force: None)
    release(force=True)
    library.set_num_threads(n_threads)
    release()


def _is_per_thread(library: Any) -> bool:
    """Return True if a limit holds for the thread that sets it alone."""
    return library.internal_api == "mkl" or getattr(library, "threading_layer", "") == "openmp"


@cache
def _libraries() -> list[Any]:
    # Looking for the libraries takes milliseconds, so it is done once.
    return [lib for lib in ThreadpoolController().lib_controllers if lib.user_api == "blas"]
