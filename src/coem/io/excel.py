"""Excel workbooks, read by openpyxl if it is installed."""

import datetime
import io
import warnings
import zipfile
import zlib
from typing import Any

import pyarrow as pa

from coem.io.delimited import check_names
from coem.io.headers import find_header
from coem.io.json_lines import as_column
from coem.io.numbers import MISSING, with_numbers
from coem.io.rows import SKIP, Bad, Parsed
from coem.io.sources import Content, TableError
from coem.io.unpacking import CELL, ROW, TooLarge, most_unpacked
from coem.phrases import first_few

INSTALL = "to read Excel files install openpyxl: pip install 'coem[excel]'"
OLD = b"\xd0\xcf\x11\xe0"  # how .xls files begin, and workbooks with a password
ROWS = 1 << 20  # of a sheet at most, as Excel has it
CELLS = 50_000_000  # of a sheet at most
BROKEN = (
    *(zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, AttributeError),
    *(IndexError, EOFError, OSError, SyntaxError, RuntimeError, NotImplementedError),
)  # what openpyxl, zipfile and the readers of XML raise


def read_excel(content: Content, sheet: str | None, *, skip_bad: bool) -> Parsed:
    """Return the rows of a sheet of a workbook, the first or the one that is named."""
    source = content.source
    if content.data.startswith(OLD):
        raise TableError(
            f"{source} is an old .xls file or has a password; save it as .xlsx or .csv"
        )
    rows, name, names = _read_sheet(content, sheet)
    notes = []
    if len(names) > 1 and sheet is None:
        others = [other for other in names if other != name]
        left = first_few(map(repr, others))
        which = "first sheet" if name == names[0] else "first sheet with rows"
        notes.append(f"the {which}, {name!r}, is read, and not {left} (--sheet, sheet=)")
    where = f"{source}, sheet {name!r}"
    found = _table(rows, where, skip_bad)
    return Parsed(found.data, found.bad, found.first, notes + found.notes, found.blank)


def _read_sheet(content: Content, sheet: str | None) -> tuple[list[Any], str, list[str]]:
    """Return the rows of a sheet as tuples of values, its name, and the names of all sheets."""
    try:
        import openpyxl
    except ImportError as error:
        raise TableError(f"{content.source}: {INSTALL}") from error
    try:
        _check_size(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and rules, which do not matter here
            book = openpyxl.load_workbook(io.BytesIO(content.data), read_only=True, data_only=True)
            names = [found.title for found in book.worksheets]
            if sheet is None:
                name, rows = _first_with_rows(book, names, content)
            else:
                name = _checked(names, sheet, content.source)
                rows = _rows_of(book, name, content)
            book.close()
    except TableError:
        raise
    except TooLarge as error:
        raise TableError(f"{content.source} {error}") from error
    except BROKEN as error:
        why = " ".join(str(error).split())[:120] or type(error).__name__
        raise TableError(
            f"{content.source} is not an Excel workbook, or is damaged ({why}); save it again as "
            ".xlsx or .csv"
        ) from error
    return rows, name, names


def _rows_of(book: Any, name: str, content: Content) -> list[Any]:
    """Return the rows of a sheet, None for blank cells."""
    book[name].reset_dimensions()  # what the file says of its size is often wrong
    rows: list[Any] = []
    left, room = CELLS, most_unpacked(content.n_packed)
    for row in book[name].iter_rows(values_only=True):
        left -= len(row)
        # Any number of cells share a text, and one cell far to the right makes a row of blanks.
        room -= ROW + CELL * len(row) + sum(len(cell) for cell in row if isinstance(cell, str))
        if room < 0:
            raise TooLarge(content.n_packed)
        if left < 0 or len(rows) == ROWS:  # a cell may say that it is in row 1,000,000,000
            raise ValueError(f"sheet {name!r} has more than {ROWS:,} rows or {CELLS:,} cells")
        rows.append(tuple(_clean(cell) for cell in row))
    return rows


def _first_with_rows(book: Any, names: list[str], content: Content) -> tuple[str, list[Any]]:
    """Return the first sheet that has a header and rows; else the first that has a cell."""
    filled: dict[str, list[Any]] = {}
    for name in names:
        rows = _rows_of(book, name, content)
        n_filled = sum(_n_filled(row) > 0 for row in rows)
        if n_filled > 1:
            return name, rows
        if n_filled:
            filled[name] = rows
    if not filled and len(names) == 1:
        return names[0], []
    if not filled:
        known = first_few(map(repr, names)) or "none"
        raise TableError(f"{content.source} has no sheet with cells (sheets: {known}); fill one")
    return next(iter(filled.items()))


def _check_size(content: Content) -> None:
    """Refuse a workbook that is packed to fill the memory."""
    with zipfile.ZipFile(io.BytesIO(content.data)) as packed:
        if sum(part.file_size for part in packed.infolist()) > most_unpacked(content.n_packed):
            raise TooLarge(content.n_packed)


def _checked(names: list[str], sheet: str, source: str) -> str:
    """Return the name of a sheet, which must be there."""
    if sheet not in names:
        known = first_few(map(repr, names))
        raise TableError(f"{source} has no sheet {sheet!r}; it has {known} (--sheet, sheet=)")
    return sheet


# -- rows ---------------------------------------------------------------------------------------


def _table(rows: list[Any], where: str, skip_bad: bool) -> Parsed:
    """Return rows of cells under a header: the first row that is not blank, or no title."""
    filled = [i for i, row in enumerate(rows) if _n_filled(row)]
    if not filled:
        raise TableError(f"{where} is empty; a table has a header and rows")
    if len(filled) == 1:
        raise TableError(f"{where} has a header and no rows; add some")
    place = find_header([rows[i] for i in filled], filled, where)
    head, above, filled = filled[place], filled[:place], filled[place + 1 :]
    header = ["" if cell is None else as_text(cell).strip() for cell in rows[head]]
    while not header[-1]:
        header.pop()
    names = check_names(header, where, head + 1)
    good, bad = _fitting(rows, filled, len(names), where, skip_bad)
    columns = {name: _column([rows[i][j : j + 1] for i in good]) for j, name in enumerate(names)}
    texts = {name: column for name, column in columns.items() if column.type == pa.string()}
    texts, notes = with_numbers(texts, commas=False)
    blank = sorted(set(range(head + 2, len(rows) + 1)) - {i + 1 for i in filled})
    notes = [*_said_above([rows[i] for i in above], head), *notes]
    return Parsed(pa.table(columns | texts), bad, head + 2, notes, blank)


def _said_above(above: list[Any], head: int) -> list[str]:
    """Say which lines above the header are left out."""
    if not above:
        return []
    lines = [" ".join(as_text(cell) for cell in row if cell is not None) for row in above]
    shown = ", ".join(f"{line[:60]!r}" for line in lines[:3]) + (" ..." if len(lines) > 3 else "")
    return [f"the header is row {head + 1}; left out above it: {shown}"]


def _fitting(
    rows: list[Any], filled: list[int], width: int, where: str, skip_bad: bool
) -> tuple[list[int], Bad]:
    """Return the rows that have no cells beside the columns of the header, and the others."""
    good: list[int] = []
    bad: Bad = []
    for i in filled:
        beside = next((j for j in range(width, len(rows[i])) if rows[i][j] is not None), None)
        if beside is None:
            good.append(i)
        else:
            bad.append((i + 1, f"column {beside + 1} has a value, but no name in the header"))
    if bad and not (good and skip_bad):
        row, reason = bad[0]
        if not good:
            raise TableError(f"{where} has no good row; in the first, row {row}, {reason}; name it")
        raise TableError(f"{where}, row {row}: {reason}; name it, {SKIP}")
    return good, bad


def _n_filled(row: Any) -> int:
    return sum(cell is not None for cell in row)


def _clean(cell: Any) -> Any:
    """Return the value of a cell, None if it is blank."""
    return None if isinstance(cell, str) and not cell.strip() else cell


def _column(cells: list[tuple[Any, ...]]) -> Any:
    """Return the cells of a column as values of one type; as text, if they have none in common."""
    values = [cell[0] if cell else None for cell in cells]
    others = [value for value in values if value is not None and not isinstance(value, str)]
    if others and all(isinstance(v, int | float) and not isinstance(v, bool) for v in others):
        values = [None if isinstance(v, str) and v.strip() in MISSING else v for v in values]
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, datetime.date) for value in there):
        return pa.array(values, pa.timestamp("us"))
    if len({isinstance(value, str) for value in there}) > 1 or any(map(_is_time, there)):
        values = [None if value is None else as_text(value) for value in values]
    return as_column(values)


def _is_time(value: Any) -> bool:
    return isinstance(value, datetime.date | datetime.time | datetime.timedelta)


def as_text(value: Any) -> str:
    """Return the text that stands for a value of a cell."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)
