"""Additive statistics: the one law that threads, partitions and weights rest on."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self


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

    def scaled(self, factor: float) -> Self:
        """Return the statistics with every row's weight multiplied by ``factor``."""
        return self._fieldwise(lambda _, mine: _scale(mine, factor))

    def _fieldwise(self, function: Any) -> Self:
        names = [field.name for field in fields(self)]
        return replace(self, **{name: function(name, getattr(self, name)) for name in names})


def _add(mine: Any, other: Any) -> Any:
    if mine is None or other is None:
        return other if mine is None else mine
    if isinstance(mine, tuple):
        return tuple(_add(a, b) for a, b in zip(mine, other, strict=True))
    return mine + other


def _scale(value: Any, factor: float) -> Any:
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(_scale(item, factor) for item in value)
    return value.scaled(factor) if isinstance(value, Stats) else value * factor
