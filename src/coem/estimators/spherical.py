"""Spherical k-means over one or several views."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin

from coem.checks import check_weight, undo_on_error
from coem.estimators._angles import angles, cosines
from coem.estimators._corpora import check_result
from coem.estimators._sphere_fit import SphereFit
from coem.estimators._types import Folder, Precision, Seed
from coem.input import read_rows
from coem.latent.block import Block
from coem.row_store import RowStore
from coem.typing import Array


class SphericalKMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SphereFit):
    r"""Cluster directions by their cosines, in one view or in several that learn from each other.

    Rows are scaled to unit length. If you want weights such as TF-IDF, apply them before. In one
    view this is the algorithm of Dhillon & Modha (2001): each row goes to the concept vector with
    the largest cosine, and each concept vector becomes the direction of the sum of its rows. With
    several views, each view takes the partition of the view before it, computes its concept
    vectors for that partition, and a new partition with them; the first view follows the last
    (Bickel & Scheffer 2004, Sec. 4.3). In the end, rows are assigned by all views together.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {"k-means++", "rows"} or array of shape (n_clusters, n_features), default="k-means++"
        Concept vectors of the *last* view, which give the first partition: rows that are drawn far
        apart, rows that are drawn at random, or given vectors. Empty rows are never drawn.
    n_init : int, default=1
        Number of restarts. The one with the largest objective is kept. With given concept vectors
        there is only one run.
    max_iter : int, default=100
        Largest number of rounds over all views.
    patience : int, optional, default=5
        Stop when no view's objective (Eq. 10) has reached a new maximum for this number of rounds,
        and return the best state. Several views need not converge. A single view does, and stops
        after the first round that is not better. None runs all rounds and returns the last state.
    dtype : dtype, optional
        None computes with rows and concept vectors in float32 and sums in float64.
        ``np.float64`` computes everything in float64.
    n_jobs : int, optional
        Number of threads. Results are the same, bit by bit, for any number.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
    checkpoint : path, optional
        A folder that keeps the state of a fit while it runs, as in `MixtureClusterer`.
    verbose : int, default=0
        Write progress to stderr.

    Attributes
    ----------
    labels_ : ndarray of shape (n_rows,)
        Cluster of every row, by the rule of `predict`.
    view_labels_ : ndarray of shape (n_rows, n_views)
        Partition of every view by itself (Eq. 8); -1 where a row is empty.
    cluster_centers_ : dict
        View -> its concept vectors (n_clusters, n_features), of unit length (Eq. 9).
    consensus_centers_ : dict
        View -> centres that `predict` assigns rows by: the directions of the sums of the rows that
        all their views put into the same cluster (Eq. 11). If a cluster has no such rows, or if
        there is only one view, the concept vectors.
    objective_ : float
        Sum over views and rows of the cosine between the row and its concept vector (Eq. 10).
        Larger is better.
    history_ : list of records
        One per round of the best run: `objective`, `view_objective` (view -> Eq. 10),
        `agreement_rate` (Eq. 16), `reseeded` (rows that were given to clusters without rows, as
        (view, cluster, row)), `seconds`. ``history_.to_frame()`` returns a DataFrame.
    runs_ : list of records
        One per restart: `seed`, `objective`, `n_iter`, `converged`, `seconds`.
    best_run_ : int
        The restart that was kept.
    n_start_rows_ : int
        Number of rows that the starts were drawn from: all rows, or some of a large corpus.
    n_iter_ : int
        Rounds of the best run.
    converged_ : bool
        Whether the best run converged.
    view_names_ : tuple of str
        The views, in the order of their turns.
    n_features_in_ : int
        Number of columns of all views.

    Notes
    -----
    A row that is all zeros, or all NaN, is empty in its view. It does not count in the concept
    vectors of that view. The next view takes its cluster from the last view where the row is not
    empty. A row that is empty in every view goes to the largest cluster.

    A cluster that loses all its rows is given the row that fits worst: the row with the smallest
    cosine in the view whose partition is taken over. The only row of a cluster is not moved; of
    equal rows, the first is. This never lowers the objective of a single view.

    If two cosines are equal to the last bit, the cluster with the smaller number wins.

    References
    ----------
    Bickel, S. and Scheffer, T. (2004). Multi-view clustering. ICDM, 19-26.
    Dhillon, I. and Modha, D. (2001). Concept decompositions for large sparse text data using
    clustering. Machine Learning 42, 143-175.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import SphericalKMeans
    >>> words = np.array([[5, 1, 0], [4, 1, 0], [0, 1, 6], [0, 2, 5]])
    >>> links = np.array([[1, 0], [2, 0], [0, 3], [0, 1]])
    >>> model = SphericalKMeans(2, random_state=0).fit({"words": words, "links": links})
    >>> bool(model.labels_[0] == model.labels_[1] != model.labels_[2] == model.labels_[3])
    True
    >>> model.cluster_centers_["links"].shape
    (2, 2)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | ArrayLike = "k-means++",
        n_init: int = 1,
        max_iter: int = 100,
        patience: int | None = 5,
        dtype: Precision = None,
        n_jobs: int | None = None,
        random_state: Seed = None,
        checkpoint: Folder | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.patience = patience
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @undo_on_error
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with one or several views.
        y : ignored
            Accepted because scikit-learn passes it.
        sample_weight : array of shape (n_rows,), optional
            A row with a weight of 2 counts like two equal rows.

        Returns
        -------
        self : SphericalKMeans
            The fitted estimator.
        """
        self._check_params()
        views = read_rows(self, X, reset=True)
        weight = check_weight(sample_weight, views)
        self._fit(self._rows(views, weight))
        return self

    def predict(self, X: Any) -> Array:
        """Return the cluster of every row: the one at the smallest mean angle (Eq. 12).

        The angles are those between a row and the `consensus_centers_`, averaged over the views in
        which the row is not empty.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with the views of `fit`.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            Cluster of every row.
        """
        labels = self._map_blocks(X, self._nearest)
        return np.where(labels < 0, self._largest, labels)

    def transform(self, X: Any) -> Array:
        """Return the mean angle of every row and cluster, in radians: (n_rows, n_clusters).

        A row that is empty in every view is at a right angle to all clusters.
        """
        if isinstance(X, RowStore):
            check_result(len(X), 8 * self.n_clusters)

        def work(block: Block) -> Array:
            return angles(block, self.consensus_centers_, self._family)

        found = self._map_blocks(X, work)
        return np.where(np.isnan(found), np.pi / 2, found)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the objective on `X`: the sum of the cosines to the nearest concept vectors."""

        def work(block: Block) -> Array:
            best = cosines(block, self.cluster_centers_, self._family).max(axis=2)
            return np.array([np.nansum(best)])

        return float(self._map_blocks(X, work).sum())
