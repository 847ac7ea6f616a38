"""Agglomerative clustering over one or several views."""

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_choice, check_number, undo_on_error
from coem.distances import METRICS, condensed
from coem.input import read_views
from coem.io.loaded import need, widths_of
from coem.io.model_file import Saves
from coem.io.registry import register
from coem.kernels.agglomerate import LINKAGES, agglomerate


class MultiViewAgglomerative(Saves, ClusterMixin, BaseEstimator):
    r"""Merge the closest clusters, one view after the other taking a turn.

    Every row starts as a cluster. The first view merges the two clusters that are closest in it,
    then the second view those that are closest in it, and so on, in the order of the views and
    round again, until one cluster is left (Bickel & Scheffer 2004, Table 2). A merge holds for
    all views: there is one tree. One view gives the ordinary algorithm.

    Parameters
    ----------
    n_clusters : int, default=2
        Number of clusters of `labels_`. `cut` gives any other number without a new fit.
    linkage : {"average", "single", "complete"}, default="average"
        The distance of two clusters: the mean, the least or the largest of their rows' distances.
    metric : {"cosine", "euclidean", "precomputed"}, default="cosine"
        The distance of two rows. "precomputed" takes a square, symmetric matrix of distances for
        each view. Under "cosine", a row of zeros has nothing in common with any other row: its
        distance is 1 from all of them, other rows of zeros too, so that a view hardly merges rows
        of which it says nothing before the other views have.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,)
        Cluster of every row; clusters are numbered by their first rows.
    children_ : ndarray of shape (n_rows - 1, 2)
        The clusters of every merge, in order. Rows are clusters 0 to n_rows - 1, and merge t
        makes cluster n_rows + t. As in scikit-learn's `AgglomerativeClustering`.
    distances_ : ndarray of shape (n_rows - 1,)
        Distance of the merged clusters, in the view that merged them.
    merge_view_ : ndarray of shape (n_rows - 1,)
        The view that merged them: its place in `view_names_`.
    linkage_matrix_ : ndarray of shape (n_rows - 1, 4)
        The tree as `scipy.cluster.hierarchy.dendrogram` draws it.
    n_clusters_ : int
        Number of clusters of `labels_`.
    view_names_ : tuple of str
        The views, in the order of their turns.
    n_features_in_ : int
        Number of columns of all views.

    Notes
    -----
    Of pairs equally close the one with the smallest (i, j), i < j, is merged, where a cluster
    counts by the least of its rows.

    With several views the heights of `linkage_matrix_` come from different scales, and may fall
    from one merge to the next. What counts is the order of the merges: cut by `cut`, not by a
    height (scipy's `fcluster` and `cut_tree`). For a drawing without crossings replace the
    heights by that order: ``Z = model.linkage_matrix_; Z[:, 2] = np.arange(1, len(Z) + 1)``.

    Time and memory are about n_rows squared: 4 n_rows^2 bytes a view, or half of it if every view
    is float32. Distances are kept in that precision; the data are not changed.

    The paper finds several views no better here than one view of all columns (Sec. 5.2, 5.3): a
    merge rests on the evidence of one view alone, and is never undone. Its multi-view EM is
    `MixtureClusterer`.

    References
    ----------
    Bickel, S. and Scheffer, T. (2004). Multi-view clustering. ICDM, 19-26.
    Müllner, D. (2011). Modern hierarchical, agglomerative clustering algorithms. arXiv:1109.2378.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MultiViewAgglomerative
    >>> words = np.array([[5, 1, 0], [4, 1, 0], [0, 1, 6], [0, 2, 5]])
    >>> links = np.array([[1, 0], [2, 0], [0, 3], [0, 1]])
    >>> model = MultiViewAgglomerative().fit({"words": words, "links": links})
    >>> model.labels_
    array([0, 0, 1, 1])
    >>> model.merge_view_
    array([0, 1, 0])
    >>> model.cut(3)
    array([0, 0, 1, 2])
    """

    def __init__(self, n_clusters=2, *, linkage="average", metric="cosine"):
        self.n_clusters = n_clusters
        self.linkage = linkage
        self.metric = metric

    def __sklearn_tags__(self):
        """Tell scikit-learn what the metric takes."""
        tags = super().__sklearn_tags__()
        given = self.metric == "precomputed"
        tags.input_tags.sparse = not given
        tags.input_tags.pairwise = tags.input_tags.positive_only = given
        return tags

    @undo_on_error
    def fit(self, X, y=None):
        """Merge the rows to one tree and cut it.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Rows seen through one or several views; with ``metric="precomputed"``, a matrix of
            distances for each view.
        y : ignored
            Here for scikit-learn's sake.

        Returns
        -------
        self : MultiViewAgglomerative
            The fitted estimator.
        """
        check_number("n_clusters", self.n_clusters, Integral, 1)
        check_choice("linkage", self.linkage, LINKAGES)
        check_choice("metric", self.metric, tuple(METRICS))
        views = read_views(self, X, reset=True)
        n = len(views)
        if n < 2:
            raise ValueError(f"n_samples={n} row cannot be merged; give at least 2 rows")
        if self.n_clusters > n:
            raise ValueError(
                f"n_samples={n} rows cannot fill n_clusters={self.n_clusters} clusters"
            )
        merges = agglomerate(self._distances(views), n, self.linkage)
        self.children_, self.distances_ = merges.children, merges.distances
        self.merge_view_ = np.arange(n - 1) % views.n_views
        self.linkage_matrix_ = np.column_stack([*merges]).astype(np.float64)
        self.n_clusters_ = int(self.n_clusters)
        self.labels_ = self.cut(self.n_clusters)
        return self

    def cut(self, n_clusters):
        """Return the labels of another number of clusters: undo the last n_clusters - 1 merges.

        Parameters
        ----------
        n_clusters : int
            Between 1 and the number of rows.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            Cluster of every row; clusters are numbered by their first rows.
        """
        check_is_fitted(self, "children_")
        n = len(self.children_) + 1
        check_number("n_clusters", n_clusters, Integral, 1)
        if n_clusters > n:
            raise ValueError(f"{n} rows cannot be cut into {n_clusters} clusters")
        top = np.arange(2 * n - 1)  # the cluster of the cut that a cluster is in
        for t in range(n - n_clusters - 1, -1, -1):
            top[self.children_[t]] = top[n + t]
        _, first, labels = np.unique(top[:n], return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[labels]

    def _distances(self, views):
        """Return the distances of all pairs in every view, in single precision if all views are."""
        n = len(views)
        single = all(matrix.dtype in (np.float16, np.float32) for _, matrix in views.items())
        cells = np.empty(
            (views.n_views, n * (n - 1) // 2), dtype=np.float32 if single else np.float64
        )
        for (name, matrix), out in zip(views.items(), cells, strict=True):
            condensed(matrix, self.metric, name, out)
        return cells


def _check_tree(model):
    """Refuse a loaded tree whose merges are not of clusters that are there."""
    if not hasattr(model, "children_"):
        return
    widths_of(model)
    children = model.children_
    merges = isinstance(children, np.ndarray) and children.dtype.kind == "i"
    need(merges and children.ndim == 2 and children.shape[1] == 2, "children_")
    first = np.arange(len(children) + 1, 2 * len(children) + 1)[:, np.newaxis]
    need((children >= 0).all() and (children < first).all(), "children_")
    need(np.shape(model.labels_) == (len(children) + 1,), "labels_")


register(MultiViewAgglomerative, check=_check_tree)
