"""Which features tell a component from the others."""

import numpy as np

from coem.typing import Array


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

    Examples
    --------
    >>> import numpy as np
    >>> from coem.ranking import wllr
    >>> prob = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5]])
    >>> wllr(prob, np.array([0.5, 0.5])).argmax(axis=1)
    array([1, 2])
    """
    tiny = np.finfo(np.float64).tiny
    joint = prob * weights[:, np.newaxis]
    rest = (joint.sum(axis=0) - joint) / np.maximum(1 - weights, tiny)[:, np.newaxis]
    ratios: Array = prob * (np.log(np.maximum(prob, tiny)) - np.log(np.maximum(rest, tiny)))
    return ratios
