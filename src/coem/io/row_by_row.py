"""CSV row by row, which says what is wrong with which."""

import csv
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO

from coem.io.encodings import flaw_of
from coem.io.rows import SKIP, Bad
from coem.io.sources import TableError, lines_of

BLOCK = 1 << 16  # bytes of a file that are looked at from its end
OPEN = "a quote that is never closed"


@dataclass
class Rows:
    """Rows of cells, by column, and the bad ones."""

    source: str
    n_columns: int
    skip_bad: bool
    columns: list[list[str]] = field(default_factory=list)
    bad: Bad = field(default_factory=list)

    def __post_init__(self) -> None:
        self.columns = [[] for _ in range(self.n_columns)]

    def add(self, row: int, cells: list[str]) -> None:
        """Keep the cells of a row, if it has as many as the header and they are text."""
        if not cells or (self.n_columns > 1 and len(cells) == 1 and not cells[0].strip()):
            return  # a blank line
        if len(cells) != self.n_columns:
            few = len(cells) < self.n_columns
            advice = "fill it up" if few else "quote cells that hold the delimiter"
            self.refuse(
                row,
                f"{len(cells)} cells where the header has {self.n_columns}",
                f"{advice}, {SKIP}",
            )
            return
        flaw = next(filter(None, map(flaw_of, cells)), None)
        if flaw is not None:
            self.refuse(row, flaw, SKIP)
            return
        for column, cell in zip(self.columns, cells, strict=True):
            column.append(cell)

    def take(self) -> list[list[str]]:
        """Return the columns so far, and begin with empty ones."""
        columns, self.columns = self.columns, [[] for _ in range(self.n_columns)]
        return columns

    def refuse(self, row: int, reason: str, advice: str) -> None:
        """List a bad row, or raise if none may be left out."""
        if not self.skip_bad:
            raise TableError(f"{self.source}, row {row}: {reason}; {advice}")
        self.bad.append((row, reason))


class Tail:
    """A file that is read from its beginning, and looked at from its end.

    It has the few methods of bytes that `Lines` needs.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, os.SEEK_END)

    def lines(self, start: int) -> Iterator[bytes]:
        """Return the lines from a byte on, with their ends."""
        while True:
            self._file.seek(start)
            line = self._file.readline()
            if not line:
                return
            start += len(line)
            yield line

    def __len__(self) -> int:
        """Return the number of bytes."""
        return self._size

    def __getitem__(self, place: slice) -> bytes:
        """Return some bytes."""
        self._file.seek(place.start)
        return self._file.read(place.stop - place.start)

    def rfind(self, what: bytes, start: int, end: int) -> int:
        """Return the last place of a byte between two others, or -1."""
        size = BLOCK
        while end > start:
            begin = max(start, end - size)
            found = self[begin:end].rfind(what)
            if found >= 0:
                return begin + found
            end, size = begin, 2 * size
        return -1


class OpenQuote(Exception):
    """A quote is opened, and no line after it closes it."""


class Lines:
    """The lines of some bytes as text, one after the other, for a `csv.reader`.

    A quote that is never closed must not take the rest of the file with it. So the last line that
    can close one is found once, and no row goes on after it: every line is read three times at
    most, however many quotes are open.

    Parameters
    ----------
    data : bytes or Tail
        A file of text may be larger than memory: then it is a `Tail`.
    start : int
        Where the first line begins.
    delimiter : str
        What stands between cells.
    """

    def __init__(self, data: "bytes | Tail", start: int, delimiter: str) -> None:
        self._lines = lines_of(data, start) if isinstance(data, bytes) else data.lines(start)
        self._data, self._start, self._delimiter = data, start, delimiter
        self._end = start  # of the line that was read last
        self._last: int | None = None  # where the last line begins that can close a quote
        self.n_taken = 0
        """Lines of the row at hand."""

    def __iter__(self) -> "Lines":
        """Return the lines themselves."""
        return self

    def __next__(self) -> str:
        """Return the next line; raise `OpenQuote` if a row goes on that cannot end."""
        if self.n_taken and self._end > self._last_closing():
            raise OpenQuote
        line = next(self._lines)
        self._end += len(line)
        self.n_taken += 1
        return line.decode("utf-8", "surrogateescape")

    def end_row(self) -> int:
        """Return the number of lines of the row at hand, and begin another."""
        taken, self.n_taken = self.n_taken, 0
        return taken

    def _last_closing(self) -> int:
        """Return where the last line begins at whose end a quote that was open before is closed."""
        if self._last is None:
            end = len(self._data)
            while end > self._start:
                begin = max(self._data.rfind(b"\n", self._start, end - 1) + 1, self._start)
                if ends_row(bytes(self._data[begin:end]), self._delimiter, quoted=True):
                    break
                end = begin
            self._last = begin if end > self._start else self._start - 1
        return self._last


def ends_row(line: bytes, delimiter: str, *, quoted: bool) -> bool:
    """Return whether a row ends with a line; `quoted` says that it comes there within quotes."""
    if b'"' not in line:
        return not quoted
    text = ('"' if quoted else "") + line.decode("utf-8", "surrogateescape")
    reader = csv.reader([text, "read if a quote is open"], delimiter=delimiter)
    with suppress(csv.Error):  # which ends the row, too
        next(reader)
    return reader.line_num == 1


def reason_of(error: csv.Error) -> str:
    """Return what is wrong with a row, in terms of the file and not of the reader."""
    if "new-line character" in str(error):
        return "a carriage return in a cell that is not quoted"
    return str(error)


def read_rows(
    data: bytes | Tail, start: int, n_lines: int, delimiter: str, rows: Rows
) -> Iterator[None]:
    """Read all rows from a byte on, before which there are `n_lines` lines; stop after each."""
    lines = Lines(data, start, delimiter)
    reader = csv.reader(lines, delimiter=delimiter)
    while True:
        row = n_lines + 1
        try:
            with no_limit(len(data)):
                cells = next(reader)
            rows.add(row, cells)
        except StopIteration:
            return
        except OpenQuote:
            rows.refuse(row, OPEN, f"close it, {SKIP}")
        except csv.Error as error:
            rows.refuse(row, reason_of(error), f"mend it, {SKIP}")
        n_lines += lines.end_row()
        yield


@contextmanager
def no_limit(size: int) -> Iterator[None]:
    """Let cells be as long as the file: Python's limit of 128 KB is made for other tables."""
    before = csv.field_size_limit(max(size, 1 << 17))
    try:
        yield
    finally:
        csv.field_size_limit(before)
