"""Lines of JSON objects, one part after the other."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coem.io.delimited import check_short, no_good_row, unique_names
from coem.io.json_lines import COLUMNS, DEEP, EMPTY, as_json, check_filled, parse_record
from coem.io.rows import SKIP, Bad
from coem.io.sources import TableError
from coem.io.text_files import PlainText

BYTES = 1 << 23  # of lines that are parsed before they are handed on
ALL = (1 << len(COLUMNS)) - 1
TEXT = len(COLUMNS)  # the type of a column with values of several types


@dataclass
class Key:
    """What is known of the values of one key of objects."""

    fits: int = ALL
    """A bit for each type that all values have."""

    are_objects: bool = True
    n_there: int = 0
    n_filled: int = 0
    keys: dict[str, "Key"] = field(default_factory=dict)

    def add(self, value: Any, depth: int) -> None:
        """Look at one more value."""
        if value is None:
            return
        self.n_there += 1
        self.fits &= IS_TEXT if type(value) is str else _fits(value) if self.fits else 0
        if not isinstance(value, dict):
            self.are_objects, self.keys = False, {}
        elif self.are_objects and depth:
            self.n_filled += len(value)
            for name, item in value.items():
                self.keys.setdefault(name, Key()).add(item, depth - 1)

    @property
    def type(self) -> int:
        """The first type that all values have."""
        return next((place for place in range(TEXT) if self.fits >> place & 1), TEXT)


def _fits(value: Any) -> int:
    """Return a bit for each type that a value has."""
    return sum(bool(fit(value)) << place for place, (fit, _) in enumerate(COLUMNS))


IS_TEXT = _fits("")


@dataclass(frozen=True)
class Leaf:
    """A column: the keys that lead to it, and its type."""

    name: str
    keys: tuple[str, ...]
    type: int
    is_nothing: bool = False
    """No object has a value there."""

    def column(self, records: list[dict[str, Any]]) -> Any:
        """Return the values of records."""
        values = [_at(record, self.keys) for record in records]
        if self.type == TEXT:
            return pa.array(list(map(as_json, values)), pa.string())
        return pa.array(values, COLUMNS[self.type][1])

    @property
    def arrow(self) -> Any:
        """The type of Arrow."""
        return pa.string() if self.type == TEXT else COLUMNS[self.type][1]


def _at(value: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        value = value.get(key) if value is not None else None
    return value


class JsonColumns:
    """The columns of objects, seen one after the other."""

    def __init__(self) -> None:
        self._root = Key()

    def add(self, record: dict[str, Any]) -> None:
        """Look at one more object."""
        self._root.add(record, DEEP + 1)

    def check(self, source: str) -> None:
        """Refuse objects that hardly share a key."""
        _check(self._root, self._root.n_there, source, DEEP + 1)

    def decide(self, source: str) -> list[Leaf]:
        """Return the columns, as `read_json_lines` has them."""
        if not self._root.keys:
            raise TableError(f"{source} has objects without keys; a table has columns")
        self.check(source)
        places: Places = {name: (key, (name,)) for name, key in self._root.keys.items()}
        flat = _flat(places, DEEP)
        check_short(list(flat), source, "shorten it")
        names = unique_names(list(flat))
        pairs = zip(names, flat.values(), strict=True)
        return [Leaf(name, keys, key.type, key.n_there == 0) for name, (key, keys) in pairs]


def _check(key: Key, n_rows: int, source: str, depth: int) -> None:
    if depth and key.are_objects and key.keys:
        check_filled(len(key.keys), n_rows, key.n_filled, source)
        for own in key.keys.values():
            _check(own, n_rows, source, depth - 1)


Places = dict[str, tuple[Key, tuple[str, ...]]]


def _flat(places: Places, depth: int) -> Places:
    """Return columns of objects as a column for each of their keys, as `read_json_lines` does."""
    found: Places = {}
    taken = set(places)
    for name, (key, keys) in places.items():
        inner = key.keys if depth and key.n_there and key.are_objects else {}
        parts = _flat({f"{name}.{k}": (v, (*keys, k)) for k, v in inner.items()}, depth - 1)
        new = {name: (key, keys)} if not parts or taken & parts.keys() else parts
        taken |= new.keys()
        found |= new
    return found


@dataclass(frozen=True)
class JsonParts:
    """The rows of a file of JSON lines as tables."""

    text: PlainText
    n_rows: int = 0
    bad: Bad = field(default_factory=list)
    first: int = 1

    def tables(self, leaves: list[Leaf]) -> Iterator[Any]:
        """Return tables of the columns; bad rows are left out."""
        for records in self._records(lambda row, reason: None):
            columns = [leaf.column(records) for leaf in leaves]
            yield pa.table(columns, names=[leaf.name for leaf in leaves])

    def _records(self, refuse: Callable[[int, str], None]) -> Iterator[list[dict[str, Any]]]:
        records: list[dict[str, Any]] = []
        size = 0
        with self.text.open() as file:
            for row, line in enumerate(file, 1):
                if not line.strip():
                    continue
                record = parse_record(line)
                if isinstance(record, str):
                    refuse(row, record)
                    continue
                records.append(record)
                size += len(line)
                if size >= BYTES:
                    yield records
                    records, size = [], 0
        if records:
            yield records


def read_json_parts(text: PlainText, columns: JsonColumns, *, skip_bad: bool) -> JsonParts:
    """Look at all objects of a file of JSON lines."""
    bad: Bad = []

    def refuse(row: int, reason: str) -> None:
        if not skip_bad:
            raise TableError(f"{text.source}, row {row}: {reason}; mend it, {SKIP}")
        bad.append((row, reason))

    n_rows = 0
    for records in JsonParts(text)._records(refuse):
        for record in records:
            columns.add(record)
        columns.check(text.source)
        n_rows += len(records)
    if not n_rows:
        source = text.source
        raise TableError(no_good_row(source, bad) if bad else EMPTY.format(source))
    return JsonParts(text, n_rows, bad)
