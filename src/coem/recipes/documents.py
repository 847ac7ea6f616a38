"""Documents: the rows of a table or a file, and what they are called."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from coem.corpus import Corpus
from coem.io.tables import Table, check_times, read_table
from coem.phrases import first_few
from coem.recipes.corpora import as_path, described, place_of
from coem.recipes.listener import Listener
from coem.row_store import MOST_IN_MEMORY
from coem.stored import is_corpus
from coem.text import as_arrow
from coem.text.guess import sampled_rows

WHOLE = ("topics",)  # verbs whose model needs all rows in memory
NO_IDS = "none"  # in the place of a column: rows are called by their numbers


@dataclass(frozen=True)
class Documents:
    """The rows of a table, and what they are called."""

    table: Any  # a pyarrow.Table
    source: str
    fingerprint: str
    ids: Sequence[str]
    id_column: str | None  # where they come from; None: they are numbers
    n_bad: int
    path: str | None  # where they can be read again, if they are in a file or a folder
    called: str  # on the page
    corpus: Any = field(default=None, kw_only=True)  # a `coem.corpus.Corpus`, if they are in one
    in_parts: bool = field(default=False, kw_only=True)  # whether they are too many for memory
    rows: Any = field(default=None, kw_only=True)  # their numbers in it; None if they are all

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.ids)

    def take(self, rows: Any) -> "Documents":
        """Return some of the rows of a corpus, in memory."""
        found = self.corpus.take_table(rows)
        for name in self.table.column_names[found.num_columns :]:  # labels of another file
            found = found.append_column(name, self.table.column(name).take(pa.array(rows)))
        ids = [self.ids[row] for row in rows]
        return replace(self, table=found, ids=ids, in_parts=False, rows=rows)

    def part(self, lo: int, hi: int) -> "Documents":
        """Return rows that follow each other, in memory."""
        own, rows = self.table.slice(lo, hi - lo), np.arange(lo, hi)
        return replace(self, table=own, ids=list(self.ids[lo:hi]), in_parts=False, rows=rows)

    def loaded(self) -> "Documents":
        """Return all rows of a corpus, in memory."""
        return replace(self, ids=list(self.ids), in_parts=False)

    @property
    def looked_at(self) -> Any:
        """The table whose columns are looked at, to guess what they are."""
        if not self.in_parts:
            return self.table
        return self.take(sampled_rows(len(self))).table

    @property
    def are_in_a_folder(self) -> bool:
        """Whether they are files of a folder."""
        return self.path is not None and os.path.isdir(self.path) and self.corpus is None


def fit_in_memory(documents: Documents) -> bool:
    """Return whether a model that needs all rows of a corpus can have them."""
    return bool(documents.corpus.n_bytes <= MOST_IN_MEMORY)


def all_rows(documents: Documents) -> Documents:
    """Return the documents of a corpus in memory, because the aspect model needs all rows."""
    if fit_in_memory(documents):
        return documents.loaded()
    size = documents.corpus.n_bytes
    raise ValueError(
        f"the aspect model needs all rows in memory, and the views of {documents.source} take "
        f"{size / 1e9:.1f} GB, more than the {MOST_IN_MEMORY / 1e9:.1f} GB that are loaded; ingest "
        "some of the documents into a corpus of their own, or use coem cluster, which reads a part "
        "at a time"
    )


@dataclass(frozen=True)
class Renamed(os.PathLike):
    """A file that a run knew by a name, and that has kept it if its content is the same."""

    path: str
    name: str | None
    fingerprint: str

    def __fspath__(self) -> str:
        """Return where it is."""
        return self.path


def read_source(table: Any, *, plain: bool | None = None, **reading: Any) -> Table:
    """Return a table of any kind, or that of a file; `plain` is None if there is no plain text."""
    if isinstance(table, str | os.PathLike):
        text = plain is not None and (plain or is_text_file(table))
        return read_table(os.fspath(table), plain=text, **reading)
    for name, value in {**reading, "plain": plain}.items():
        if value:
            raise ValueError(f"{name} is for files, and the documents are not the name of a file")
    data = as_arrow(table)
    if not data.num_rows:
        raise ValueError("the table has no rows")
    check_times(data, "the table")
    return Table(data, "the table", _fingerprint(data), first=0)


def is_text_file(source: Any) -> bool:
    """Return whether a name is that of a plain text, packed or not."""
    name = os.fspath(source).lower()
    return name.endswith((".txt", ".txt.gz", ".txt.zst")) and not os.path.isdir(source)


def _fingerprint(data: Any) -> str:
    """Return the SHA-256 of the names and values of a table, whatever holds them."""
    digest = hashlib.sha256()
    for name in data.column_names:
        values = data.column(name).to_pylist()
        digest.update(json.dumps([name, values], default=str).encode())
    return digest.hexdigest()


def read_documents(
    table: Any, listener: Listener, *, id: str | None = None, id_guess: str = "id", **reading: Any
) -> Documents:
    """Return the rows of a table, a file or a corpus; `reading` is for `read_source`."""
    if isinstance(table, Documents):
        return table
    table = as_path(table)
    if is_corpus(table):
        return read_corpus(table, listener, id=id)
    found = read_source(table, **reading)
    tell_reading(found, listener)
    return as_documents(found, table, listener, id=id, id_guess=id_guess)


def read_corpus(path: Any, listener: Listener, *, id: str | None = None) -> Documents:
    """Return the rows of a corpus."""
    corpus = Corpus(path)
    if not corpus.columns:
        raise ValueError(f"{corpus.path} was written from matrices, and holds no documents")
    listener.rows_are(place_of(corpus))
    column = corpus.manifest.columns.get("id")
    if id is not None and id not in (column, NO_IDS):
        check_column(corpus.columns, str(corpus.path), id, "ids")
        column = id
    about = described(corpus, column)
    if isinstance(path, Renamed) and path.name and path.fingerprint == corpus.digest:
        about["called"] = path.name
    return Documents(**about)


def tell_reading(found: Table, listener: Listener) -> None:
    """Say how a table was read, and which rows were left out."""
    listener.rows_are(lambda row: f"{found.source}, row {found.number(row)}")
    for sentence in found.notes:
        listener.note(sentence)
    if found.bad:
        first, why = found.bad[0]
        listener.note(f"{len(found.bad)} bad rows were left out; the first is row {first}: {why}")


def as_documents(
    found: Table, table: Any, listener: Listener, *, id: str | None = None, id_guess: str = "id"
) -> Documents:
    """Return the rows of what was read from a table or a file."""
    ids, column = _ids(found, id, id_guess, listener)
    is_file = isinstance(table, str | os.PathLike) and os.fspath(table) != "-"
    path = str(Path(table).resolve()) if is_file else None
    about = found.data, found.source, found.fingerprint
    return Documents(*about, ids, column, len(found.bad), path, _called(table, found))


def _called(table: Any, found: Table) -> str:
    """Return the name of the documents: in a run made again, the one that they had."""
    if isinstance(table, Renamed) and table.name and table.fingerprint == found.fingerprint:
        return table.name
    return Path(found.source).resolve().name


def check_column(names: list[str], source: str, name: str, what: str) -> None:
    """Raise unless there is a column, and say which ones there are."""
    if name not in names:
        raise ValueError(
            f"{source} has no column {name!r} for the {what}; it has {first_few(names)}"
        )


def column_of(table: Any, source: str, name: str, what: str) -> list[Any]:
    """Return a column, or say which ones there are."""
    check_column(table.column_names, source, name, what)
    values: list[Any] = table.column(name).to_pylist()
    return values


def _ids(
    found: Table, column: str | None, guess: str, listener: Listener
) -> tuple[list[str], str | None]:
    """Return what rows are called, and the column that says so: else their numbers from 1 on."""
    table, source = found.data, found.source
    numbers = [str(i + 1) for i in range(table.num_rows)]
    given = column is not None
    if column == NO_IDS and NO_IDS not in table.column_names:
        return numbers, None
    if column is None:
        column = next((c for c in table.column_names if c.lower() == guess.lower()), None)
    if column is None:
        return numbers, None
    ids = ["" if v is None else str(v) for v in column_of(table, source, column, "ids")]
    problem = _ambiguous(ids, found.number)
    if problem is None:
        return ids, column
    if given or all(ids):
        raise ValueError(
            f"column {column!r} of {source} cannot be the ids: {problem}; mend it, or choose "
            f"another column with id=, or id='{NO_IDS}' to number the rows"
        )
    listener.note(f"column {column!r} is not used for the ids: {problem}")
    return numbers, None


def _ambiguous(ids: list[str], number: Callable[[int], int]) -> str | None:
    """Return why these cannot tell rows apart, or None if they can."""
    seen: dict[str, int] = {}
    for row, name in enumerate(ids):
        if not name:
            return f"row {number(row)} has none"
        if name in seen:
            return f"rows {number(seen[name])} and {number(row)} are both called {name!r:.60}"
        seen[name] = row
    return None
