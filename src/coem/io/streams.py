"""Tables of any size: rows of several files, folders or standard input, one part after the other.

Rows, names and types are those that `coem.io.tables.read_table` gives, though no file is in memory
as a whole. All files are read twice: once to find out what the columns hold, and once for the rows.
"""

import copy
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as parquet

from coem.io.csv_parts import CsvParts, read_csv
from coem.io.delimited import check_delimiter, check_short, check_unique, unique_names
from coem.io.encodings import said_of
from coem.io.folders import Folder
from coem.io.json_parts import JsonColumns, JsonParts, Leaf, read_json_parts
from coem.io.number_columns import Casting, NumberColumns
from coem.io.parquet_files import ROWS, plain_column, read_batches
from coem.io.row_blocks import common, fitted
from coem.io.rows import Bad
from coem.io.sources import PACKED, TableError, check_there
from coem.io.tables import (
    KINDS,
    MAX_LINE,
    check_sheet,
    check_times,
    kind_of,
    no_parquet,
    read_table,
    suffixes,
)
from coem.io.text_files import PlainText, fingerprint_of, plain_text, spool_stdin, unpack
from coem.io.unpacking import TooLarge
from coem.stored import is_corpus

STDIN = "-"
FILES = 1000  # of a folder that are read before they are handed on
BYTES = 1 << 24  # of their texts
AS_WHOLE = (".json", ".xlsx")  # which have no parts


@dataclass(frozen=True)
class Reading:
    """How files are read, as in `read_table`."""

    encoding: str | None = None
    skip_bad: bool = False
    delimiter: str | None = None
    sheet: str | None = None


class Part(Protocol):
    """One source of rows, after the first look at it."""

    source: str
    fingerprint: str
    n_rows: int
    bad: Bad
    first: int
    notes: list[str]

    @property
    def nothing(self) -> Collection[str]:
        """Columns without any value, whose type says nothing."""

    def schema(self) -> Any:
        """Return the names and types of the columns."""

    def tables(self) -> Iterator[Any]:
        """Return the rows."""


class Stream:
    """The rows of several sources as tables of the same columns.

    Parameters
    ----------
    sources : list of path
        Files, folders, or ``"-"`` for standard input.
    scratch : Path
        A folder for what must be unpacked, recoded or read twice.
    reading : Reading
    known : pyarrow.Schema, optional
        Columns that the rows are added to. Cells of text stay as they are written, and a column
        without any value has the type that it has there.

    Attributes
    ----------
    schema : pyarrow.Schema
        A column that a source does not have is empty in its rows.
    n_rows : int
    notes : list of str
    """

    def __init__(
        self, sources: list[str], scratch: Path, reading: Reading, known: Any = None
    ) -> None:
        check_delimiter(reading.delimiter)
        self._texts = [own.name for own in known or () if pa.types.is_string(own.type)]
        self._reading, self._scratch = reading, scratch
        self._numbers: NumberColumns | None = None
        self._objects = JsonColumns()
        self._castings: dict[str, Casting] = {}
        self._nothing: set[str] = set()
        self._leaves: list[Leaf] = []
        self.parts: list[Part] = [self._look(source, i) for i, source in enumerate(sources)]
        self.notes = [note for part in self.parts for note in part.notes]
        self._decide()
        self.schema = common(self.parts, known)
        self.n_rows = sum(part.n_rows for part in self.parts)

    def __iter__(self) -> Iterator[Any]:
        """Return tables with the columns of `schema`, in the order of the sources."""
        tables = (table for part in self.parts for table in part.tables())
        yield from fitted(tables, self.schema, self.place)

    def place(self, row: int) -> str:
        """Return where a row is in its file, in the words of errors."""
        for part in self.parts:
            if row < part.n_rows:
                return f"{part.source}, row {_number(part, row)}"
            row -= part.n_rows
        raise IndexError(row)

    @property
    def bad(self) -> list[tuple[str, int, str]]:
        """The rows that were left out: their source, number and what is wrong."""
        return [(part.source, row, why) for part in self.parts for row, why in part.bad]

    # -- the first look --

    def _look(self, source: str, number: int) -> Part:
        place = self._scratch / f"source-{number}"
        if source == STDIN:
            path, kind = spool_stdin(self._scratch)
            if kind in PACKED:
                path, kind = unpack(path, kind, place, "standard input"), ""
            return self._look_at_file(path, kind, "standard input", place)
        path = Path(source)
        check_there(path)
        if is_corpus(path):
            raise TableError(f"{source} is a corpus; name the files that it was made of")
        if path.is_dir():
            check_sheet(self._reading.sheet, ".txt", source)
            return _FolderPart(path, self._reading)
        suffix, packed = suffixes(path, KINDS)
        size = os.path.getsize(path)
        if packed and suffix not in AS_WHOLE:  # which `read_table` unpacks
            path = unpack(path, packed, place, source, suffix)
        return self._look_at_file(path, suffix, source, place, size)

    def _look_at_file(
        self, path: Path, suffix: str, source: str, place: Path, packed: int = 0
    ) -> Part:
        reading = self._reading
        check_sheet(reading.sheet, suffix, source)
        if suffix == ".parquet":
            return _ParquetPart(path, source, packed or os.path.getsize(path))
        if suffix in AS_WHOLE:
            return _WholePart(path, source, suffix, reading)
        text = plain_text(path, source, place, reading.encoding, MAX_LINE)
        kind = suffix or kind_of(text.head(1 << 14))
        if kind in AS_WHOLE:
            return _WholePart(path, source, kind, reading)
        if kind in (".jsonl", ".ndjson"):
            return self._look_at_json(text)
        tabs = suffix == ".tsv" and reading.delimiter is None
        return self._look_at_csv(text, "\t" if tabs else reading.delimiter)

    def _look_at_csv(self, text: PlainText, delimiter: str | None) -> Part:
        def look(header: Any) -> NumberColumns:
            first = NumberColumns(commas=header.delimiter == ";", texts=self._texts)
            return copy.deepcopy(self._numbers or first)

        parts, self._numbers = read_csv(text, delimiter, look, skip_bad=self._reading.skip_bad)
        return _CsvPart(parts, self._castings, self._nothing)

    def _look_at_json(self, text: PlainText) -> Part:
        parts = read_json_parts(text, self._objects, skip_bad=self._reading.skip_bad)
        return _JsonPart(parts, self._leaves)

    def _decide(self) -> None:
        """Find the types of columns, which all CSV files and all JSON files share."""
        if self._numbers is not None:
            castings, notes = self._numbers.decide()
            self._castings.update(castings)
            self._nothing.update(self._numbers.without_values())
            self.notes += notes
        json_parts = [part for part in self.parts if isinstance(part, _JsonPart)]
        if json_parts:
            self._leaves += self._objects.decide(json_parts[0].source)


def _number(part: Part, row: int) -> int:
    """Return the number that a row has in its file."""
    number = part.first + row
    for gap, _ in part.bad:
        number += gap <= number
    return number


# -- kinds of sources ---------------------------------------------------------------------------


class _CsvPart:
    def __init__(
        self, parts: CsvParts, castings: dict[str, Casting], nothing: Collection[str]
    ) -> None:
        self._parts, self._castings, self.nothing = parts, castings, nothing
        self.source, self.fingerprint = parts.text.source, parts.text.fingerprint
        self.n_rows, self.bad, self.first = parts.n_rows, parts.bad, parts.first
        self.notes = said_of(parts.text, self.source)

    def schema(self) -> Any:
        own = {n: c.type for n, c in self._castings.items()}
        return pa.schema([(name, own.get(name, pa.string())) for name in self._parts.names])

    def tables(self) -> Iterator[Any]:
        for table in self._parts:
            columns = [self._cast(name, table.column(name)) for name in table.column_names]
            yield pa.table(columns, names=table.column_names)

    def _cast(self, name: str, column: Any) -> Any:
        casting = self._castings.get(name)
        return column if casting is None else casting(column.combine_chunks())


class _JsonPart:
    def __init__(self, parts: JsonParts, leaves: list[Leaf]) -> None:
        self._parts, self._leaves = parts, leaves
        self.source, self.fingerprint = parts.text.source, parts.text.fingerprint
        self.n_rows, self.bad, self.first = parts.n_rows, parts.bad, 1
        self.notes = said_of(parts.text, self.source)

    @property
    def nothing(self) -> Collection[str]:
        return [leaf.name for leaf in self._leaves if leaf.is_nothing]

    def schema(self) -> Any:
        return pa.schema([(leaf.name, leaf.arrow) for leaf in self._leaves])

    def tables(self) -> Iterator[Any]:
        return self._parts.tables(self._leaves)


class _ParquetPart:
    bad: Bad = []  # noqa: RUF012, never changed
    first = 1
    notes: list[str] = []  # noqa: RUF012
    nothing = ()

    def __init__(self, path: Path, source: str, packed: int) -> None:
        self._path, self.source, self._packed = path, source, packed
        self.fingerprint = fingerprint_of(path)
        with _explained_parquet(source), parquet.ParquetFile(path) as file:
            schema, self.n_rows = file.schema_arrow, file.metadata.num_rows
            check_unique(schema.names, source)
            check_short(schema.names, source, "shorten it")
            if not self.n_rows or not schema.names:
                what = "rows" if schema.names else "columns"
                raise TableError(f"{source} has no {what}")
            self._at_once, empty = _rows_at_once(file.metadata), schema.empty_table()
            columns = [plain_column(column) for column in empty.columns]
        self._names = unique_names(schema.names)
        self._schema = pa.table(columns, names=self._names).schema

    def schema(self) -> Any:
        return self._schema

    def tables(self) -> Iterator[Any]:
        how = {"buffer_size": BYTES, "pre_buffer": False}  # or all of a row group is in memory
        with _explained_parquet(self.source):
            for table in read_batches(self._path, self._packed, self._at_once, **how):
                found = table.rename_columns(self._names)
                check_times(found, self.source)
                yield found


def _rows_at_once(about: Any) -> int:
    """Return how many rows of a Parquet file take `BYTES`, about, in its largest row group."""
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    size = max(group.total_byte_size / max(group.num_rows, 1) for group in groups)
    return min(max(int(BYTES / max(size, 1)), 1), ROWS)


@contextmanager
def _explained_parquet(source: str) -> Iterator[None]:
    try:
        yield
    except TooLarge as error:
        raise TableError(f"{source} {error}") from error
    except TableError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise TableError(no_parquet(source, error)) from error


class _FolderPart:
    first, nothing = 1, ()

    def __init__(self, path: Path, reading: Reading) -> None:
        self._path, self._reading, self.source = path, reading, str(path)
        folder = self._folder()
        self.n_rows = sum(1 for _ in folder)
        if not self.n_rows:
            raise TableError(folder.nothing())
        self.bad, self.fingerprint, self.notes = folder.bad, folder.fingerprint, folder.notes()

    def _folder(self) -> Folder:
        return Folder(self._path, self._reading.encoding, self._reading.skip_bad, MAX_LINE)

    def schema(self) -> Any:
        return pa.schema([(name, pa.string()) for name in Folder.names])

    def tables(self) -> Iterator[Any]:
        rows: list[Any] = []
        size = 0
        for row in self._folder():
            rows.append(row)
            size += len(row[1])
            if len(rows) == FILES or size > BYTES:
                yield Folder.table(rows)
                rows, size = [], 0
        if rows:
            yield Folder.table(rows)


@dataclass
class _WholePart:
    """A file that has to be in memory as a whole: a JSON list, or a workbook."""

    path: Path
    source: str
    suffix: str
    reading: Reading
    fingerprint: str = ""
    n_rows: int = 0
    bad: Bad = field(default_factory=list)
    first: int = 1
    notes: list[str] = field(default_factory=list)
    nothing: Collection[str] = ()
    _schema: Any = None

    def __post_init__(self) -> None:
        found = self._read()
        self.fingerprint, self.n_rows = found.fingerprint, found.data.num_rows
        self.bad = sorted([*found.bad, *((row, "") for row in found.blank)])
        self.first, self.notes, self._schema = found.first, found.notes, found.data.schema

    def _read(self) -> Any:
        if self.path.suffix.lower() not in (self.suffix, *PACKED):  # from standard input
            self.path = self.path.rename(self.path.with_name(f"{self.path.name}{self.suffix}"))
        try:
            return read_table(self.path, **vars(self.reading) | {"delimiter": None})
        except TableError as error:
            raise TableError(str(error).replace(str(self.path), self.source)) from error

    def schema(self) -> Any:
        return self._schema

    def tables(self) -> Iterator[Any]:
        yield self._read().data
