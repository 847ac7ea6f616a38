"""Fits that are stopped just before they write a state."""

from contextlib import contextmanager

from coem.io import kept


class Stopped(Exception):
    pass


@contextmanager
def stopped_after_writes(n_writes, monkeypatch):
    """Let so many states be written, and raise `Stopped` before the next one."""
    real, left = kept.write_archive, [n_writes]

    def write(*args):
        left[0] -= 1
        if left[0] < 0:
            raise Stopped
        return real(*args)

    with monkeypatch.context() as patched:
        patched.setattr(kept, "write_archive", write)
        yield
