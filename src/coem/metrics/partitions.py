"""The lattice of partitions: what two clusterings tell together."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from coem.typing import Array

__all__ = ["join", "meet"]


def meet(*labels: ArrayLike) -> Array:
    """Return the coarsest partition that is finer than all given ones.

    Two rows are together if they are together in *every* partition. So the meet splits a cluster
    as soon as one of the partitions does.

    Parameters
    ----------
    *labels : array-like of shape (n,)
        Cluster of each row, in one or more partitions of the same rows; numbers or strings.

    Returns
    -------
    labels : ndarray of shape (n,)
        Numbers from 0, in the order of the first rows of the clusters.

    See Also
    --------
    join : The finest partition that is coarser than all given ones.

    References
    ----------
    J. K. Lin (2006), Probabilistic Multi-State Split-Merge Algorithm for Coupling Parameter
    Estimates, Sec. 2.

    Examples
    --------
    The first partition does not part NYC and Boston from fruit, the second not fruit from colours.

    >>> from coem.metrics import meet
    >>> things = ["NYC", "Boston", "apple", "orange", "red", "blue"]
    >>> meet([0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]).tolist()
    [0, 0, 1, 1, 2, 2]
    """
    codes = _codes(labels)
    return _in_order(np.unique(codes, axis=1, return_inverse=True)[1])


def join(*labels: ArrayLike) -> Array:
    """Return the finest partition that is coarser than all given ones.

    Two rows are together if a chain of rows leads from one to the other, in which neighbours are
    together in *some* partition. So the join merges what any of the partitions merges.

    Parameters
    ----------
    *labels : array-like of shape (n,)
        Cluster of each row, in one or more partitions of the same rows; numbers or strings.

    Returns
    -------
    labels : ndarray of shape (n,)
        Numbers from 0, in the order of the first rows of the clusters.

    See Also
    --------
    meet : The coarsest partition that is finer than all given ones.

    References
    ----------
    J. K. Lin (2006), Probabilistic Multi-State Split-Merge Algorithm for Coupling Parameter
    Estimates, Sec. 2.

    Examples
    --------
    Each of the two partitions of four colours and two oceans cuts the colours in half.

    >>> from coem.metrics import join
    >>> things = ["red", "green", "blue", "yellow", "pacific", "atlantic"]
    >>> join([0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 2, 2]).tolist()
    [0, 0, 0, 0, 1, 1]
    """
    codes = _codes(labels)
    n = codes.shape[1]
    # Rows and clusters are the nodes of a graph. A cluster of any partition ties its rows together.
    sizes = codes.max(axis=1, initial=-1) + 1
    clusters = codes + n + (np.cumsum(sizes) - sizes)[:, np.newaxis]
    rows = np.broadcast_to(np.arange(n), clusters.shape)
    total = n + int(sizes.sum())
    ties = (np.ones(clusters.size, dtype=np.int8), (rows.ravel(), clusters.ravel()))
    _, found = connected_components(sparse.coo_array(ties, shape=(total, total)), directed=False)
    return _in_order(found[:n])


def _codes(labels: tuple[ArrayLike, ...]) -> Array:
    """Return the partitions as numbers from 0, of shape (n_partitions, n)."""
    if not labels:
        raise TypeError("pass at least one partition: the cluster of each row")
    given = [np.asarray(each) for each in labels]
    for number, each in enumerate(given):
        if each.ndim != 1:
            raise ValueError(
                f"partition {number} must have one cluster for each row, got shape {each.shape}"
            )
        if len(each) != len(given[0]):
            raise ValueError(
                f"partition {number} has {len(each)} rows and partition 0 has {len(given[0])}; "
                "pass partitions of the same rows"
            )
    return np.array([np.unique(each, return_inverse=True)[1] for each in given])


def _in_order(codes: Array) -> Array:
    """Return the clusters numbered by their first rows."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]
