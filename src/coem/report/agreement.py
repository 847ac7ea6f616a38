"""How far the views agree on the groups, and what their disagreement says about errors."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from coem.metrics import agreement_rate

N_PAIRS = 3  # tables of group by group that are shown: those of the pairs that agree least


@dataclass(frozen=True)
class Pair:
    """Two views, each with its own idea of the groups.

    `table` counts the rows that `views[0]` puts into the group of the table's row and `views[1]`
    into that of its column, among rows that are empty in neither.
    """

    views: tuple
    n_rows: int
    rate: float
    table: list

    @property
    def disagreement(self):
        """Share of the rows on which the two differ."""
        return 1.0 - self.rate


@dataclass(frozen=True)
class Agreement:
    """How far views agree.

    Attributes
    ----------
    names : list of str
        The views that speak.
    rate : float
        Share of the pairs of non-empty views of a row that agree, as `coem.metrics.agreement_rate`.
    matrix : list of list of float
        Share of rows on which any two views agree, among rows that are empty in neither; NaN where
        there are none.
    n_rows : list of list of int
        The numbers of these rows.
    pairs : list of Pair
        Pairs of views with their tables of group by group, those that agree least first.
    apart : dict of str to float
        View -> the least share of rows on which it disagrees with another view, see Notes.
    groups : list of float
        For every group the share of its rows on which all non-empty views agree.
    documents : list of Document
        Rows on which the views disagree most.
    dissent : str
        What the disagreement of a row is measured in.

    Notes
    -----
    Where two views disagree, one of them at least is wrong: their errors add up to the share of
    these rows or more, whatever the true groups are. That is a lower bound.

    An upper bound (Bickel & Scheffer 2005, Sec. 4, Eq. 1-3) needs views that are independent given
    the true component, and right at least half of the time: then the share of rows on which they
    disagree is at least the error of either. The views of a fitted model learnt from each other.
    They agree where they are wrong, too, so that this bound does not hold for them, and none is
    given.
    """

    names: list
    rate: float
    matrix: list
    n_rows: list
    pairs: list
    apart: dict
    groups: list
    documents: list
    dissent: str


def agree(reading, documents):
    """Return how far the views agree, or None if but one speaks."""
    speaks = [v for v, name in enumerate(reading.views.names) if name not in reading.silent]
    if reading.view_groups is None or len(speaks) < 2:
        return None
    names, views = [reading.views.names[v] for v in speaks], reading.view_groups[:, speaks]
    matrix, n_rows = rates(views)
    pairs = []
    for u, v in combinations(range(len(names)), 2):
        if n_rows[u, v]:
            table = _cross(views[:, u], views[:, v], reading.n_groups).tolist()
            pair = Pair((names[u], names[v]), int(n_rows[u, v]), float(matrix[u, v]), table)
            pairs.append(pair)
    apart = {}
    for v, name in enumerate(names):
        others = np.delete(matrix[v], v)
        if np.isfinite(others).any():
            apart[name] = float(1.0 - np.nanmax(others))
    return Agreement(
        names=names,
        rate=agreement_rate(views),
        matrix=matrix.tolist(),
        n_rows=n_rows.tolist(),
        pairs=sorted(pairs, key=lambda pair: pair.rate)[:N_PAIRS],
        apart=apart,
        groups=_by_group(reading),
        documents=documents,
        dissent=reading.dissent,
    )


def rates(view_groups):
    """Return in which share of rows any two views agree, and of how many rows.

    Parameters
    ----------
    view_groups : ndarray of shape (n_rows, n_views)
        Group of every row in every view, -1 where it is empty.

    Returns
    -------
    matrix, n_rows : ndarrays of shape (n_views, n_views)
        Over the rows that are empty in neither view; NaN where there are none.
    """
    filled = (view_groups >= 0).astype(np.int64)
    n_rows = filled.T @ filled
    same = np.array(
        [((v[:, None] == view_groups) & (v >= 0)[:, None]).sum(0) for v in view_groups.T]
    )
    return np.where(n_rows > 0, same / np.maximum(n_rows, 1), np.nan), n_rows


def _cross(first, second, k):
    """Return how many rows each combination of groups has."""
    both = (first >= 0) & (second >= 0)
    return np.bincount(first[both] * k + second[both], minlength=k * k).reshape(k, k)


def _by_group(reading):
    """Return the share of the rows of every group on which no two views differ."""
    views = reading.view_groups
    low = np.where(views >= 0, views, reading.n_groups).min(axis=1)
    same = (views.max(axis=1) == low) | (views < 0).all(axis=1)
    agreeing = np.bincount(reading.groups, weights=same, minlength=reading.n_groups)
    return (agreeing / np.maximum(reading.sizes, 1)).tolist()
