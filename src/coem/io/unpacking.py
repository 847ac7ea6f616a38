"""How much a packed table may unpack to, and how much memory its values may take."""

from typing import Any

FLOOR = 256 << 20  # bytes that every file may unpack to
RATIO = 200  # times its own size that a larger one may; tables of text reach some 5 to 100
ROW = 64  # bytes that a row, or a value of JSON, takes in memory at least
CELL = 16  # the same of a cell of a row
VALUES = {b"[{,\n": ROW}  # what begins a value of JSON, or ends a line
CELLS = {b"\n": ROW, b",;\t|": CELL}
COUNTED = dict.fromkeys((".json", ".jsonl", ".ndjson"), VALUES)
COUNTED |= dict.fromkeys((".csv", ".tsv"), CELLS)
MARKS = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"  # that may come before the first value


def most_unpacked(packed: int) -> int:
    """Return the number of bytes that a file of some size may unpack to.

    A few kilobytes can unpack to more than any memory holds. A file that is larger than this when
    it is unpacked is read all the same if its user unpacks it: plain files have no such limit.
    """
    return max(FLOOR, RATIO * packed)


class Bounded:
    """A stream that is unpacked while it is read, and ends with an error if it has no end.

    A byte or two can stand for a row or a value that takes fifty times as much, so that these are
    counted before any is made. Commas of texts are counted with them; no text has as many.

    Parameters
    ----------
    stream : file object
        Unpacked bytes.
    packed : int
        The size of what they come from.
    suffix : str, default=""
        What they are: ``.csv``, ``.json`` and their like; if it is "", the first bytes say which of
        the two. Nothing is counted in anything else.
    """

    def __init__(self, stream: Any, packed: int, suffix: str = "") -> None:
        self._stream, self._packed = stream, packed
        self._left = self._room = most_unpacked(packed)
        self._counted = COUNTED.get(suffix, {}) if suffix else None

    def read(self, size: int) -> Any:
        """Return up to `size` bytes; raise `TooLarge` if there were too many."""
        part = self._stream.read(size)
        self._left -= len(part)
        if self._left < 0:
            raise TooLarge(self._packed)
        if self._counted is None:
            first = part.lstrip(MARKS)[:1]
            self._counted = VALUES if first in (b"[", b"{") else CELLS
        for signs, each in self._counted.items():
            self._room -= each * (len(part) - len(part.translate(None, signs)))
        if self._room < 0:
            raise TooLarge(self._packed, "holds rows and values that take")
        return part


class TooLarge(Exception):
    """Something unpacks to more than it may; the message says to how much."""

    def __init__(self, packed: int, what: str = "unpacks to") -> None:
        most = most_unpacked(packed)
        super().__init__(
            f"{what} more than {most:,} bytes, {most // max(packed, 1):,} times its size of "
            f"{packed:,} bytes; if you trust it, unpack it, or save it as .csv, and name that file"
        )
