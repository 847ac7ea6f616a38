"""Values to JSON and arrays: only those of `coem.io.values`, and classes that are registered."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from coem.io.archive import KINDS
from coem.io.registry import Entry, entry_of
from coem.io.values import SCALARS, SPARSE, TYPES, Absent, ModelFileError, parameters
from coem.kernels.counts import is_table
from coem.typing import Array

MANY = 1000  # items of a dict from words to their numbers, from which on it is a list and an array
ROUTING = "_metadata_request"  # scikit-learn's, for fitting alone


class Encoder:
    """Takes values apart; `arrays` and `left_out` grow meanwhile. Errors begin with `where`."""

    def __init__(self, where: str = "") -> None:
        self.arrays: dict[str, Array] = {}
        self.left_out: list[str] = []
        self._names: dict[int, tuple[str, Array]] = {}  # the array, so that its id is not reused
        self._where = [where] if where else []

    def encode(self, value: Any) -> Any:
        """Return a value as JSON."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if type(value) is list:
            return [self.encode(item) for item in value]
        kind = _PLAIN.get(type(value))
        if kind is not None:
            return kind(self, value)
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.generic):
            return self._scalar(value)
        if isinstance(value, type) and TYPES.get(value.__name__) is value:
            return {"type": value.__name__}
        if isinstance(value, PurePath):
            return {"path": str(value)}
        if isinstance(value, np.dtype) and value.kind in KINDS:
            return {"dtype": value.str}
        entry = entry_of(type(value))
        if entry is None:
            raise ModelFileError(self._cannot(value))
        return self._object(entry, value)

    def _cannot(self, value: Any) -> str:
        kind = type(value)
        place = ".".join(self._where)
        return (
            f"{place + ': ' if place else ''}a {kind.__name__} (of {kind.__module__}) cannot be "
            "saved; a model file holds estimators of coem, a Pipeline of them, plain values and "
            "classes given to coem.io.register"
        )

    @contextmanager
    def _at(self, name: str) -> Iterator[None]:
        """Remember where we are, for errors."""
        self._where.append(name)
        yield
        self._where.pop()  # an error ends the whole, unless `_try` winds back

    def _dict(self, value: dict[Any, Any]) -> Any:
        kinds = set(map(type, value.values())) if len(value) > MANY else set()
        words = set(map(type, value)) == {str}
        if not words or kinds not in ({int}, {np.int64}) or not _fits(value.values()):
            return {"dict": self._items(value)}
        numbers = self._array(np.array(list(value.values()), dtype=np.int64))
        return {"index": [list(value), kinds.pop().__name__, numbers]}

    def _items(self, value: Mapping[Any, Any]) -> list[Any]:
        pairs = []
        for key, item in value.items():
            with self._at(str(key)):
                pairs.append([self.encode(key), self.encode(item)])
        return pairs

    def _many(self, values: Any) -> list[Any]:
        return [self.encode(item) for item in values]

    def _set(self, value: Any) -> list[Any]:
        return self._many(sorted(value, key=repr))

    def _absent(self, value: Absent) -> Any:
        return {"absent": value.what}

    def _array(self, value: Array) -> Any:
        """Return the name of a member, in the order of memory; objects become JSON."""
        if type(value) not in (np.ndarray, np.memmap):
            raise ModelFileError(self._cannot(value))
        if value.dtype == object:
            flat = value.ravel().tolist()
            values = flat if all(type(item) is str for item in flat) else self._many(flat)
            return {"objects": [list(value.shape), values]}
        if value.dtype.kind not in KINDS:
            raise ModelFileError(self._cannot(value[..., np.newaxis][0]))
        if id(value) not in self._names:
            name = str(len(self.arrays))
            self._names[id(value)] = name, value
            self.arrays[name] = np.copy(value, order="K") if _scattered(value) else value
        # Kernels read a table as it is, and would pack any other array anew in every call.
        table = is_table(value)
        return {"table" if table else "array": self._names[id(value)][0]}

    def _scalar(self, value: np.generic) -> Any:
        name = type(value).__name__
        if SCALARS.get(name) is not type(value):
            raise ModelFileError(self._cannot(value))
        return {"scalar": [name, self.encode(value.item())]}

    def _sparse(self, value: Any) -> Any:
        parts = [self.encode(part) for part in (value.data, value.indices, value.indptr)]
        return {"sparse": [type(value).__name__, list(value.shape), *parts]}

    # -- objects -----------------------------------------------------------------------------

    def _object(self, entry: Entry, value: Any) -> Any:
        if isinstance(value, list):
            state: Any = self._many(value)
        elif isinstance(value, dict):
            state = self._items(value)
        elif isinstance(value, BaseEstimator):
            state = self._estimator(entry, value)
        else:
            state = self._fields(entry, _parts(value))
        return {"object": [entry.name, state]}

    def _fields(self, entry: Entry, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parts as JSON, without optional parts that a file cannot hold."""
        state = {}
        for name, part in parts.items():
            if name not in entry.skip:
                with self._at(name):
                    if name not in entry.drop or self._can(part):
                        encode = self._or_absent if name in entry.absent else self.encode
                        state[name] = encode(part)
                    else:
                        self._note(part)
        return state

    def _estimator(self, entry: Entry, value: BaseEstimator) -> dict[str, Any]:
        """Return parameters and what was fitted."""
        names, own = parameters(type(value)), dict(vars(value))
        params = {name: own.pop(name) for name in names}
        own.pop(ROUTING, None)
        return {"params": self._fields(entry, params), "fitted": self._fields(entry, own)}

    def _or_absent(self, part: Any) -> Any:
        if self._can(part):
            return self.encode(part)
        self._note(part)
        known = getattr(part, "known_as", None)  # what a person can find it by again
        name = known if isinstance(known, str) else type(part).__name__
        return {"absent": f"{self._where[-1]} ({name})"}

    def _note(self, part: Any) -> None:
        self.left_out.append(f"{'.'.join(self._where)}: a {type(part).__name__}")

    def _can(self, value: Any) -> bool:
        """Tell if a value can be saved."""
        try:
            Encoder().encode(value)
        except (ModelFileError, RecursionError):
            return False
        return True


_PLAIN: dict[type, Callable[[Encoder, Any], Any]] = {
    tuple: lambda e, v: {"tuple": e._many(v)},
    dict: Encoder._dict,
    set: lambda e, v: {"set": e._set(v)},
    frozenset: lambda e, v: {"frozenset": e._set(v)},
    slice: lambda e, v: {"slice": e._many((v.start, v.stop, v.step))},
    range: lambda e, v: {"range": e._many((v.start, v.stop, v.step))},
    Absent: Encoder._absent,
    **dict.fromkeys(SPARSE.values(), Encoder._sparse),
}


def _fits(numbers: Collection[Any]) -> bool:
    return bool(min(numbers) >= -(1 << 63) and max(numbers) < 1 << 63)


def _scattered(value: Array) -> bool:
    """Return whether an array is contiguous neither by rows nor by columns."""
    return not (value.flags.c_contiguous or value.flags.f_contiguous)


def _parts(value: Any) -> dict[str, Any]:
    """Return what an object of a registered class consists of."""
    if isinstance(value, tuple):
        return dict(value._asdict())  # type: ignore[attr-defined]
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    return dict(vars(value))
