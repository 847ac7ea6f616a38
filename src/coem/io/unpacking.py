"""How much a packed table may unpack to."""

from typing import Any

FLOOR = 256 << 20  # bytes that every file may unpack to
RATIO = 200  # times its own size that a larger one may; tables of text reach some 5 to 100


def most_unpacked(packed: int) -> int:
    """Return the number of bytes that a file of some size may unpack to.

    A few kilobytes can unpack to more than any memory holds. A file that is larger than this when
    it is unpacked is read all the same if its user unpacks it: plain files have no such limit.
    """
    return max(FLOOR, RATIO * packed)


class Bounded:
    """A stream that is unpacked while it is read, and ends with an error if it has no end.

    Parameters
    ----------
    stream : file object
        Unpacked bytes.
    packed : int
        The size of what they come from.
    """

    def __init__(self, stream: Any, packed: int) -> None:
        self._stream, self._left = stream, most_unpacked(packed)
        self._packed = packed

    def read(self, size: int) -> Any:
        """Return up to `size` bytes; raise `TooLarge` if there were too many."""
        part = self._stream.read(size)
        self._left -= len(part)
        if self._left < 0:
            raise TooLarge(self._packed)
        return part


class TooLarge(Exception):
    """Something unpacks to more than it may; the message says to how much."""

    def __init__(self, packed: int) -> None:
        most = most_unpacked(packed)
        super().__init__(
            f"unpacks to more than {most:,} bytes, {most // max(packed, 1):,} times its size of "
            f"{packed:,} bytes; if it is no trap, unpack it, or save it as .csv, and name that file"
        )
