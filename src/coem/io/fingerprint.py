"""Fingerprints: whether a fit has the same data and parameters as an earlier one, by content."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.typing import Matrix

TEXT = 60  # characters that a message shows of a value
PLAIN = (int, float, complex, str, bytes)

Spell = Callable[[Any], str]


def fingerprint(params: dict[str, Any], parts: Iterable[Matrix | None]) -> str:
    """Return a digest of the parameters of a fit and of all its data; a part may be None."""
    digest = hashlib.blake2b(_coded(spelt(params)))
    for part in parts:
        digest.update(_coded(f"{spelt(part)}|"))
    return digest.hexdigest()


def described(params: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return for each parameter a digest of its value, and a short text to show."""
    return {name: (_digest(spelt(value)), _shown(value)) for name, value in params.items()}


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= TEXT else f"{text[:TEXT]}..."


def _digest(text: str) -> str:
    return hashlib.blake2b(_coded(text), digest_size=16).hexdigest()


def _coded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def spelt(value: Any, above: tuple[int, ...] = ()) -> str:
    """Return a text that differs for any two values that differ.

    The `repr` of an array is not such a text: it leaves out digits and entries. That of a function
    or of a plain object is its address. Of a function, the text has the code and all values that
    it carries; the variables of its module are not looked at. A class or a module counts by its
    name, a table by its entries, and an array by its values, wherever they are kept.

    `above` are the objects that hold this one. A value that holds itself is written as its
    place among them.
    """
    if id(value) in above:
        return f"^{above.index(id(value))}"
    spell = partial(spelt, above=(*above, id(value)))
    if isinstance(value, type):
        return repr(value)
    if sp.issparse(value):
        rows = value.tocsr()
        return "sparse" + spell((rows.shape, rows.indptr, rows.indices, rows.data))
    if hasattr(value, "__array__") and not isinstance(value, np.generic):
        return _spelt_array(value, spell)
    return f"{type(value).__module__}.{type(value).__qualname__}({_inside(value, spell)})"


def _spelt_array(value: Any, spell: Spell) -> str:
    array = np.asarray(value)
    mask = spell(np.ma.getmaskarray(value)) if isinstance(value, np.ma.MaskedArray) else ""
    if array.dtype.hasobject:
        return f"{array.shape}{spell(array.ravel().tolist())}{mask}"
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return f"{array.dtype!r}{array.shape}{hashlib.blake2b(data).hexdigest()}{mask}"


def _inside(value: Any, spell: Spell) -> str:
    """Return the text of what an object is made of."""
    for base in PLAIN:
        if isinstance(value, base) and not isinstance(value, np.generic):
            return base.__repr__(value) + _own(value, spell)
    if isinstance(value, Mapping):
        items = sorted(f"{spell(key)}:{spell(item)}" for key, item in value.items())
        return f"{','.join(items)}{_own(value, spell)}"
    if isinstance(value, list | tuple):
        return f"{','.join(map(spell, value))}{_own(value, spell)}"
    if isinstance(value, set | frozenset):
        return f"{','.join(sorted(map(spell, value)))}{_own(value, spell)}"
    carried = _carried(value)
    if carried is not None:
        return ",".join(map(spell, carried))
    # A type of C may keep to itself what its repr tells.
    return _own(value, spell) or (repr(value) if _has_repr(value) else "")


def _carried(value: Any) -> tuple[Any, ...] | None:
    """Return what a function is made of, or None for other objects."""
    if isinstance(value, ModuleType | np.ufunc):  # other libraries give ufuncs attributes
        return (value.__name__,)
    if isinstance(value, MethodType):
        return value.__self__, value.__func__
    if isinstance(value, BuiltinFunctionType):
        return value.__self__, value.__qualname__
    if isinstance(value, partial):
        return value.func, value.args, value.keywords, vars(value)
    if isinstance(value, FunctionType):
        name = f"{value.__module__}.{value.__qualname__}"
        given = (value.__defaults__, value.__kwdefaults__, value.__closure__, vars(value))
        return name, value.__code__, *given
    if isinstance(value, CellType):
        try:
            return (value.cell_contents,)
        except ValueError:  # it is empty
            return ()
    if isinstance(value, CodeType):
        arguments = (value.co_argcount, value.co_posonlyargcount, value.co_kwonlyargcount)
        names = (value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)
        return value.co_code, value.co_consts, value.co_flags, arguments, names
    return None


def _own(value: Any, spell: Spell) -> str:
    """Return the text of the attributes of an object, empty if it has none."""
    own = {slot: getattr(value, slot) for slot in _slots(value) if hasattr(value, slot)}
    if is_dataclass(value):
        own |= {field.name: getattr(value, field.name) for field in fields(value)}
    own |= getattr(value, "__dict__", {})
    return spell(own) if own else ""


def _slots(value: Any) -> list[str]:
    """Return the attributes of a plain object that has them in slots.

    One with a `repr` of its own may have slots for what it has computed before.
    """
    if _has_repr(value):
        return []
    named = [vars(kind).get("__slots__", ()) for kind in type(value).__mro__]
    return [slot for own in named for slot in ((own,) if isinstance(own, str) else own)]


def _has_repr(value: Any) -> bool:
    """Return True if the `repr` of an object is more than its address."""
    plain: Any = object.__repr__
    return type(value).__repr__ is not plain
