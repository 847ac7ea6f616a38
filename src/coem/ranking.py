"""Which features tell a component from the others."""

import numpy as np

from coem.typing import Array

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


def _floor(prob: Array, overall: Array) -> float:
    """Return the least p(f | not c): that of the rarest feature if there are no pseudo-counts."""
    there = overall > NOTHING / len(overall)  # columns without counts are no rare features
    rarest = float(overall[there].min(initial=1.0))
    return rarest if prob.min(initial=1.0) < NOTHING * rarest else float(TINY)
