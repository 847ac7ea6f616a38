"""What a fitted model says of rows, whatever kind of model it is."""

from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from coem.report.closeness import Space
from coem.views import Views, as_views


@dataclass(frozen=True, eq=False)
class Reading:
    """A model's groups, and what it says of every row.

    Attributes
    ----------
    views : Views
        The rows.
    noun : str
        What a group is called: "cluster", "class" or "topic".
    keys : list
        What the model calls its groups: numbers, or classes.
    groups : ndarray of shape (n_rows,)
        Place in `keys` of the group of every row.
    closeness : ndarray of shape (n_rows, n_groups)
        What the second choice is made by: the posterior where there is one, else cosines.
    proba : ndarray of shape (n_rows, n_groups), optional
        The posterior.
    view_groups : ndarray of shape (n_rows, n_views), optional
        The group by each view alone; -1 where the row is empty.
    disagreement : ndarray of shape (n_rows,), optional
        How far the views disagree on a row; `dissent` says in what it is measured.
    dissent : str
        "nats", or "share" of the pairs of views.
    tables : dict of view to ndarray of shape (n_groups, n_features)
        p(feature | group), of the views for which the model has it.
    families : dict of view to str
        What the model takes a view for, if it says.
    locate : dict of view to callable
        From a feature of a table to its column, or to (column, level).
    weights : ndarray of shape (n_groups,)
        Shares of the groups, as the model has them.
    empty : ndarray of bool of shape (n_rows, n_views), optional
        Which rows say nothing in which view, if the model has its own idea of that.
    """

    views: Views
    noun: str
    keys: list
    groups: np.ndarray
    closeness: np.ndarray
    weights: np.ndarray
    proba: np.ndarray | None = None
    view_groups: np.ndarray | None = None
    disagreement: np.ndarray | None = None
    dissent: str = "nats"
    tables: dict = field(default_factory=dict)
    families: dict = field(default_factory=dict)
    locate: dict = field(default_factory=dict)
    empty: np.ndarray | None = None

    @property
    def n_groups(self):
        """Number of groups, with rows or without."""
        return len(self.keys)

    @property
    def sizes(self):
        """Rows of every group."""
        return np.bincount(self.groups, minlength=self.n_groups)

    @cached_property
    def blank(self):
        """Which rows say nothing in any view: they are where the weights of the groups put them."""
        if self.empty is not None:
            return self.empty.all(axis=1)
        if not self.views.shape[1]:  # a tree of distances has no rows to look at
            return np.zeros(len(self.groups), bool)
        return self.views.empty.all(axis=1)

    @cached_property
    def space(self):
        """The rows as directions."""
        return Space.of(self.views)

    @cached_property
    def order(self):
        """Best and second best group of every row; the second is -1 where there is none."""
        if self.n_groups < 2:
            return np.column_stack([self.groups, np.full(len(self.groups), -1)])
        others = self.closeness.copy()
        others[np.arange(len(others)), self.groups] = -np.inf
        return np.column_stack([self.groups, others.argmax(axis=1)])

    @cached_property
    def margin(self):
        """By how much the first choice is closer than the second."""
        rows, (first, second) = np.arange(len(self.groups)), self.order.T
        if self.n_groups < 2:
            return np.ones(len(rows))
        return self.closeness[rows, first] - self.closeness[rows, second]


def read(model, X):
    """Return what a fitted model says of rows.

    Parameters
    ----------
    model : estimator
        A fitted mixture, `SphericalKMeans`, `MultiViewAgglomerative` or `AspectModel`.
    X : matrix, list, dict or Views
        Rows as `model` takes them; for a tree, those of `fit`.

    Returns
    -------
    reading : Reading
    """
    check_is_fitted(model)
    views = as_views(X)
    for attribute, reader in READERS.items():
        if hasattr(model, attribute):
            return reader(model, views)
    known = "mixtures, spherical k-means, trees and aspect models"
    raise TypeError(f"a report can be made of {known}, not of {type(model).__name__}")


def _read_mixture(model, views):
    """Read a clusterer, or a classifier with its classes for groups."""
    views = views[list(model.view_names_)]
    proba = model.predict_proba(views)
    members = np.eye(len(model.weights_))
    keys = list(range(len(model.weights_)))
    if hasattr(model, "component_classes_"):
        keys = model.classes_.tolist()
        members = np.eye(len(keys))[model.component_classes_]
    empty = np.column_stack(
        [f.empty(f.check(views[name], name)) for name, f in model.families_.items()]
    )
    view_groups = disagreement = None
    if views.n_views > 1:
        own = (model.view_proba(views) @ members).argmax(axis=2)
        view_groups = np.where(empty, -1, own)
        disagreement = model.disagreement(views)
    return Reading(
        views=views,
        noun="class" if hasattr(model, "component_classes_") else "cluster",
        keys=keys,
        groups=proba.argmax(axis=1),
        closeness=proba,
        proba=proba,
        view_groups=view_groups,
        disagreement=disagreement,
        tables=_mixture_tables(model, members),
        families={name: type(family).__name__ for name, family in model.families_.items()},
        locate={name: family.locate for name, family in model.families_.items()},
        weights=model.weights_ @ members,
        empty=empty,
    )


def _mixture_tables(model, members):
    """Return p(feature | group); the components of a class are added up by their weights."""
    share = members * model.weights_[:, np.newaxis]
    share /= np.maximum(share.sum(axis=0), np.finfo(np.float64).tiny)
    tables = {}
    for name, family in model.families_.items():
        prob = family.feature_probs(model.theta_[name])
        if prob is not None:
            plain = members.shape[0] == members.shape[1] and (members == np.eye(len(members))).all()
            tables[name] = prob if plain else share.T @ prob
    return tables


def _read_aspects(model, views):
    """Read an aspect model: the group of a row is its largest topic."""
    if views.n_views > 1:
        raise ValueError("an aspect model has one matrix of counts; pass views.concat()")
    (name,) = views.names
    proba = model.transform(views[name])
    return Reading(
        views=views,
        noun="topic",
        keys=list(range(len(model.weights_))),
        groups=proba.argmax(axis=1),
        closeness=proba,
        proba=proba,
        tables={name: np.asarray(model.y_given_h_, dtype=np.float64)},
        weights=np.asarray(model.weights_, dtype=np.float64),
    )


def _read_sphere(model, views):
    """Read spherical k-means: closeness is the cosine of the mean angle."""
    views = views[list(model.view_names_)]
    groups = model.predict(views)
    view_groups = disagreement = None
    if views.n_views > 1:
        columns = [_nearest(matrix, model.cluster_centers_[v]) for v, matrix in views.items()]
        view_groups = np.where(views.empty, -1, np.column_stack(columns))
        disagreement = _differing_pairs(view_groups)
    k = model.n_clusters
    return Reading(
        views=views,
        noun="cluster",
        keys=list(range(k)),
        groups=groups,
        closeness=np.cos(model.transform(views)),
        view_groups=view_groups,
        disagreement=disagreement,
        dissent="share",
        weights=np.bincount(groups, minlength=k) / len(groups),
    )


def _nearest(matrix, centres):
    """Return the cluster of the largest cosine (Bickel & Scheffer 2004, Eq. 8)."""
    rows = matrix if sp.issparse(matrix) else np.nan_to_num(matrix)
    return np.asarray(normalize(rows.astype(np.float64)) @ centres.T).argmax(axis=1)


def _differing_pairs(view_groups):
    """Return the share of the pairs of non-empty views of a row that differ; 0 without pairs."""
    differ, pairs = np.zeros((2, len(view_groups)))
    for u, v in combinations(view_groups.T, 2):
        both = (u >= 0) & (v >= 0)
        pairs += both
        differ += both & (u != v)
    return differ / np.maximum(pairs, 1)


def _read_tree(model, views):
    """Read a tree: closeness is the cosine with the mean direction of a group."""
    groups, k = model.labels_, model.n_clusters_
    if len(views) != len(groups):
        raise ValueError(f"the tree has {len(groups)} rows; pass the rows of fit, not {len(views)}")
    sizes = np.bincount(groups, minlength=k)
    if model.metric == "precomputed":
        members = np.eye(k)[groups] / sizes
        closeness = -np.mean([matrix @ members for _, matrix in views.items()], axis=0)
        views = Views({name: sp.csr_array((len(groups), 0)) for name in views.names})
    else:
        closeness = Space.of(views).cosines(groups, k)
    return Reading(
        views=views,
        noun="cluster",
        keys=list(range(k)),
        groups=groups,
        closeness=closeness,
        weights=sizes / sizes.sum(),
    )


# A kind of model is told by what its fit leaves behind.
READERS = {
    "component_classes_": _read_mixture,
    "theta_": _read_mixture,
    "y_given_h_": _read_aspects,
    "consensus_centers_": _read_sphere,
    "linkage_matrix_": _read_tree,
}
