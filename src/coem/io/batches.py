"""Documents that come one after the other: lines of JSON or CSV as they arrive, or whole tables.

A source hands out *records*, which become a table when a batch is full. It never looks ahead, so
that a pipe may stay open for ever.
"""

import csv
import gzip
import hashlib
import io
import json
import sys
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from coem.io.delimited import read_delimited, read_header
from coem.io.encodings import BOMS, TRY, Text, flaw_of
from coem.io.json_lines import load, read_json_lines
from coem.io.row_by_row import OPEN, ends_row, no_limit, reason_of
from coem.io.rows import SKIP, Bad
from coem.io.sources import TableError, check_there, explained
from coem.io.tables import MAX_LINE, read_table
from coem.io.unpacking import Bounded

LINES = (".jsonl", ".ndjson", ".csv", ".tsv")
Record = tuple[int, bytes]  # the number of the row, as people count them, and what it is


class LineSource:
    """Lines of JSON objects, or rows of CSV under a header, from an open file.

    Parameters
    ----------
    file : binary file
        What is read, line by line.
    source : str
        What errors call it.
    encoding, delimiter : str, optional
        As in `coem.io.tables.read_table`, but the encoding is not guessed: it is UTF-8 by default.
    skip_bad : bool, default=False
        Leave out rows that cannot be read.
    grows : bool, default=False
        Another program may be writing to the file: a last row that may not be whole is left to a
        later call.

    Attributes
    ----------
    left : str or None
        What was left to a later call, in words, if anything was.
    """

    def __init__(
        self,
        file: BinaryIO,
        source: str,
        *,
        encoding: str | None = None,
        delimiter: str | None = None,
        skip_bad: bool = False,
        grows: bool = False,
    ) -> None:
        self.source = source
        self.left: str | None = None
        self._grows = grows
        self.ends_batch = False  # there is no end but that of the input
        self._file, self._encoding, self._skip_bad = file, encoding, skip_bad
        self._delimiter = delimiter
        self._header: bytes | None = None  # of CSV; JSON has none
        self._n_columns = 0
        self._n_lines = 0
        self._started = False
        self._n_open = 0  # lines of a row that is within quotes at the end of a file that grows
        self._again: deque[bytes] = deque()  # lines after such a quote, to be read once more
        self._at_end = False

    def record(self) -> Record | None:
        """Return the next record, or None at the end; wait for it if there is none yet."""
        if self.left is not None:
            return None
        found = self._next()
        if found is not None and self._grows and not self._is_whole(found[1]):
            self.left = self._said_left(found[0])
            return None
        return found

    def _is_whole(self, record: bytes) -> bool:
        """Return whether a record is more than the beginning of one."""
        if self._header is None:
            return record.endswith(b"\n") or self._flaw_of_object(record) is None
        return record.endswith(b"\n") and not self._n_open

    def _said_left(self, row: int) -> str:
        """Say that the last row is left to the next call, and what to do if a quote is the cause.

        Another program may write the end of the quote later. No quote is bad in a file that grows.
        """
        n_after = self._n_open - 1
        if n_after < 1:
            return (
                f"{self.source} ends within row {row}, or the row has no line end; it is left to "
                "the next call"
            )
        said = f"the {n_after:,} lines after it" if n_after > 1 else "the line after it"
        hint = ", or hand the file in as standard input (-)" if self._skip_bad else ""
        return (
            f"{self.source}, row {row}: {OPEN} so far; the row and {said} are left to the next "
            f"call; if the end of the quote is missing, close it{hint}"
        )

    def _next(self) -> Record | None:
        if not self._started:
            self._started = True
            return self._first()
        while True:
            row = self._n_lines + 1
            record = self._read_record()
            if record is None:
                return None
            if record.strip():
                return row, record

    def table(self, records: Sequence[Record], texts: Collection[str] = ()) -> tuple[Any, Bad]:
        """Return records as a `pyarrow.Table`, and the bad rows; None if all are bad.

        `texts` are columns of CSV whose cells stay text, whatever they are.
        """
        check = self._flaw_of_object if self._header is None else self._flaw_of_row
        good, bad = [], []
        for row, record in records:
            flaw = check(record)
            if flaw is None:
                good.append(record if record.endswith(b"\n") else record + b"\n")
            elif self._skip_bad:
                bad.append((row, flaw))
            else:
                raise TableError(f"{self.source}, row {row}: {flaw}; mend it, {SKIP}")
        if not good:
            return None, bad
        if self._header is None:
            return read_json_lines(Text(b"".join(good)), self.source, skip_bad=False).data, bad
        text = Text(self._header + b"".join(good))
        about = text, self.source, self._delimiter
        return read_delimited(*about, skip_bad=False, texts=texts).data, bad

    def close(self) -> None:
        """Close the file, unless it is standard input, which belongs to the process."""
        if self._file is not sys.stdin.buffer:
            self._file.close()

    def _first(self) -> Record | None:
        """Return the first record, after the header if there is one."""
        line = self._line()
        while line is not None and not line.strip():
            line = self._line()
        if line is None:
            return None
        if line.lstrip()[:1] == b"{":
            return self._n_lines, line
        if line.lstrip()[:1] == b"[":
            raise TableError(
                f"{self.source} is a JSON list, which has no end to wait for; write one object a "
                "line"
            )
        self._header = line if line.endswith(b"\n") else line + b"\n"
        header = read_header(self._header, self.source, self._delimiter)
        self._delimiter, self._n_columns = header.delimiter, len(header.names)
        return self._next()

    def _read_record(self) -> bytes | None:
        """Return the next line, or for CSV all lines up to the end of a quoted cell."""
        line = self._line()
        if line is None or self._header is None or self._ends(line, quoted=False) or self._at_end:
            return line
        lines, length = [line], len(line)
        while (line := self._line()) is not None:
            lines.append(line)
            length += len(line)
            self._check_length(length)
            if self._ends(line, quoted=True):
                return b"".join(lines)
        return self._unclosed(lines)

    def _ends(self, line: bytes, *, quoted: bool) -> bool:
        if b'"' not in line:
            return not quoted
        with no_limit(len(line)):
            return ends_row(line, self._delimiter or ",", quoted=quoted)

    def _unclosed(self, lines: list[bytes]) -> bytes:
        """Return a record whose quote is open at the end of the input.

        If the input does not grow, its first line is a bad row, as it is where tables are read as a
        whole, and the lines after it are read again. None of them closes a quote that another one
        opens: so each is looked at twice, and no more often.
        """
        if self._grows:
            self._n_open = len(lines)
            return b"".join(lines)
        self._at_end = True
        self._again.extend(lines[1:])
        self._n_lines -= len(self._again)
        return lines[0]

    def _line(self) -> bytes | None:
        if self._again:
            self._n_lines += 1
            return self._again.popleft()
        line = self._file.readline(MAX_LINE + 1)
        if not line:
            return None
        self._n_lines += 1
        self._check_length(len(line))
        if self._n_lines == 1 and self._encoding is None:
            line = self._without_mark(line)
        if self._encoding is None:
            return line
        try:
            return line.decode(self._encoding).encode()
        except (LookupError, ValueError) as error:  # codecs that are for other things
            raise TableError(
                f"{self.source}, row {self._n_lines}: no {self._encoding} ({error}); {TRY}"
            ) from error

    def _without_mark(self, line: bytes) -> bytes:
        for mark, name in BOMS:
            if line.startswith(mark):
                if name == "utf-8":
                    return line[len(mark) :]
                raise TableError(
                    f"{self.source} is in {name.upper()}, and a stream is read line by line; "
                    "write it in UTF-8"
                )
        return line

    def _check_length(self, length: int) -> None:
        if length > MAX_LINE:
            raise TableError(
                f"{self.source}, row {self._n_lines}: the row has more than {MAX_LINE:,} bytes; "
                "it is too long for a document, or a quote is never closed"
            )

    def _flaw_of_object(self, record: bytes) -> str | None:
        found = load(record)
        if isinstance(found, str):
            return found
        return None if isinstance(found[0], dict) else "no object {...} of names and values"

    def _flaw_of_row(self, record: bytes) -> str | None:
        if b"\n" not in record[:-1] and not self._ends(record, quoted=False):
            return OPEN
        text = record.decode("utf-8", "surrogateescape")
        try:
            with no_limit(len(record)):
                lines = io.StringIO(text, newline="\n")
                rows = list(csv.reader(lines, delimiter=self._delimiter or ","))
        except csv.Error as error:
            return reason_of(error)
        if len(rows) != 1 or len(rows[0]) != self._n_columns:
            n_cells = len(rows[0]) if len(rows) == 1 else sum(map(len, rows))
            return f"{n_cells} cells where the header has {self._n_columns}"
        return flaw_of(text)


class Unpacked(io.RawIOBase):
    """What a file of gzip holds, up to the bound of all packed files, for a buffered reader.

    A file that is damaged, or unpacks to too much, is a `TableError`.
    """

    def __init__(self, path: Path, suffix: str) -> None:
        self._packed = gzip.open(path, "rb")  # noqa: SIM115, it is closed below
        self._stream, self._source = Bounded(self._packed, path.stat().st_size, suffix), path

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Put some bytes into a buffer, and return how many."""
        with explained(self._source):
            part: bytes = self._stream.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def close(self) -> None:
        """Close the file."""
        self._packed.close()
        super().close()


class TableSource:
    """The rows of tables, one table after the other; a batch ends where a table does."""

    left = None  # rows of tables are whole

    def __init__(self, tables: Iterable[Any], source: str, first: int = 1) -> None:
        self.source = source
        self._tables, self._data = iter(tables), None
        self._place, self._number, self._first = 0, first, first
        self.ends_batch = False

    def record(self) -> Record | None:
        """Return the next record, or None at the end."""
        while self._data is None or self._place == self._data.num_rows:
            self._data = next(self._tables, None)
            if self._data is None:
                return None
            self._place, self._first = 0, self._number
        row = self._data.slice(self._place, 1).to_pylist()[0]
        self._place, self._number = self._place + 1, self._number + 1
        self.ends_batch = self._place == self._data.num_rows
        return self._number - 1, json.dumps(row, default=str).encode()

    def table(self, records: Sequence[Record], texts: Collection[str] = ()) -> tuple[Any, Bad]:
        """Return records of the last table as a `pyarrow.Table`, and no bad rows."""
        assert self._data is not None
        rows = [row - self._first for row, _ in records]
        return self._data.take(rows), []

    def close(self) -> None:
        """Do nothing: tables are in memory."""


def open_source(
    name: str,
    *,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    skip_bad: bool = False,
) -> LineSource | TableSource:
    """Return the records of a file, a folder, or standard input (``-``)."""
    how: dict[str, Any] = {"encoding": encoding, "delimiter": delimiter, "skip_bad": skip_bad}
    if name == "-":
        return LineSource(sys.stdin.buffer, "standard input", **how)
    path = Path(name)
    check_there(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] == [".gz"]
    kind = (suffixes[:-1] if packed else suffixes)[-1:]
    if kind and kind[0] in LINES and path.is_file():
        if kind == [".tsv"]:
            how["delimiter"] = delimiter or "\t"
        file: Any = io.BufferedReader(Unpacked(path, *kind)) if packed else open(path, "rb")  # noqa: SIM115
        return LineSource(file, name, grows=not packed, **how)
    found = read_table(path, sheet=sheet, **how)
    return TableSource([found.data], name, found.first)


def mark_of(record: bytes) -> bytes:
    """Return what a record is known by."""
    return hashlib.blake2b(record.strip(), digest_size=16).digest()
