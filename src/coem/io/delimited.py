"""CSV and its like: fast where all is well, row by row where something has to be explained."""

import csv
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from coem.io.encodings import Text, flaw_of
from coem.io.numbers import is_number, with_numbers
from coem.io.row_by_row import Rows, no_limit, read_rows, reason_of
from coem.io.rows import Bad, Parsed
from coem.io.sources import TableError, lines_of

DELIMITERS = ",;\t|"
LONGEST_NAME = 500  # characters: a longer name of a column is a document
MOST_WORDS = 8  # of a name, unless it is a question of a form, as those end
FORM = ("?", ":", "]")
LARGEST_BLOCK = (1 << 31) - 1


def check_delimiter(delimiter: str | None) -> None:
    """Refuse what cannot stand between cells."""
    if delimiter is None:
        return
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\x00':
        raise ValueError(
            f"the delimiter {delimiter!r} must be one ASCII character, such as ; or a tab, and no "
            "quote or end of a line"
        )


def read_delimited(
    text: Text,
    source: str,
    delimiter: str | None,
    *,
    skip_bad: bool,
    texts: Collection[str] = (),
) -> Parsed:
    """Return rows of cells under a header; `texts` are columns without numbers."""
    if text.flaw is not None and not skip_bad:
        row, reason = text.flaw
        raise TableError(f"{source}, row {row}: {reason}")
    header = read_header(text.data, source, delimiter)
    if not text.data[header.end : header.end + 99].strip() and not text.data[header.end :].strip():
        raise TableError(no_rows(source))
    odd = text.data.count(b'"', header.end) % 2 == 1  # a quote may never be closed
    data = None if text.flaw is not None or odd else _read_fast(text.data, header)
    bad: Bad = []
    if data is None:
        data, bad = _read_slowly(text.data, header, source, skip_bad)
    columns = dict(zip(header.names, data.columns, strict=True))
    others = {name: column for name, column in columns.items() if name not in texts}
    numbers, notes = with_numbers(others, commas=header.delimiter == ";")
    return Parsed(pa.table(columns | numbers), bad, header.n_lines + 1, notes)


def no_rows(source: str) -> str:
    """Say that there is a header alone."""
    return f"{source} has a header and no rows; add some"


# -- the header ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Header:
    """Names of the columns, and where the rows begin."""

    names: list[str]
    delimiter: str
    end: int
    """Byte after the header."""

    n_lines: int
    """Lines up to there."""


def read_header(data: bytes, source: str, delimiter: str | None) -> Header:
    """Return the header: the first row that is not blank."""
    end = n_lines = 0
    for line in lines_of(data):
        if line.strip():
            break
        end, n_lines = end + len(line), n_lines + 1
    else:
        raise TableError(f"{source} is empty; a table has a header and rows")
    delimiter = delimiter or _guess_delimiter(line)
    taken: list[bytes] = []

    def take() -> Iterator[str]:
        for line in lines_of(data, end):
            taken.append(line)
            yield line.decode("utf-8", "surrogateescape")

    try:
        with no_limit(len(data)):
            cells = next(csv.reader(take(), delimiter=delimiter))
    except csv.Error as error:
        raise TableError(
            f"{source}, row {n_lines + 1}: the header has {reason_of(error)}; mend it, or end all "
            "lines in the same way"
        ) from error
    names = [cell.strip() for cell in cells]
    names = check_names(names, source, n_lines + 1)
    return Header(names, delimiter, end + sum(map(len, taken)), n_lines + len(taken))


def _guess_delimiter(line: bytes) -> str:
    """Return what most likely stands between the cells of a header."""
    outside = b"".join(line.split(b'"')[::2]).decode("utf-8", "replace")
    counts = [outside.count(delimiter) for delimiter in DELIMITERS]
    return DELIMITERS[counts.index(max(counts))]


def check_names(names: list[str], source: str, row: int) -> list[str]:
    """Return the names of a header, which must be one; columns without a name get one."""
    where = f"{source}, row {row}"
    for name in names:
        flaw = flaw_of(name)
        if flaw is not None:
            raise TableError(f"{where}: the header has {flaw}")
    if all(is_number(name) for name in names if name) and any(names):
        raise TableError(
            f"{where}: all cells are numbers, so that this looks like data; add a header, a first "
            "row with the names of the columns"
        )
    check_short(names, where, "add a header, a first row with the names of the columns")
    for name in names:
        if len(name.split()) > MOST_WORDS and not name.endswith(FORM):
            raise TableError(
                f"{where}: the first row looks like data, not like names of columns, for "
                f"{name[:40] + '…'!r} has more than {MOST_WORDS} words; add a header line"
            )
    check_unique(names, where)
    return unique_names(names)


def check_short(names: list[str], where: str, advice: str) -> None:
    """Refuse names that are texts."""
    if any(len(name) > LONGEST_NAME or "\n" in name for name in names):
        raise TableError(f"{where}: a name of a column is as long as a document; {advice}")


def unique_names(names: list[str]) -> list[str]:
    """Return names with one for each column that has none, such as "column 2"."""
    taken, found = set(names), []
    for i, name in enumerate(names):
        tries = (f"column {i + 1} ({n})" for n in count(2))
        own = name or next(new for new in chain([f"column {i + 1}"], tries) if new not in taken)
        taken.add(own)
        found.append(own)
    return found


def check_unique(names: list[str], where: str) -> None:
    """Refuse two columns of one name."""
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        if name and name in seen:
            raise TableError(
                f"{where}: columns {seen[name] + 1} and {i + 1} are both called {name!r}; rename "
                "one (or add a header, if this is data)"
            )
        seen[name] = i


# -- rows, fast ---------------------------------------------------------------------------------


def _read_fast(data: bytes, header: Header) -> Any:
    """Return all cells as text, or None if a row is bad."""
    body = pa.py_buffer(data).slice(header.end)
    # A cell that is longer than a block is an error; one block for all is slower, but reads it.
    for block in (1 << 20, min(len(body) + 1, LARGEST_BLOCK)):
        try:
            found = pacsv.read_csv(pa.BufferReader(body), **cells_as_text(header, block))
        except pa.ArrowInvalid:
            continue
        return None if is_open(found, lambda size: data[-size:]) else found
    return None


def is_open(table: Any, tail: Callable[[int], bytes]) -> bool:
    """Return whether the quote of the last cell may never be closed, so that it took other rows.

    The number of quotes does not say so: a cell that begins with a letter may have one, too. `tail`
    returns so many of the last bytes of the file.
    """
    cell = table.column(table.num_columns - 1)[-1].as_py() if table.num_rows else ""
    rest: bytes = b'"' + cell.encode().replace(b'"', b'""')
    return len(cell) > 0 and tail(len(rest)) == rest


def cells_as_text(header: Header, block: int) -> dict[str, Any]:
    """Return how pyarrow is to read the rows below a header."""
    names = [str(i) for i in range(len(header.names))]
    as_text = dict.fromkeys(names, pa.string())
    return {
        "read_options": pacsv.ReadOptions(column_names=names, block_size=block),
        "parse_options": pacsv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True),
        "convert_options": pacsv.ConvertOptions(column_types=as_text, check_utf8=False),
    }


def no_good_row(source: str, bad: Bad) -> str:
    """Say that all rows are bad, and what is wrong with the first."""
    row, reason = bad[0]
    return f"{source} has no good row; the first, row {row}, has {reason}"


# -- rows, one by one ---------------------------------------------------------------------------


def _read_slowly(data: bytes, header: Header, source: str, skip_bad: bool) -> tuple[Any, Bad]:
    """Read row by row, which says what is wrong with which."""
    rows = Rows(source, len(header.names), skip_bad)
    for _ in read_rows(data, header.end, header.n_lines, header.delimiter, rows):
        pass
    if not rows.columns[0]:
        raise TableError(no_good_row(source, rows.bad))
    arrays = [pa.array(column, pa.string()) for column in rows.columns]
    return pa.table(arrays, names=[str(i) for i in range(len(arrays))]), rows.bad
