"""Values from JSON and arrays. Only classes that are registered are ever made."""

import inspect
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from coem.io.archive import KINDS
from coem.io.patterns import LONGEST_NGRAM, has_short_ngrams, is_plain
from coem.io.registry import Entry, entry_named
from coem.io.values import SCALARS, SPARSE, TYPES, Absent, ModelFileError, parameters
from coem.kernels.counts import as_table
from coem.typing import Array

IN_RANGES = 1 << 16  # numbers that all ranges of a file stand for together
LONGEST_DTYPE = 8  # characters of a plain one
SHARED = 64  # times that the arrays of a file are used, each on average
SMALL = 1 << 20  # bytes of arrays that are used no matter how often
SAME_HASH = 8  # keys of one hash; those of a saved model have two at most, -1 and -2


class Decoder:
    """Puts values together from JSON and arrays. Raises any error on what was never encoded.

    Parameters
    ----------
    arrays : mapping
        The arrays by name.
    fill : mapping, optional
        Fields that were `Absent`, and what to put there.
    trust_patterns : bool, default=False
        Take regular expressions that could take for ever, and n-grams of any length.
    """

    def __init__(
        self,
        arrays: Mapping[str, Array],
        fill: Mapping[str, Any] | None = None,
        *,
        trust_patterns: bool = False,
    ) -> None:
        self.arrays = arrays
        self.fill = {} if fill is None else dict(fill)
        self.trust_patterns = trust_patterns
        self._tables: dict[str, Array] = {}
        self._in_ranges = 0
        # An array that is in a thousand places is checked a thousand times.
        self._left = SHARED * sum(array.nbytes for array in arrays.values()) + SMALL

    def decode(self, value: Any) -> Any:
        """Return the value that some JSON stands for."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict) or len(value) != 1:
            raise ValueError("it has an object without a tag")
        ((tag, content),) = value.items()
        if tag not in _TAGS:
            raise ValueError(f"it has a value of the unknown kind {tag!r}")
        return _TAGS[tag](self, content)

    def _many(self, content: Any) -> list[Any]:
        if not isinstance(content, list):
            raise ValueError("it has something else where a list belongs")
        return [self.decode(item) for item in content]

    def _items(self, content: Any) -> dict[Any, Any]:
        if not isinstance(content, list):
            raise ValueError("it has something else where the items of a dict belong")
        pairs = [(self.decode(key), self.decode(item)) for key, item in content]
        _check_keys([key for key, _ in pairs])
        return dict(pairs)

    def _index(self, content: Any) -> dict[str, Any]:
        words, kind, numbers = content
        numbers = self.decode(numbers)
        plain = isinstance(words, list) and all(type(word) is str for word in words)
        if not plain or numbers.shape != (len(words),) or numbers.dtype != np.int64:
            raise ValueError("it has words and numbers of them that do not fit")
        values = {"int": numbers.tolist(), "int64": numbers}[kind]
        return dict(zip(words, values, strict=True))

    def _members(self, content: Any) -> list[Any]:
        values = self._many(content)
        _check_keys(values)
        return values

    def _range(self, content: Any) -> range:
        made = range(*self._many(content))
        self._in_ranges += len(made)
        if self._in_ranges > IN_RANGES:
            raise ValueError("it has a range that is too long")
        return made

    def _float(self, content: Any) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]

    def _array(self, name: Any) -> Array:
        if name not in self.arrays:
            raise ValueError(f"there is no array {name!r} in it")
        array = self.arrays[name]
        self._left -= array.nbytes
        if self._left < 0:
            raise ValueError("it has its arrays in too many places")
        return array

    def _table(self, name: Any) -> Array:
        array = self._array(name)
        if name not in self._tables:
            self._tables[name] = as_table(array)
        return self._tables[name]

    def _objects(self, content: Any) -> Array:
        shape, values = content
        items = self._many(values)
        return np.fromiter(items, dtype=object, count=len(items)).reshape(_shape(shape))

    def _scalar(self, content: Any) -> Any:
        name, item = content
        item = self.decode(item)
        if not isinstance(item, bool | int | float | str):
            raise ValueError("it has something else where a number belongs")
        return SCALARS[name](item)

    def _dtype(self, content: Any) -> Any:
        if not isinstance(content, str) or len(content) > LONGEST_DTYPE:
            raise ValueError("it has something else where a dtype belongs")
        dtype = np.dtype(content)
        if dtype.kind not in KINDS:
            raise ValueError(f"it has a dtype {dtype}")
        return dtype

    def _sparse(self, content: Any) -> Any:
        name, shape, *parts = content
        data, indices, indptr = self._many(parts)
        kinds = [part.dtype.kind for part in (data, indices, indptr)]
        if kinds[0] not in "biuf" or kinds[1:] != ["i", "i"]:
            raise ValueError("it has a sparse matrix of something else than numbers")
        matrix = SPARSE[name]((data, indices, indptr), shape=_shape(shape))
        matrix.check_format(full_check=True)
        return matrix

    # -- objects -----------------------------------------------------------------------------

    def _object(self, content: Any) -> Any:
        name, state = content
        entry = entry_named(name)
        if issubclass(entry.cls, list):
            made: Any = entry.cls(self._many(state))
        elif issubclass(entry.cls, dict):
            made = entry.cls()
            made.update(self._items(state))
        elif issubclass(entry.cls, BaseEstimator):
            made = self._estimator(entry, state)
        else:
            made = self._from_fields(entry, self._fields(entry, state))
        if entry.check is not None:
            entry.check(made)
        return made

    def _fields(self, entry: Entry, state: Any) -> dict[str, Any]:
        parts = {}
        for name, content in state.items():
            part = self.decode(content)
            if isinstance(part, Absent):
                if name not in entry.absent:
                    raise ValueError(f"{entry.name} cannot do without its {name}")
                part = self.fill.get(name, part)
            parts[name] = part
        return parts

    def _from_fields(self, entry: Entry, parts: dict[str, Any]) -> Any:
        if set(parts) & entry.skip:
            raise ValueError(f"{entry.name} holds what is never saved")
        if issubclass(entry.cls, tuple) or is_dataclass(entry.cls):
            return entry.cls(**parts)
        return _with_attributes(entry, parts, {})

    def _estimator(self, entry: Entry, state: Any) -> Any:
        """Return an estimator with its parameters, and the defaults of those that were left out."""
        if set(state) != {"params", "fitted"}:
            raise ValueError(f"{entry.name} has no parameters in it")
        names = parameters(entry.cls)
        # A file of an earlier version may say how its machine worked; this one has its own ways.
        said = {name: part for name, part in state["params"].items() if name not in entry.skip}
        given = self._fields(entry, said)
        strange = sorted(set(given) - set(names))
        if strange:
            raise ValueError(f"{entry.name} takes no parameter {strange[0]!r}")
        for name in entry.patterns & set(given):
            self._check_pattern(entry, name, given[name])
        for name in entry.spans & set(given):
            self._check_span(entry, name, given[name])
        params = names | given
        missing = [name for name, value in params.items() if value is inspect.Parameter.empty]
        if missing:
            raise ValueError(f"{entry.name} lacks its parameter {missing[0]!r}")
        own = self._fields(entry, state["fitted"])
        if set(own) & set(params):
            raise ValueError(f"{entry.name} has a parameter twice")
        return _with_attributes(entry, own, params)

    def _check_pattern(self, entry: Entry, name: str, value: Any) -> None:
        """Refuse a regular expression of a file, or of one of its views, that could take long."""
        for pattern in value.values() if isinstance(value, dict) else [value]:
            if pattern is not None and not is_plain(pattern) and not self.trust_patterns:
                raise UntrustedPattern(
                    f"{name} of {entry.name} is {pattern!r:.80}, a regular expression that could "
                    "take for ever on some texts"
                )

    def _check_span(self, entry: Entry, name: str, value: Any) -> None:
        """Refuse n-grams of a file, or of one of its views, that could take all memory."""
        for span in value.values() if isinstance(value, dict) else [value]:
            if not has_short_ngrams(span) and not self.trust_patterns:
                raise UntrustedPattern(
                    f"{name} of {entry.name} is {span!r:.80}, and n-grams of more than "
                    f"{LONGEST_NGRAM} could take all memory on some texts"
                )


class UntrustedPattern(ModelFileError):
    """A file has a regular expression or n-grams that are used only if the caller says so."""


def _check_keys(keys: Collection[Any]) -> None:
    """Refuse keys that were made to have one hash: to tell many of them apart takes for ever."""
    if len(keys) > SAME_HASH and max(Counter(map(hash, keys)).values()) > SAME_HASH:
        raise ValueError("it has keys that are hard to tell apart")


def _shape(content: Any) -> tuple[int, ...]:
    if not isinstance(content, list) or not all(type(size) is int for size in content):
        raise ValueError("it has something else where a shape belongs")
    if min(content, default=0) < 0:
        raise ValueError("it has a shape below 0")
    return tuple(content)


def _with_attributes(entry: Entry, parts: dict[str, Any], params: dict[str, Any]) -> Any:
    """Return an object with attributes that are data: none hides what its class has."""
    for name in parts:
        if not name.isidentifier() or hasattr(entry.cls, name) or name in entry.skip:
            raise ValueError(f"{entry.name} has no attribute {name!r} to set")
    made: Any = object.__new__(entry.cls)
    vars(made).update(params | parts)
    return made


_TAGS: dict[str, Callable[[Decoder, Any], Any]] = {
    "tuple": lambda d, c: tuple(d._many(c)),
    "dict": Decoder._items,
    "index": Decoder._index,
    "set": lambda d, c: set(d._members(c)),
    "frozenset": lambda d, c: frozenset(d._members(c)),
    "slice": lambda d, c: slice(*d._many(c)),
    "range": Decoder._range,
    "float": Decoder._float,
    "array": Decoder._array,
    "table": Decoder._table,
    "objects": Decoder._objects,
    "scalar": Decoder._scalar,
    "type": lambda d, c: TYPES[c],
    "dtype": Decoder._dtype,
    "sparse": Decoder._sparse,
    "absent": lambda d, c: Absent(str(c)),
    "path": lambda d, c: Path(c),
    "object": Decoder._object,
}
