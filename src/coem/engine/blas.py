"""One BLAS thread while any engine of this process runs.

BLAS adds up in another order with more threads, and its threads compete with those of the engine.
The limit belongs to the whole process, so engines that overlap share it: the first to start sets
it, the last to stop gives BLAS its threads back. If your own code holds a limit of threadpoolctl in
another thread, that limit stays in force.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_n_users = 0
_limiter: Any = None


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside the context, whatever other threads enter or leave it."""
    global _n_users, _limiter
    with _lock:
        if _n_users == 0:
            _limiter = _controller().limit(limits=1, user_api="blas")
        _n_users += 1
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if _n_users == 0:
                _restore(_limiter)
                _limiter = None


def _restore(limiter: Any) -> None:
    """Give BLAS its threads back, unless another thread holds a limit of its own.

    Since version 3.8 threadpoolctl lets only that thread change a limit that has set it. The
    thread that ends the last engine need not be the one that started the first.
    """
    libraries = [lib for lib in _controller().lib_controllers if lib.user_api == "blas"]
    if any(lib.num_threads != 1 for lib in libraries):
        return  # ours was never in force
    _release(libraries, force=True)
    limiter.restore_original_limits()
    _release(libraries)


def _release(libraries: list[Any], **force: bool) -> None:
    """Let any thread change the limits of some libraries."""
    for library in libraries:
        release = getattr(library, "clear_controlling_thread", None)
        if release is not None:
            release(**force)


@cache
def _controller() -> ThreadpoolController:
    # Looking for the libraries takes milliseconds, so it is done once.
    return ThreadpoolController()
