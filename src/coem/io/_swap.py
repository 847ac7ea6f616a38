"""One folder takes the place of another, in one step where the system can."""

import ctypes
import errno
import os
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from coem.io._parts import OLD, beside, locked, remove

AT_FDCWD = -100  # names are those of the current folder
RENAME_EXCHANGE = 2
# What systems, file systems and sandboxes say if they do not know how.
UNKNOWN = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EPERM}


def take_place(new: Path, target: Path) -> None:
    """Let a folder have a name that another one may have; `new` has what was there, or is gone.

    Whenever the process is killed, one of the two has the name. Where that cannot be had, it is
    so after `coem.io._parts.recover`.
    """
    if not target.exists() or not any(target.iterdir()):
        new.rename(target)  # which may replace an empty folder
    elif not exchange(new, target):
        _move(new, target)


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step, or return False if that cannot be done here."""
    function = _renameat2()
    if function is None:
        return False
    if not function(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        return True
    number = ctypes.get_errno()
    if number in UNKNOWN:
        return False
    raise OSError(number, os.strerror(number), str(other))


def _renameat2() -> Any:
    """Return the function of the C library, or None if it has none: not all systems do."""
    try:
        function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    except (TypeError, OSError):  # Windows has no library without a name
        return None
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_char_p] * 2 + [ctypes.c_uint]
    return function


def _move(new: Path, target: Path) -> None:
    """Move an existing `target` away, and `new` to its place."""
    old = beside(target, OLD)
    with ExitStack() as held:
        with suppress(OSError):
            held.enter_context(locked(target))  # or others would take `old` for a leftover
        try:
            target.rename(old)
            new.rename(target)
        except BaseException:
            if not os.path.lexists(target):
                with suppress(FileNotFoundError):
                    old.rename(target)
            raise
        finally:
            if os.path.lexists(target):
                remove(old)
