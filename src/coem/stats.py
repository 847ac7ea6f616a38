"""Additive statistics: the one law that threads, partitions and weights rest on."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from coem.kernels.sparse_sums import SparseSums


@dataclass(frozen=True)
class Stats:
    """Base of frozen dataclasses of uncentred weighted sums.

    ``a + b`` are the statistics of the rows of ``a`` and the rows of ``b``; ``a.scaled(c)`` those
    of the same rows, each with ``c`` times its weight. A field may be an array, a number, another
    ``Stats``, or None where nothing was gathered.
    """

    def __add__(self, other: Self) -> Self:
        """Return the statistics of both sets of rows."""
        return self._fieldwise(lambda name, mine: _add(mine, getattr(other, name)))

    def __iadd__(self, other: Self) -> Self:
        """Return the statistics of both sets of rows, in the memory of the first where it fits.

        Use it only for sums without other references: ``total += more`` needs no further memory.
        """
        return self._fieldwise(lambda name, mine: _add_to(mine, getattr(other, name)))

    def scaled(self, factor: float) -> Self:
        """Return the statistics with every row's weight multiplied by ``factor``."""
        return self._fieldwise(lambda _, mine: _scale(mine, factor))

    def apart(self, n_components: int) -> list[Self]:
        """Return the statistics of each component by itself.

        Every array must have the component on its first axis.
        """
        self._check_apart(n_components)
        ones = [slice(j, j + 1) for j in range(n_components)]
        return [self._fieldwise(lambda _, mine, one=one: _cut(mine, one)) for one in ones]

    def beside(self, other: Self, n_components: int, n_others: int) -> Self:
        """Return the statistics of more components: those of `other` come after its own.

        Every array must have the component on its first axis.
        """
        for stats, size in ((self, n_components), (other, n_others)):
            stats._check_apart(size)
        return self._fieldwise(lambda name, mine: _join(mine, getattr(other, name)))

    def _check_apart(self, n_components: int) -> None:
        if any(np.shape(array)[:1] != (n_components,) for array in _arrays(self)):
            raise ValueError(f"{type(self).__name__}: the components share some of the statistics")

    @property
    def is_zero(self) -> bool:
        """True if no row has any weight."""
        return not any(np.any(array) for array in _arrays(self))

    def _fieldwise(self, function: Any) -> Self:
        names = [field.name for field in fields(self)]
        # Not `replace`, which looks every field up again: blocks are added many times in a round.
        return type(self)(**{name: function(name, getattr(self, name)) for name in names})


def _arrays(value: Any) -> list[Any]:
    """Return the arrays and numbers that statistics consist of."""
    if isinstance(value, Stats):
        value = tuple(getattr(value, field.name) for field in fields(value))
    if isinstance(value, tuple):
        return [array for item in value for array in _arrays(item)]
    return [] if value is None else [value]


def _cut(value: Any, one: slice) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(_cut(item, one) for item in value)
    if isinstance(value, Stats):
        return value._fieldwise(lambda _, mine: _cut(mine, one))
    return value[one]


def _join(mine: Any, other: Any) -> Any:
    if mine is None or other is None:
        return None
    if isinstance(mine, tuple):
        return tuple(_join(a, b) for a, b in zip(mine, other, strict=True))
    if isinstance(mine, Stats):
        return mine._fieldwise(lambda name, own: _join(own, getattr(other, name)))
    if isinstance(mine, SparseSums) or isinstance(other, SparseSums):
        mine = mine if isinstance(mine, SparseSums) else SparseSums.of_dense(mine)
        return mine.beside(other)
    return np.concatenate([mine, other])


def _add(mine: Any, other: Any) -> Any:
    if mine is None or other is None:
        return other if mine is None else mine
    if isinstance(mine, tuple):
        return tuple(_add(a, b) for a, b in zip(mine, other, strict=True))
    return mine + other


def _add_to(mine: Any, other: Any) -> Any:
    if isinstance(mine, tuple):
        return tuple(_add_to(a, b) for a, b in zip(mine, other, strict=True))
    if isinstance(mine, Stats) and other is not None:
        mine += other
        return mine
    if isinstance(mine, np.ndarray) and isinstance(other, np.ndarray):
        fits = mine.shape == other.shape and np.result_type(mine, other) == mine.dtype
        if fits and mine.flags.writeable:
            return np.add(mine, other, out=mine)
    return _add(mine, other)


def _scale(value: Any, factor: float) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(_scale(item, factor) for item in value)
    return value.scaled(factor) if isinstance(value, Stats) else value * factor
