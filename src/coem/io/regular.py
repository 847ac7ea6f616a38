"""What is no regular file: whoever opens a FIFO waits for somebody to write, perhaps for ever.

A user may name one as the source of a table. In a folder that coem wrote there is none.
"""

import os
import stat


def is_special(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to a FIFO, a device or a socket."""
    try:
        mode = os.stat(path).st_mode
    except OSError:  # whoever opens it says what is wrong
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def check_regular(path: str | os.PathLike[str]) -> None:
    """Raise if a path leads to a FIFO, a device or a socket."""
    if is_special(path):
        raise ValueError(f"{path} is no regular file; put there what belongs there, or remove it")


def no_file(path: str | os.PathLike[str]) -> str:
    """Say why a path leads to no file."""
    return f"{path} is no regular file" if is_special(path) else f"there is no {path}"
