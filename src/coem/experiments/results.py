"""What the trials of an experiment measured: chosen, paired and summed up."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from coem.typing import Array

ERROR = " error"  # ends the name of the column that has the standard errors of the column before it


class Estimate(NamedTuple):
    """A mean with its standard error, which is NaN if there is one value only.

    Examples
    --------
    >>> from coem.experiments import Estimate
    >>> f"{Estimate(1.6034, 0.0391, 20)}, {Estimate(76.2, 0.4, 10):.1f}"
    '1.603 ± 0.039, 76.2 ± 0.4'
    """

    mean: float
    error: float
    n: int

    def __format__(self, form: str) -> str:
        """Return mean and error, each as `form` says; three decimals by default."""
        shown = format(self.mean, form or ".3f")
        return shown if math.isnan(self.error) else f"{shown} ± {format(self.error, form or '.3f')}"


class Table(NamedTuple):
    """Rows of plain values under names. A column "x error" has the standard errors of "x"."""

    columns: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True)
class Results:
    """Rows of results: the settings of a trial and what it measured, in one dict each.

    Parameters
    ----------
    rows : sequence of dict
        In the order of the trials.

    Examples
    --------
    >>> from coem.experiments import Results
    >>> entropies = {("EM", 0): 2.0, ("EM", 1): 2.2, ("co-EM", 0): 1.5, ("co-EM", 1): 1.7}
    >>> rows = [{"method": m, "seed": s, "entropy": e} for (m, s), e in entropies.items()]
    >>> results = Results(rows)
    >>> f"{results.where(method='EM').mean('entropy'):.1f}"
    '2.1 ± 0.1'
    >>> results.paired("entropy", method=("EM", "co-EM"), on=["seed"])
    (array([2. , 2.2]), array([1.5, 1.7]))
    """

    rows: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self.rows)

    def where(self, **chosen: Any) -> "Results":
        """Return the rows that have these values; a list or tuple allows any of its values."""
        allowed = {k: v if isinstance(v, list | tuple) else (v,) for k, v in chosen.items()}
        return Results([r for r in self.rows if all(r[k] in v for k, v in allowed.items())])

    def unique(self, name: str) -> list[Any]:
        """Return the different values of a column, in the order of their first rows."""
        return list(dict.fromkeys(row[name] for row in self.rows))

    def values(self, name: str) -> Array:
        """Return a column as an array."""
        return np.array([row[name] for row in self.rows])

    def groups(self, *names: str) -> dict[tuple[Any, ...], "Results"]:
        """Return the rows by their values in some columns, in the order of their first rows."""
        found: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
        for row in self.rows:
            found.setdefault(tuple(row[name] for name in names), []).append(row)
        return {key: Results(rows) for key, rows in found.items()}

    def mean(self, name: str) -> Estimate:
        """Return the mean of a column and its standard error; rows without a value are left out."""
        values = np.array([row[name] for row in self.rows if row.get(name) is not None], float)
        if not len(values):
            raise ValueError(f"no row has a value of {name!r}, so there is no mean")
        spread = float(values.std(ddof=1)) if len(values) > 1 else math.nan
        return Estimate(float(values.mean()), spread / math.sqrt(len(values)), len(values))

    def paired(self, name: str, *, on: Sequence[str], **which: tuple[Any, Any]) -> tuple[Any, Any]:
        """Return two arrays of a column, for two values of another, row by row.

        Parameters
        ----------
        name : str
            The column.
        on : sequence of str
            Columns that are equal in the two rows of a pair, such as the seed.
        **which
            The other column and its two values: ``method=("EM", "co-EM")``.
        """
        ((column, pair),) = which.items()
        sides = [self.where(**{column: value}).groups(*on) for value in pair]
        if sides[0].keys() != sides[1].keys() or any(len(r) > 1 for s in sides for r in s.values()):
            raise ValueError(
                f"the rows of {column} {pair[0]!r} and {pair[1]!r} do not pair by {', '.join(on)}"
            )
        first, second = (np.array([s[key].rows[0][name] for key in sides[0]]) for s in sides)
        return first, second

    def summary(self, name: str, by: Sequence[str]) -> Table:
        """Return mean, standard error and number of the values of a column, one row per group."""
        rows = [[*key, *rows.mean(name)] for key, rows in self.groups(*by).items()]
        return Table([*by, name, f"{name}{ERROR}", "n"], rows)

    def pivot(self, name: str, by: Sequence[str], across: str) -> Table:
        """Return means and errors of a column, one row per group, side by side for `across`."""
        kinds, rows = self.unique(across), []
        for key, mine in self.groups(*by).items():
            parts = mine.groups(across)
            cells = [parts[kind,].mean(name) if (kind,) in parts else None for kind in kinds]
            means = [(None, None) if c is None else (c.mean, c.error) for c in cells]
            rows.append([*key, *(v for pair in means for v in pair), max(c.n for c in cells if c)])
        shown = [kind if isinstance(kind, str) else f"{across} = {kind:g}" for kind in kinds]
        heads = [head for name in shown for head in (name, f"{name}{ERROR}")]
        return Table([*by, *heads, "n"], rows)
