"""One BLAS thread while an engine of this process runs.

BLAS adds up in another order with more threads, and its threads compete with those of the engine.
Some libraries have one limit for the whole process. Engines that overlap share it: the first to
start sets it, the last to stop gives BLAS its threads back. Other libraries (MKL, and OpenBLAS with
OpenMP) have a limit per thread, which each engine sets and restores for its own thread. If your own
code holds a limit of threadpoolctl in another thread when an engine starts, that limit stays.

A process that is forked while engines run has only the thread that forked it. The engines of the
other threads do not exist there, so their limit ends.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController

_lock = Lock()
_users: dict[object, int] = {}  # a token for each engine that runs -> the thread that is in it
_before: list[tuple[Any, int]] = []  # libraries with one limit per process, and their threads


@contextmanager
def one_thread() -> Iterator[None]:
    """Hold BLAS to one thread inside the context, whatever other threads enter or leave it."""
    own = [(library, library.num_threads) for library in _libraries() if _is_per_thread(library)]
    user = object()
    try:
        for library, _ in own:
            library.set_num_threads(1)
        _enter(user)
        yield
    finally:
        try:
            _leave(user)
        finally:
            for library, n_threads in own:
                library.set_num_threads(n_threads)


def _enter(user: object) -> None:
    """Set the limits of the process, if this is the first engine."""
    with _lock:
        if not _before:  # left behind if Ctrl-C came while the limits were restored
            shared = [library for library in _libraries() if not _is_per_thread(library)]
            _before[:] = [(library, library.num_threads) for library in shared]
        if not _users:
            for library, _ in _before:
                library.set_num_threads(1)
        _users[user] = get_ident()


def _leave(user: object) -> None:
    """Restore the limits of the process, if this was the last engine.

    Ctrl-C may come at any time. It is raised when this is done, which takes no time.
    """
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            with _lock:
                _users.pop(user, None)  # not there if Ctrl-C came while it entered
                if not _users:
                    _restore_all()
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _keep_own() -> None:
    """Forget the engines of other threads, because this process is new and has none of them."""
    global _lock
    _lock = Lock()  # another thread may have held the old one
    for user in [user for user, thread in _users.items() if thread != get_ident()]:
        del _users[user]
    if not _users:
        _restore_all()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_keep_own)


def _restore_all() -> None:
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
