"""Paths that are not regular files. To open a FIFO can take for ever, if no program writes to it.

A user may name a FIFO as the source of a table. A folder that coem wrote has none.
"""

import os
import stat


def is_special(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a FIFO, a device or a socket."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # the call that opens it says what is wrong
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise if a path leads to a FIFO, a device or a socket."""
    if is_special(path):
        raise ValueError(f"{path} is not a regular file; replace it with one, or remove it")


def no_file(path: str | os.PathLike[str]) -> str:
    """Say why a path leads to no file."""
    return f"{path} is not a regular file" if is_special(path) else f"there is no {path}"
