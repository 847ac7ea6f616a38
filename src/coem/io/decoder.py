"""Values from JSON and arrays. Only classes that are registered are ever made."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from coem.io.archive import KINDS
from coem.io.registry import Entry, entry_named
from coem.io.values import SCALARS, SPARSE, TYPES, Absent, parameters
from coem.kernels.counts import as_table
from coem.typing import Array


class Decoder:
    """Puts values together from JSON and arrays. Raises any error on what was never encoded.

    Parameters
    ----------
    arrays : mapping
        The arrays by name.
    fill : mapping, optional
        Fields that were `Absent`, and what to put there.
    """

    def __init__(self, arrays: Mapping[str, Array], fill: Mapping[str, Any] | None = None) -> None:
        self.arrays = arrays
        self.fill = {} if fill is None else dict(fill)
        self._tables: dict[str, Array] = {}

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
        return {self.decode(key): self.decode(item) for key, item in content}

    def _float(self, content: Any) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[content]

    def _array(self, name: Any) -> Array:
        if name not in self.arrays:
            raise ValueError(f"there is no array {name!r} in it")
        return self.arrays[name]

    def _table(self, name: Any) -> Array:
        if name not in self._tables:
            self._tables[name] = as_table(self._array(name))
        return self._tables[name]

    def _objects(self, content: Any) -> Array:
        shape, values = content
        out = np.empty(len(values), dtype=object)
        out[:] = self._many(values)
        return out.reshape([int(size) for size in shape])

    def _scalar(self, content: Any) -> Any:
        name, item = content
        item = self.decode(item)
        return SCALARS[name](item)

    def _dtype(self, content: Any) -> Any:
        dtype = np.dtype(str(content))
        if dtype.kind not in KINDS:
            raise ValueError(f"it has a dtype {dtype}")
        return dtype

    def _sparse(self, content: Any) -> Any:
        name, shape, *parts = content
        data, indices, indptr = self._many(parts)
        matrix = SPARSE[name]((data, indices, indptr), shape=tuple(shape))
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
        given = self._fields(entry, state["params"])
        strange = sorted(set(given) - set(names) | set(given) & entry.skip)
        if strange:
            raise ValueError(f"{entry.name} takes no parameter {strange[0]!r}")
        params = names | given
        missing = [name for name, value in params.items() if value is inspect.Parameter.empty]
        if missing:
            raise ValueError(f"{entry.name} lacks its parameter {missing[0]!r}")
        own = self._fields(entry, state["fitted"])
        if set(own) & set(params):
            raise ValueError(f"{entry.name} has a parameter twice")
        return _with_attributes(entry, own, params)


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
    "set": lambda d, c: set(d._many(c)),
    "frozenset": lambda d, c: frozenset(d._many(c)),
    "slice": lambda d, c: slice(*d._many(c)),
    "range": lambda d, c: range(*d._many(c)),
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
