"""Which features tell a component from the others."""

import numpy as np

from coem.kernels.sparse_tables import SparseTable
from coem.typing import Array

Ranked = list[list[tuple[int, float]]]
"""For each component features and their values, the best first."""

TINY = np.finfo(np.float64).tiny
NOTHING = 1e-6  # a share that is as good as zero; pseudo-counts leave more


def wllr(prob: Array, weights: Array) -> Array:
    """Return the weighted log-likelihood ratio of every component and feature.

    It is p(f | c) log(p(f | c) / p(f | not c)): large for features that are both frequent in the
    component and rare in the others.

    Parameters
    ----------
    prob : ndarray of shape (n_components, n_features)
        p(feature | component).
    weights : ndarray of shape (n_components,)
        p(component).

    Returns
    -------
    ratios : ndarray of shape (n_components, n_features)

    Notes
    -----
    If no pseudo-counts were added, p(f | not c) is zero, or as good as zero, for many features.
    Their ratios would have no limit, and a feature that occurs once would be the most telling one.
    Then p(f | not c) counts as no less than p(f) of the rarest feature of all. Of something that
    is rarer than that, the data cannot say whether it is rare or impossible. With pseudo-counts
    (no p(f | c) is below 1e-6 times p(f) of the rarest feature), the ratio is left as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from coem.ranking import wllr
    >>> prob = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    >>> wllr(prob, np.array([0.5, 0.5])).argmax(axis=1)
    array([1, 2])
    """
    joint = prob * weights[:, np.newaxis]
    rest = (joint.sum(axis=0) - joint) / np.maximum(1 - weights, TINY)[:, np.newaxis]
    least = np.maximum(rest, _floor(prob, joint.sum(axis=0)))
    ratios: Array = prob * (np.log(np.maximum(prob, TINY)) - np.log(least))
    return ratios


def best(prob: Array | SparseTable, weights: Array | None, n: int) -> Ranked:
    """Return the `n` best features of every component, with their values.

    They are ranked by `wllr`, or without `weights` by `prob` itself. Of equals the first wins.
    """
    if isinstance(prob, SparseTable):
        return _best_listed(prob, weights, n)
    value = prob if weights is None else wllr(prob, weights)
    order = np.argsort(-value, axis=1, kind="stable")[:, :n]
    pairs = zip(value, order, strict=True)
    return [[(int(f), float(row[f])) for f in top] for row, top in pairs]


def _best_listed(table: SparseTable, weights: Array | None, n: int) -> Ranked:
    """Return what `best` does, without an array of all cells.

    Of the features that a component does not list, all have the same probability in it. The best
    are those that are rarest in the others; so the rarest of all are enough.
    """
    listed, shares = table.listed(), np.ones(len(table)) if weights is None else weights
    overall = listed @ shares + float(shares @ table.unseen)
    rarest_first = np.argsort(overall if weights is not None else 0 * overall, kind="stable")
    smallest = (listed.data + table.unseen[listed.indices]).min(initial=1.0)
    listed, found = listed.tocsc(), []
    short = np.diff(listed.indptr) < len(overall)
    floor = _least(min(smallest, table.unseen[short].min(initial=1.0)), overall)
    for j, share in enumerate(shares):
        own = slice(*listed.indptr[j : j + 2])
        words = listed.indices[own]
        others = np.setdiff1d(rarest_first[: n + len(words)], words, assume_unique=True)[:n]
        prob = np.append(listed.data[own], np.zeros(len(others))) + table.unseen[j]
        words = np.append(words, others)
        value = prob
        if weights is not None:
            rest = (overall[words] - prob * share) / max(1 - share, TINY)
            value = prob * (np.log(np.maximum(prob, TINY)) - np.log(np.maximum(rest, floor)))
        order = np.lexsort((words, -value))[:n]
        found.append(list(zip(words[order].tolist(), value[order].tolist(), strict=True)))
    return found


def best_columns(table: SparseTable, weights: Array, n: int) -> Array:
    """Return the features that are among the `n` best of any component, by `wllr` or by itself."""
    ranked = best(table, weights, n) + best(table, None, n)
    return np.unique([feature for top in ranked for feature, _ in top]).astype(np.intp)


def _floor(prob: Array, overall: Array) -> float:
    """Return the least p(f | not c): that of the rarest feature if there are no pseudo-counts."""
    return _least(float(prob.min(initial=1.0)), overall)


def _least(smallest: float, overall: Array) -> float:
    """Return it for the smallest p(f | c) of all."""
    there = overall > NOTHING / len(overall)  # columns without counts are not rare features
    rarest = float(overall[there].min(initial=1.0))
    return rarest if smallest < NOTHING * rarest else float(TINY)
