"""How each kind of model is asked about rows."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from coem.report.closeness import Space
from coem.report.reading import Later, Reading
from coem.sequences import read_sequences
from coem.views import Views, as_views

RIGHT_ANGLE = np.pi / 2


def read(model, X, lengths=None):
    """Return what a fitted model says about rows.

    Pass the result to `tell` as `reading` if you need both: the model is then asked only once.

    Parameters
    ----------
    model : estimator
        A fitted mixture, `SphericalKMeans`, `MultiViewAgglomerative`, `AspectModel` or
        `HiddenMarkovModel`.
    X : matrix, list, dict or Views
        Rows in the form that `model` takes. For a tree, pass the rows of `fit`.
    lengths : array-like of int, optional
        For a hidden Markov model, the number of rows of each sequence.

    Returns
    -------
    reading : Reading
    """
    check_is_fitted(model)
    if hasattr(model, "transmat_"):
        return _read_chain(model, X, lengths)
    if lengths is not None:
        raise ValueError(f"lengths: a {type(model).__name__} has no sequences; leave it out")
    views = as_views(X)
    for attribute, reader in READERS.items():
        if hasattr(model, attribute):
            return reader(model, views)
    known = "mixtures, spherical k-means, trees, aspect models and hidden Markov models"
    raise TypeError(f"a report can be made of {known}, not of {type(model).__name__}")


# -- mixtures -----------------------------------------------------------------------------------


def _read_clusterer(model, views):
    """Read a mixture of clusters, in one pass over the rows."""
    views = views[list(model.view_names_)]
    view_groups = disagreement = None
    if views.n_views > 1:
        answers = model.read(views)
        proba, empty, disagreement = answers.proba, answers.empty, answers.disagreement
        view_groups = _choices(answers.view_proba, empty)
    else:
        proba, empty = model.predict_proba(views), _empty_rows(model, views)
    return Reading(
        views=views,
        noun="group",
        keys=list(range(len(model.weights_))),
        groups=proba.argmax(axis=1),
        closeness=proba,
        proba=proba,
        view_groups=view_groups,
        disagreement=disagreement,
        tables=Later(lambda: _feature_tables(model)),
        weights=np.asarray(model.weights_, dtype=np.float64),
        empty=empty,
        **_facts_of_families(model),
    )


def _read_classifier(model, views):
    """Read a classifier; its groups are the classes.

    One view takes one pass over the rows. Several views take two: `predict_proba` is calibrated
    and adds up components in logarithms, so that it cannot be computed from `read` exactly.
    """
    views = views[list(model.view_names_)]
    members = np.eye(len(model.classes_))[model.component_classes_]
    proba = model.predict_proba(views)
    view_groups = disagreement = None
    if views.n_views > 1:
        answers = model.read(views)
        empty, disagreement = answers.empty, answers.disagreement
        view_groups = _choices(answers.view_proba @ members, empty)
    else:
        empty = _empty_rows(model, views)
    return Reading(
        views=views,
        noun="class",
        keys=model.classes_.tolist(),
        groups=proba.argmax(axis=1),
        closeness=proba,
        proba=proba,
        view_groups=view_groups,
        disagreement=disagreement,
        tables=Later(lambda: _class_tables(model, members)),
        weights=model.weights_ @ members,
        empty=empty,
        **_facts_of_families(model),
    )


def _read_pool(model, views):
    """Read a pool: its mixture, with the probabilities of the pool."""
    proba = model.predict_proba(views)
    reading = _read_classifier(model.mixture_, views)
    return replace(reading, groups=proba.argmax(axis=1), closeness=proba, proba=proba)


def _choices(view_proba, empty):
    """Return the group that each view by itself chooses, -1 where the row is empty."""
    return np.where(empty, -1, view_proba.argmax(axis=2))


def _empty_rows(model, views):
    """Return which rows are empty in which view, by the rules of the families.

    For one view this takes half the time and memory of `model.read`, which compares views.
    """
    columns = [f.empty(f.check(views[name], name)) for name, f in model.families_.items()]
    return np.column_stack(columns)


def _facts_of_families(model):
    """Return the fields `families`, `locate` and `silent` of a model with families."""
    families = model.families_.items()
    return {
        "silent": tuple(getattr(model, "silent_views_", ())),
        "families": {name: type(family).__name__ for name, family in families},
        "locate": {name: family.locate for name, family in families},
    }


def _feature_tables(model):
    """Return p(feature | component) per view, for the families that have it."""
    families = model.families_.items()
    tables = {name: family.feature_probs(model.theta_[name]) for name, family in families}
    return {name: table for name, table in tables.items() if table is not None}


def _class_tables(model, members):
    """Return p(feature | class) per view: the mean of the components, by their weights."""
    tables = _feature_tables(model)
    if np.array_equal(members, np.eye(len(members))):
        return tables
    share = members * model.weights_[:, np.newaxis]
    share /= np.maximum(share.sum(axis=0), np.finfo(np.float64).tiny)
    return {name: share.T @ table for name, table in tables.items()}


def _read_chain(model, X, lengths):
    """Read a hidden Markov model; the group of a row is its state on the best path."""
    rows, offsets = read_sequences(X, lengths)
    views = as_views(rows)[list(model.view_names_)]
    lengths = np.diff(offsets)
    proba = model.predict_proba(views, lengths)
    return Reading(
        views=views,
        noun="state",
        keys=list(range(len(model.weights_))),
        groups=model.predict(views, lengths),
        closeness=proba,
        proba=proba,
        tables=Later(lambda: _feature_tables(model)),
        weights=model.weights_,
        empty=_empty_rows(model, views),
        **_facts_of_families(model),
    )


# -- other models -------------------------------------------------------------------------------


def _read_aspects(model, views):
    """Read an aspect model, folding the rows in once; the group of a row is its largest topic."""
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
    """Read spherical k-means; closeness is the cosine of the mean angle."""
    views = views[list(model.view_names_)]
    angles = model.transform(views)
    groups = _nearest_clusters(model, views, angles)
    view_groups = disagreement = None
    if views.n_views > 1:
        columns = [
            _largest_cosine(matrix, model.cluster_centers_[v]) for v, matrix in views.items()
        ]
        view_groups = np.where(views.empty, -1, np.column_stack(columns))
        disagreement = _differing_pairs(view_groups)
    k = model.n_clusters
    return Reading(
        views=views,
        noun="group",
        keys=list(range(k)),
        groups=groups,
        closeness=np.cos(angles),
        view_groups=view_groups,
        disagreement=disagreement,
        dissent="share",
        weights=np.bincount(groups, minlength=k) / len(groups),
    )


def _nearest_clusters(model, views, angles):
    """Return what `model.predict` returns, from the angles where they decide it.

    With one view `predict` compares cosines, which differ where angles are rounded to the same
    number. A row at a right angle to all clusters may be empty, and `predict` has a rule for that.
    """
    undecided = (angles == RIGHT_ANGLE).all(axis=1)
    if views.n_views == 1 or undecided.any():
        return model.predict(views)
    return angles.argmin(axis=1)


def _largest_cosine(matrix, centres):
    """Return the cluster of the largest cosine per row (Bickel & Scheffer 2004, Eq. 8)."""
    rows = matrix if sp.issparse(matrix) else np.nan_to_num(matrix)
    return np.asarray(normalize(rows.astype(np.float64)) @ centres.T).argmax(axis=1)


def _differing_pairs(view_groups):
    """Return the share of the pairs of non-empty views that differ, per row; 0 without pairs."""
    differ, pairs = np.zeros((2, len(view_groups)))
    for u, v in combinations(view_groups.T, 2):
        both = (u >= 0) & (v >= 0)
        pairs += both
        differ += both & (u != v)
    return differ / np.maximum(pairs, 1)


def _read_tree(model, views):
    """Read a tree; closeness is the cosine with the mean direction of a group."""
    groups, k = model.labels_, model.n_clusters_
    if len(views) != len(groups):
        raise ValueError(f"the tree has {len(groups)} rows; pass the rows of fit, not {len(views)}")
    sizes = np.bincount(groups, minlength=k)
    directions = None
    if model.metric == "precomputed":
        members = np.eye(k)[groups] / sizes
        closeness = -np.mean([matrix @ members for _, matrix in views.items()], axis=0)
        views = Views({name: sp.csr_array((len(groups), 0)) for name in views.names})
    else:
        directions = Space.of(views)
        closeness = directions.cosines(groups, k)
    return Reading(
        views=views,
        noun="group",
        keys=list(range(k)),
        groups=groups,
        closeness=closeness,
        weights=sizes / sizes.sum(),
        directions=directions,
    )


# The first attribute that a fitted model has decides how it is read.
READERS = {
    "pool_": _read_pool,
    "component_classes_": _read_classifier,
    "theta_": _read_clusterer,
    "y_given_h_": _read_aspects,
    "consensus_centers_": _read_sphere,
    "linkage_matrix_": _read_tree,
}
