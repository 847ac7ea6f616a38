"""Tables: rows of documents from a file, a folder or standard input, and to a file."""

import gzip
import io
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as parquet

from coem.io.delimited import (
    check_delimiter,
    check_short,
    check_unique,
    read_delimited,
    unique_names,
)
from coem.io.encodings import SAMPLE, decode, said_of
from coem.io.excel import read_excel
from coem.io.folders import as_text, read_folder
from coem.io.formulas import as_text_cells, as_they_were
from coem.io.json_lines import read_json, read_json_lines
from coem.io.parquet_files import read_batches
from coem.io.rows import Bad, Parsed
from coem.io.sources import PACKED, Content, TableError, check_there, read_file, read_stdin
from coem.io.unpacking import TooLarge
from coem.io.whole import new_file

__all__ = ["Table", "TableError", "read_table", "write_table"]

KINDS = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".xlsx", ".parquet")
WRITTEN = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
DELIMITED = (".csv", ".tsv")
SHEETS = (".xls", ".xlsb", ".ods", ".numbers")  # which the programs that write them can save anew
ZIP = b"PK\x03\x04"
TIMES = re.compile("date|time|duration")  # in the names of types of Arrow
ZONE = re.compile(r"tz=([^\]]*)\]")
MAX_LINE = 64 << 20  # bytes
KNOWN = (
    "csv, tsv, jsonl, ndjson, json, xlsx, parquet (each also .gz or .zst), a folder of .txt, .md "
    "or .html, or - for stdin"
)


@dataclass(frozen=True)
class Table:
    """A table and where it is from."""

    data: Any
    """A `pyarrow.Table`. Columns are text, numbers where every cell is one, or lists."""

    source: str
    fingerprint: str
    """SHA-256 of what was read, unpacked."""

    bad: Bad = field(default_factory=list)
    """Rows that were left out: their numbers in the file, from 1, and why."""

    first: int = 1
    """Number of the first row in the file: after the header, if there is one."""

    notes: list[str] = field(default_factory=list)
    """What a reader has to know of how the file was read: an encoding that was guessed, say."""

    blank: list[int] = field(default_factory=list)
    """Rows of a sheet without any cell, between the others."""

    def number(self, row: int) -> int:
        """Return what number a row of `data` has in the file, a cell of several lines being one."""
        number = self.first + row
        for gap in sorted([*self.blank, *(bad for bad, _ in self.bad)]):
            number += gap <= number
        return number


def read_table(
    source: str | os.PathLike[str],
    *,
    encoding: str | None = None,
    skip_bad: bool = False,
    delimiter: str | None = None,
    sheet: str | None = None,
    max_line: int = MAX_LINE,
    plain: bool = False,
) -> Table:
    """Read a table.

    Parameters
    ----------
    source : path
        A file, whose extension says what it is: ``.csv``, ``.tsv``, ``.jsonl`` or ``.ndjson`` (one
        object a line), ``.json`` (a list of objects, perhaps within an object), ``.xlsx``,
        ``.parquet``, each also ``.gz`` or ``.zst``; a folder with ``.txt``, ``.md`` and ``.html``
        files (columns `id`, `text` and `label`, the first sub-folder); or ``"-"`` for standard
        input.
    encoding : str, optional
        The encoding of the text. By default what the byte order mark says, or UTF-8. If the text
        is not UTF-8, UTF-16 or cp1252 is guessed, and `notes` says so.
    skip_bad : bool, default=False
        Leave out rows that cannot be read, and list them in `bad`.
    delimiter : str, optional
        Between the cells of a CSV. Otherwise that of comma, semicolon, tab and bar which the
        header has most of.
    sheet : str, optional
        The sheet of a workbook. Otherwise the first.
    max_line : int, default=67108864
        Bytes of the longest line that is read.
    plain : bool, default=False
        A file, or standard input, is one plain text whatever its extension, also .gz or .zst: one
        row with the columns `id`, its name, and `text`.

    Returns
    -------
    table : Table
        The rows, in their order.

    Raises
    ------
    TableError
        In one sentence: the file, the row as people count them, and what can be done.
    """
    check_delimiter(delimiter)
    reading = _Reading(encoding, skip_bad, delimiter, sheet)
    if str(source) == "-":
        content = read_stdin(max_line)
        return _read_plain(content, "stdin", encoding) if plain else _parse(content, reading)
    path = Path(source)
    check_there(path)
    if path.is_dir():
        check_sheet(sheet, ".txt", str(path))
        found, fingerprint = read_folder(path, encoding, skip_bad, max_line)
        return _as_table(found, str(path), fingerprint)
    if plain:
        packed = path.suffix.lower() if path.suffix.lower() in PACKED else ""
        return _read_plain(read_file(path, ".txt", packed, max_line), path.name, encoding)
    suffix, packed = suffixes(path, KINDS)
    return _parse(read_file(path, suffix, packed, max_line), reading)


class _Reading(NamedTuple):
    """How to read a table."""

    encoding: str | None
    skip_bad: bool
    delimiter: str | None
    sheet: str | None


def suffixes(path: Path, kinds: tuple[str, ...]) -> tuple[str, str]:
    """Return what a file is and how it is packed, by its name."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes.pop() if suffixes and suffixes[-1] in PACKED else ""
    kind = suffixes[-1] if suffixes else ""
    if kind in SHEETS:
        raise TableError(f"{path}: {kind} is not read; save it as .xlsx or .csv")
    if kind not in kinds:
        raise TableError(f"{path}: the extension {kind!r} is not known; give {KNOWN}")
    return kind, packed


def _parse(content: Content, how: _Reading) -> Table:
    """Return the table that some content is."""
    suffix, source = content.suffix, content.source
    check_sheet(how.sheet, suffix, source)
    if suffix == ".parquet":
        return _as_table(Parsed(_read_parquet(content)), source, content.fingerprint)
    if suffix == ".xlsx":
        found = read_excel(content, how.sheet, skip_bad=how.skip_bad)
        return _as_table(found, source, content.fingerprint)
    if content.data.startswith(ZIP):
        raise TableError(
            f"{source} is an Excel workbook or a .zip file; name it .xlsx or unpack it"
        )
    text = decode(content, how.encoding)
    kind = suffix or kind_of(text.data)
    if kind == ".json":
        found = read_json(text, source, skip_bad=how.skip_bad)
    elif kind in (".jsonl", ".ndjson"):
        found = read_json_lines(text, source, skip_bad=how.skip_bad)
    else:
        delimiter = "\t" if suffix == ".tsv" and how.delimiter is None else how.delimiter
        found = read_delimited(text, source, delimiter, skip_bad=how.skip_bad)
    return _as_table(found, source, content.fingerprint, said_of(text, source))


def _as_table(found: Parsed, source: str, fingerprint: str, notes: Sequence[str] = ()) -> Table:
    said = [*notes, *found.notes]
    return Table(found.data, source, fingerprint, found.bad, found.first, said, found.blank)


def check_sheet(sheet: str | None, suffix: str, source: str) -> None:
    """Refuse a sheet of what has none."""
    if sheet is not None and suffix != ".xlsx":
        raise TableError(f"{source} has no sheets: a sheet (--sheet, sheet=) is for .xlsx files")


def kind_of(data: bytes) -> str:
    """Return what text without a name is."""
    first = data[:SAMPLE].lstrip()[:1]
    return {b"{": ".jsonl", b"[": ".json"}.get(first, ".csv")


def _read_parquet(content: Content) -> Any:
    """Return the table of a parquet file, with text as plain strings."""
    source = content.source
    try:
        file = pa.BufferReader(content.data)
        names = parquet.read_schema(file).names
        parts = [*read_batches(file, content.n_packed)]
    except TooLarge as error:
        raise TableError(f"{source} {error}") from error
    except (pa.ArrowException, OSError, ValueError) as error:  # also names that are not UTF-8
        raise TableError(no_parquet(source, error)) from error
    check_unique(names, source)
    check_short(names, source, "shorten it")
    if not names or not parts:
        raise TableError(f"{source} has no {'rows' if names else 'columns'}")
    found = pa.concat_tables(parts).rename_columns(unique_names(names))
    check_times(found, source)
    return found


def no_parquet(source: str, error: Exception) -> str:
    """Say what is wrong with a parquet file."""
    reason = " ".join(str(error).split())[:120]
    return f"{source} is not a parquet file, or is damaged ({reason}); write it again"


def check_times(data: Any, source: str) -> None:
    """Refuse dates and times that Python has not, such as the year 20000."""
    for name, column in zip(data.column_names, data.columns, strict=True):
        if not TIMES.search(str(column.type)):
            continue
        try:
            column.to_pylist() if pa.types.is_nested(column.type) else _ends(column)
        except Exception as error:  # OverflowError, KeyError of a zone, and others of pyarrow
            raise TableError(
                f"{source}: column {name!r} has {_no_time(column.type, error)}, or leave the "
                "column out"
            ) from error


def _ends(column: Any) -> list[Any]:
    """Return the first and the last time of a column; Arrow does not compare durations or codes."""
    if pa.types.is_dictionary(column.type):  # such as a column of categories
        column = column.cast(column.type.value_type)
    is_duration = pa.types.is_duration(column.type)
    found = pc.min_max(column.cast(pa.int64()) if is_duration else column)
    return [found[end].cast(column.type).as_py() for end in ("min", "max")]


def _no_time(kind: Any, error: Exception) -> str:
    """Say why times of a type cannot be read, and what to do."""
    for zone in ZONE.findall(str(kind)):
        try:
            pa.scalar(0, pa.timestamp("s", zone)).as_py()
        except Exception:  # as above
            return f"the time zone {zone!r:.60}, which is not known here; write its times in UTC"
    reason = " ".join(str(error).split())[:120]
    return f"a date or time that cannot be read ({reason}); mend it"


# -- plain text ---------------------------------------------------------------------------------


def _read_plain(content: Content, name: str, encoding: str | None) -> Table:
    """Return a table of one row: a text and its name."""
    text = decode(content, encoding)
    if text.flaw is not None:
        row, reason = text.flaw
        raise TableError(f"{content.source}, line {row}: {reason}")
    shown = as_text(Path(name))
    data = pa.table({"id": [shown], "text": [text.data.decode()]})
    notes = said_of(text, content.source)
    return Table(data, content.source, content.fingerprint, notes=notes)


# -- write --------------------------------------------------------------------------------------


def write_table(data: Any, path: str | os.PathLike[str], *, safe: bool = False) -> None:
    """Write a `pyarrow.Table` to a file, and replace an existing file.

    The file is written completely or not at all.

    Parameters
    ----------
    data : pyarrow.Table
        The rows. In a CSV, lists are JSON.
    path : path
        Its extension says how: ``.csv``, ``.tsv``, ``.jsonl``, ``.ndjson``, ``.parquet``, each also
        ``.gz`` or ``.zst``.
    safe : bool, default=False
        Put an apostrophe before cells of a CSV that a spreadsheet would run as formulas. Numbers
        stay unchanged. Formulas that have apostrophes get one more: take one off to get the cell.

    Raises
    ------
    TableError
        If the extension is not known.
    OSError
        If the file cannot be written.
    """
    suffix, packed = suffixes(Path(path), WRITTEN)
    data = _made_safe(data) if safe and suffix in DELIMITED else data
    with new_file(path) as file:
        if not packed:
            WRITERS[suffix](data, file)
            return
        if packed == ".gz":
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as stream:  # no date: equal is equal
                WRITERS[suffix](data, stream)
            return
        sink = pa.BufferOutputStream()  # a stream of pyarrow closes the file that it writes to
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            WRITERS[suffix](data, stream)
        file.write(sink.getvalue())


def table_as(suffix: str, data: Any, *, safe: bool = False) -> bytes:
    """Return the bytes that `write_table` would write to a file with this extension."""
    data = _made_safe(data) if safe and suffix in DELIMITED else data
    sink = io.BytesIO()
    WRITERS[suffix](data, sink)
    return sink.getvalue()


def _made_safe(data: Any) -> Any:
    """Return a table whose cells and names no spreadsheet takes for formulas."""
    names = as_text_cells(pa.array(data.column_names, pa.string())).to_pylist()
    return pa.table([as_text_cells(_flat(column)) for column in data.columns], names=names)


def as_it_was(data: Any) -> Any:
    """Return a table that was written safely and read again, without the apostrophes."""
    names = as_they_were(pa.array(data.column_names, pa.string())).to_pylist()
    return pa.table([as_they_were(column) for column in data.columns], names=names)


def _write_csv(data: Any, file: Any, delimiter: str = ",") -> None:
    flat = pa.table([_flat(column) for column in data.columns], names=data.column_names)
    pacsv.write_csv(flat, file, pacsv.WriteOptions(delimiter=delimiter))


def _flat(column: Any) -> Any:
    """Return a column without lists: as JSON, if it has any."""
    if not pa.types.is_nested(column.type):
        return column
    values = column.to_pylist()
    return pa.array([v if v is None else json.dumps(v, ensure_ascii=False) for v in values])


def _write_json_lines(data: Any, file: Any) -> None:
    for batch in data.to_batches(max_chunksize=10_000):
        lines = (json.dumps(row, ensure_ascii=False, default=str) for row in batch.to_pylist())
        file.write("".join(f"{line}\n" for line in lines).encode())


WRITERS: dict[str, Callable[[Any, Any], None]] = {
    ".csv": _write_csv,
    ".tsv": lambda data, file: _write_csv(data, file, "\t"),
    ".jsonl": _write_json_lines,
    ".ndjson": _write_json_lines,
    ".parquet": lambda data, file: parquet.write_table(data, file),
}
