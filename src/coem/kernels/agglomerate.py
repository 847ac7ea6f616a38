"""Agglomerative clustering in which several views take turns."""

from typing import NamedTuple

import numpy as np

from coem.kernels import _compiled
from coem.typing import Array

LINKAGES = ("single", "complete", "average")


class Merges(NamedTuple):
    """What was merged, in order. Rows are clusters 0 to n - 1; merge t makes cluster n + t."""

    children: Array
    """(n - 1, 2), the smaller number first."""
    distances: Array
    """(n - 1,), in the view whose turn it was."""
    sizes: Array
    """(n - 1,), rows of the new cluster."""


def agglomerate(cells: Array, n: int, linkage: str) -> Merges:
    """Merge the closest pair of clusters until one is left; merge t is the turn of a view.

    Bickel & Scheffer 2004, Table 2. Merge t takes the pair that is closest in view ``t % n_views``
    and applies to all views; distances from the union follow from those of its parts (Lance and
    Williams), rounded to the precision of `cells`. About n^2 time.

    Of pairs equally close, the one with the smallest slots (i, j), i < j, is merged; the slot of
    a cluster is the least of its rows.

    Parameters
    ----------
    cells : float32 or float64 array of shape (n_views, n * (n - 1) / 2)
        Distances of the pairs of rows, in the order of ``scipy.spatial.distance.pdist``: finite
        and not negative. It is scratch memory: its values are lost.
    n : int
        Number of rows, 2 at least.
    linkage : {"single", "complete", "average"}

    Examples
    --------
    >>> import numpy as np
    >>> from coem.kernels.agglomerate import agglomerate
    >>> near_far = np.array([[1.0, 5.0, 4.0]])  # of rows 0 and 1, 0 and 2, 1 and 2
    >>> agglomerate(near_far, 3, "average").distances
    array([1. , 4.5])
    """
    merges = Merges(np.empty((n - 1, 2), np.int64), np.empty(n - 1), np.empty(n - 1, np.int64))
    _compiled.agglomerate(cells, LINKAGES.index(linkage), *merges)
    return merges
