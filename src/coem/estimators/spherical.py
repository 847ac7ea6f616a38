"""Spherical k-means over one or several views."""

import warnings
from dataclasses import replace
from functools import reduce
from numbers import Integral

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_dtype, check_number, check_weight, check_workers, undo_on_error
from coem.em import em
from coem.engine import LocalEngine
from coem.estimators._concepts import as_theta, consensus, drawer
from coem.estimators._restarts import draw_seeds, each_run, run_records
from coem.families import VonMisesFisher
from coem.input import read_views
from coem.io.model_file import Saves
from coem.latent.block import Partition, any_empty
from coem.latent.sphere import Sphere, view_labels
from coem.records import Records, progress
from coem.schedules import Constant


class SphericalKMeans(
    Saves, ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    r"""Cluster directions by their cosines, in one view or in several that teach each other.

    Rows are scaled to unit length; weighting, such as TF-IDF, is the caller's. In one view this is
    the algorithm of Dhillon & Modha (2001): rows go to the concept vector with the largest
    cosine, concept vectors become the directions of the sums of their rows. Several views hand
    their partitions on, in their order and round again: each finds its concept vectors for the
    partition of the view before it, and a new partition with them (Bickel & Scheffer 2004,
    Sec. 4.3). In the end rows are assigned by all views together.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {"k-means++", "rows"} or array of shape (n_clusters, n_features), default="k-means++"
        Concept vectors of the *last* view, from which the first partition comes: rows drawn far
        apart, rows drawn at random, or the given ones. Rows drawn are never empty.
    n_init : int, default=1
        Number of restarts; the one with the largest objective is kept. Given concept vectors,
        there is one run.
    max_iter : int, default=100
        Largest number of rounds over all views.
    patience : int, optional, default=5
        Stop when the objective of no view (Eq. 10) has reached a new maximum for so many rounds,
        and return the best state: several views need not converge. One view does, and stops with
        the first round that is no better. None runs all rounds and returns the last state.
    dtype : dtype, optional
        None computes with rows and concept vectors in float32 and sums in float64;
        ``np.float64`` computes everything in double.
    n_jobs : int, optional
        Number of threads. Results are the same, bit by bit, for any number.
    random_state : int, RandomState or None, default=None
        Seed of the starts.
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
        View -> directions of the sums of the rows that all their views put into the same cluster
        (Eq. 11), by which rows are assigned. Where there are no such rows, and for a single view,
        the concept vectors.
    objective_ : float
        Sum over views and rows of the cosine of the row and its concept vector (Eq. 10). Larger
        is better.
    history_ : list of records
        One a round of the best run: `objective`, `view_objective` (view -> Eq. 10),
        `agreement_rate` (Eq. 16), `reseeded` (who became a cluster that had lost all its rows, as
        (view, cluster, row)), `seconds`. ``history_.to_frame()`` gives a DataFrame.
    runs_ : list of records
        One a restart: `seed`, `objective`, `n_iter`, `converged`, `seconds`.
    best_run_ : int
        The restart that was kept.
    n_iter_ : int
        Rounds of the best run.
    converged_ : bool
        Whether the best run stopped by itself.
    view_names_ : tuple of str
        The views, in the order of their turns.
    n_features_in_ : int
        Number of columns of all views.

    Notes
    -----
    A row of zeros, or of NaN as a whole, is empty in its view. It has no part in the concept
    vectors there; for the next view its partition is that of the last view that has seen it. A
    row that is empty everywhere goes to the largest cluster.

    A cluster that loses all its rows is given the row that fits worst: the one with the least
    cosine in the view whose partition is handed on, that is not the last of its cluster; of
    equals the first. That never lowers the objective of a single view.

    Of cosines that are equal to the last bit the cluster with the smallest number wins.

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
        n_clusters=8,
        *,
        init="k-means++",
        n_init=1,
        max_iter=100,
        patience=5,
        dtype=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.patience = patience
        self.dtype = dtype
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        """Tell scikit-learn what views may be."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- fit ---------------------------------------------------------------------------------

    @undo_on_error
    def fit(self, X, y=None, sample_weight=None):
        """Find the clusters.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Rows seen through one or several views.
        y : ignored
            Here for scikit-learn's sake.
        sample_weight : array of shape (n_rows,), optional
            A weight of 2 counts as the row given twice.

        Returns
        -------
        self : SphericalKMeans
            The fitted estimator.
        """
        self._check_params()
        views = read_views(self, X, reset=True)
        weight = check_weight(sample_weight, views)
        matrices, empty = self._encode(views)
        mass = _mass(len(views), empty, weight)
        self._check_enough_rows(mass)
        draw = drawer(self.init, self.n_clusters, matrices[-1], mass)
        model = Sphere(len(matrices), self.n_clusters)
        seeds = draw_seeds(self.random_state, self.n_init if isinstance(self.init, str) else 1)

        def run(index, engine):
            data = Partition(matrices, empty, weight)
            notes = Records()
            start = model.begin(data, draw(np.random.default_rng(seeds[index])))
            result = em(
                model,
                engine,
                data,
                start,
                eta=Constant(1.0),
                beta=Constant(1.0),
                max_iter=self.max_iter,
                tol=0.0,
                patience=1 if self.patience and len(matrices) == 1 else self.patience,
                monitor=self._monitor(data, notes, f"[SphericalKMeans] run {index + 1}"),
            )
            theta = model.made(data, result.theta)
            model.e_step(engine, data, theta, 1.0, 1.0)  # the best state may be an old one
            return replace(result, theta=theta), notes, view_labels(data)

        with LocalEngine(self.n_jobs) as engine:
            runs = each_run(engine, run, len(seeds))
            result = self._keep(runs, seeds)
            self._finish(Partition(matrices, empty, weight), result, engine)
        return self

    def _check_params(self):
        check_number("n_clusters", self.n_clusters, Integral, 1)
        check_number("n_init", self.n_init, Integral, 1)
        check_number("max_iter", self.max_iter, Integral, 1)
        check_number("patience", self.patience, Integral, 1, optional=True)
        check_dtype(self.dtype)
        check_workers(self.n_jobs, None, self.verbose)

    def _encode(self, views):
        """Return the unit rows of every view, and which of them are empty."""
        family = VonMisesFisher(dtype=self.dtype)
        parts = [family.split(family.check(views[name], name)) for name in views.names]
        empty = any_empty([~(lengths > 0) for _, lengths in parts])
        return tuple(rows for rows, _ in parts), empty

    def _check_enough_rows(self, mass):
        """Refuse more clusters than the last view has rows to start them."""
        n = np.count_nonzero(mass)
        if n >= self.n_clusters:
            return
        several = len(self.view_names_) > 1
        raise ValueError(
            f"n_samples={n} rows that are not empty and have a weight"
            + (f" in view {self.view_names_[-1]!r}" if several else "")
            + f" cannot fill n_clusters={self.n_clusters} clusters; ask for fewer"
            + (", or put another view last" if several else "")
        )

    def _monitor(self, data, notes, label):
        """Return what keeps a record of every round and tells of it."""
        tell = progress(self.verbose, label)

        def monitor(record):
            moves, data.cache.moves = data.cache.moves, []
            values = zip(self.view_names_, record.log_likelihood, strict=True)
            notes.append(
                Bunch(
                    round=record.round,
                    objective=record.objective,
                    view_objective=dict(values),
                    agreement_rate=record.agreement_rate,
                    reseeded=[(self.view_names_[m.view], m.cluster, m.row) for m in moves],
                    seconds=record.seconds,
                )
            )
            tell(record)

        return monitor

    def _keep(self, runs, seeds):
        """Set what is known of the runs, and return the best one."""
        self.runs_ = run_records([result for result, _, _ in runs], seeds)
        self.best_run_ = int(np.argmax([run.objective for run in self.runs_]))
        best, self.history_, self.view_labels_ = runs[self.best_run_]
        self.objective_, self.n_iter_ = best.objective, len(self.history_)
        self.converged_ = best.converged
        return best

    def _finish(self, data, result, engine):
        """Set centres and labels, and warn of what a user should know."""
        theta = result.theta
        self.cluster_centers_ = self._by_view(theta.directions)
        self.consensus_centers_ = self._by_view(consensus(data, theta, self.view_labels_))
        self._n_features_out = self.n_clusters
        self._set_labels(data, engine, result.fell)

    def _set_labels(self, data, engine, fell):
        """Assign the rows; with one view, the least angle is the largest cosine."""
        labels = self.view_labels_[:, 0].astype(np.intp)
        if len(self.view_names_) > 1:
            labels = np.concatenate(engine.map(self._nearest, data.blocks))
        weight = np.ones(data.n_rows) if data.weight is None else data.weight
        there = labels >= 0
        sizes = np.bincount(labels[there], weight[there], minlength=self.n_clusters)
        self._largest = int(sizes.argmax())
        self.labels_ = np.where(there, labels, self._largest)
        self._warn(np.flatnonzero(sizes == 0).tolist(), fell)

    def _by_view(self, values):
        return dict(zip(self.view_names_, values, strict=True))

    def _warn(self, dead, fell):
        told = []
        if self.patience and not self.converged_:
            told.append(
                f"no convergence after {self.n_iter_} rounds; raise max_iter, or pass "
                "patience=None to run a fixed number of rounds"
            )
        if dead:
            told.append(
                f"clusters {dead} of {self.n_clusters} have no rows: the rows have too few "
                "different directions; use fewer clusters or more restarts (n_init)"
            )
        if fell > 1e-5:
            told.append(f"the objective fell by {fell:.2g}, relative, where it cannot")
        for message in told:
            warnings.warn(message, ConvergenceWarning, stacklevel=6)

    # -- predict -----------------------------------------------------------------------------

    def predict(self, X):
        """Return the cluster of every row: the one at the least mean angle (Eq. 12).

        Angles are those of a row and the `consensus_centers_`, averaged over the views in which
        the row is not empty.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Rows with the views of `fit`.

        Returns
        -------
        labels : ndarray of shape (n_rows,)
            Cluster of every row.
        """
        labels = self._map(X, self._nearest)
        return np.where(labels < 0, self._largest, labels)

    def transform(self, X):
        """Return the mean angle, in radians, of every row and cluster: (n_rows, n_clusters).

        A row that is empty in every view is at a right angle to all of them.
        """
        angles = self._map(X, self._angles)
        return np.where(np.isnan(angles), np.pi / 2, angles)

    def score(self, X, y=None):
        """Return the objective on `X`: cosines of rows and nearest concept vectors, summed."""

        def work(block):
            nearest = self._cosines(block, self.cluster_centers_).max(axis=2)
            return np.array([np.nansum(nearest)])

        return float(self._map(X, work).sum())

    def _map(self, X, work):
        check_is_fitted(self)
        views = read_views(self, X, reset=False)
        matrices, empty = self._encode(views)
        with LocalEngine(self.n_jobs) as engine:
            return np.concatenate(engine.map(work, Partition(matrices, empty).blocks))

    def _cosines(self, block, centres):
        """Return cosines (n_views, n, n_clusters), NaN where a row is empty."""
        family = VonMisesFisher(dtype=self.dtype)
        values = [
            family.cosines(X, as_theta(centres[name]))
            for name, X in zip(self.view_names_, block.views, strict=True)
        ]
        for v, cosines in enumerate(values):
            blank = block.blank(v)
            if blank is not None:
                cosines[blank] = np.nan
        return np.stack(values)

    def _nearest(self, block):
        """Return the cluster of every row, -1 for rows that are empty everywhere."""
        if len(self.view_names_) == 1:  # the least angle is the largest cosine
            cosines = self._cosines(block, self.consensus_centers_)[0]
            return np.where(np.isnan(cosines[:, 0]), -1, cosines.argmax(axis=1))
        angles = self._angles(block)
        return np.where(np.isnan(angles[:, 0]), -1, angles.argmin(axis=1))

    def _angles(self, block):
        """Return the mean angles (n, n_clusters), NaN for rows that are empty everywhere."""
        angles = np.arccos(np.clip(self._cosines(block, self.consensus_centers_), -1.0, 1.0))
        there = ~np.isnan(angles)
        total = reduce(np.add, np.where(there, angles, 0.0))
        return np.where(there.any(axis=0), total, np.nan) / np.maximum(there.sum(axis=0), 1)


def _mass(n_rows, empty, weight):
    """Return the weights of the rows in the last view, zero where it is empty."""
    mass = np.ones(n_rows) if weight is None else weight
    return mass if empty is None else mass * ~empty[:, -1]
