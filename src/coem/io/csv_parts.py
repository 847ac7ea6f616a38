"""CSV and its like, one part after the other."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from coem.io.delimited import Header, cells_as_text, is_open, no_good_row, no_rows, read_header
from coem.io.row_by_row import Rows, Tail, read_rows
from coem.io.rows import Bad
from coem.io.sources import TableError
from coem.io.text_files import PlainText

BLOCKS = (1 << 22, 1 << 27)  # bytes that are parsed at once; cells longer than the first are rare
HEADS = (1 << 16, 1 << 27)  # bytes that the header is looked for in
ROWS = 10_000  # read one by one before they are handed on
SLOWLY = 0  # in the place of a size of blocks: row by row


@dataclass(frozen=True)
class CsvParts:
    """The rows of a CSV file as tables of text."""

    text: PlainText
    header: Header
    block: int
    """Bytes that are parsed at once, or `SLOWLY`."""

    n_rows: int = 0
    bad: Bad = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return self.header.names

    @property
    def first(self) -> int:
        """Number of the first row in the file."""
        return self.header.n_lines + 1

    def __iter__(self) -> Iterator[Any]:
        """Return tables, all columns as text; bad rows were refused, or are left out."""
        yield from self._slow([]) if self.block == SLOWLY else self._fast()

    def _fast(self) -> Iterator[Any]:
        with self.text.open(self.text.start + self.header.end) as file:
            reader = pacsv.open_csv(file, **cells_as_text(self.header, self.block))
            for batch in reader:
                if batch.num_rows:
                    yield pa.table(batch.columns, names=self.names)

    def _slow(self, bad: Bad) -> Iterator[Any]:
        with self.text.open() as file:
            rows = Rows(self.text.source, len(self.names), True, bad=bad)
            yield from self._rows_of(file, rows)

    def _rows_of(self, file: Any, rows: Rows) -> Iterator[Any]:
        start = self.text.start + self.header.end
        n_lines, delimiter = self.header.n_lines, self.header.delimiter
        for _ in read_rows(Tail(file), start, n_lines, delimiter, rows):
            if len(rows.columns[0]) == ROWS:
                yield self._table(rows)
        if rows.columns[0]:
            yield self._table(rows)

    def _table(self, rows: Rows) -> Any:
        return pa.table([pa.array(c, pa.string()) for c in rows.take()], names=self.names)


def read_csv(
    text: PlainText, delimiter: str | None, look: Any, *, skip_bad: bool
) -> tuple[CsvParts, Any]:
    """Find out how a CSV file is to be read, and look at all of its rows.

    Parameters
    ----------
    text : PlainText
    delimiter : str, optional
    look : function of Header
        Returns an object whose `add` is called with the columns of every part.
    skip_bad : bool

    Returns
    -------
    parts : CsvParts
    looked : object
        What `look` returned for the way of reading that worked.
    """
    if text.flaw is not None and not skip_bad:
        row, reason = text.flaw
        raise TableError(f"{text.source}, row {row}: {reason}")
    header = _header(text, delimiter)
    above = text.head(header.end).count(b'"')
    odd = (text.n_quotes - above) % 2 == 1  # a quote may never be closed
    for block in () if text.flaw is not None or odd else BLOCKS:
        parts, looked, n_rows = CsvParts(text, header, block), look(header), 0
        try:
            for table in parts:
                looked.add(_columns(table))
                n_rows += table.num_rows
        except pa.ArrowInvalid:
            continue
        if n_rows == 0:
            raise TableError(no_rows(text.source))
        if is_open(table, text.tail):
            break
        return replace(parts, n_rows=n_rows), looked
    return _read_slowly(CsvParts(text, header, SLOWLY), look(header), skip_bad)


def _read_slowly(parts: CsvParts, looked: Any, skip_bad: bool) -> tuple[CsvParts, Any]:
    rows, n_rows = Rows(parts.text.source, len(parts.names), skip_bad), 0
    with parts.text.open() as file:
        for table in parts._rows_of(file, rows):
            looked.add(_columns(table))
            n_rows += table.num_rows
    if not n_rows:
        source = parts.text.source
        raise TableError(no_good_row(source, rows.bad) if rows.bad else no_rows(source))
    return replace(parts, n_rows=n_rows, bad=rows.bad), looked


def _header(text: PlainText, delimiter: str | None) -> Header:
    """Return the header, which is looked for at the beginning."""
    for size in HEADS:
        head = text.head(size)
        whole = len(head) < size
        header = read_header(head, text.source, delimiter) if whole or b"\n" in head else None
        if header is not None and (whole or header.end < len(head)):
            return header
    raise TableError(f"{text.source}: the header is too long; a table has names of columns there")


def _columns(table: Any) -> dict[str, Any]:
    return dict(zip(table.column_names, table.columns, strict=True))
