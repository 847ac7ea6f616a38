"""Fits of one model that differ by their seeds, whatever the model is."""

import warnings
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from coem.views import is_several

N_FEATURES = 6

# What a fit is judged by, and whether more of it is better.
MERITS = (
    ("objective_", 1),  # of coem
    ("lower_bound_", 1),  # mixtures of scikit-learn
    ("inertia_", -1),  # k-means
    ("reconstruction_err_", -1),  # NMF
    ("bound_", -1),  # latent Dirichlet allocation: its perplexity
)


@dataclass
class Fit:
    """One fit: the component of every row; of all models only the best is kept."""

    model: object
    labels: np.ndarray
    size: int  # how many components there are, with rows or without

    @classmethod
    def of(cls, model, X):
        """Return what a fitted model says of the rows."""
        last = last_of(model)
        labels, size = _assign(model, X)
        check_labels(labels, type(last).__name__)
        # SpectralClustering has n_components as well, and they are no clusters.
        for name in ("n_clusters", "n_components_", "n_components"):
            asked = getattr(last, name, None)
            if size == 0 and isinstance(asked, Integral):
                size = int(asked)
        return cls(model, labels, max(size, int(labels.max()) + 1))


def _assign(model, X):
    """Return the component of every row, and the number of components or 0 if it is not known."""
    if hasattr(model, "predict"):
        return np.asarray(model.predict(X)), 0
    if hasattr(model, "transform"):
        shares = np.asarray(model.transform(X))
        return shares.argmax(axis=1), shares.shape[1]
    return np.asarray(last_of(model).labels_), 0


def check_labels(labels, name):
    """Refuse labels that are no numbers of components."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(f"{name} gives rows no numbers of components: there is nothing to compare")
    if labels.min() < 0:
        raise ValueError(
            f"{name} leaves row {int(labels.argmin())} in no component (label {labels.min()}); "
            "stability needs one for every row"
        )


def keep_best(fits):
    """Drop the model of all fits but the best; of equals, or if none is known, the first stays."""
    rival, new = next(fit for fit in fits if fit.model is not None), fits[-1]
    if new is not rival:
        worse = rival if merit(new.model) > merit(rival.model) else new
        worse.model = None


def keep_central(fits, agreement):
    """Drop all models but that of the fit with which the others agree most; of equals the first."""
    central = int(np.argmax(agreement.sum(axis=1)))
    for number, fit in enumerate(fits):
        if number != central:
            fit.model = None


def merit(model):
    """Return what a fit is judged by, larger being better; 0 for a model that tells of nothing."""
    last = last_of(model)
    found = ((getattr(last, name, None), sign) for name, sign in MERITS)
    return next((sign * value for value, sign in found if isinstance(value, Real)), 0.0)


# -- models -------------------------------------------------------------------------------------


def last_of(model):
    """Return the last step of a pipeline, or the model."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def check_model(model, subsample):
    """Refuse a model whose runs cannot be compared, before any of them."""
    last = last_of(model)
    name = type(last).__name__
    others = is_classifier, is_regressor, is_outlier_detector
    if not hasattr(model, "fit") or any(is_other(last) for is_other in others):
        raise ValueError(f"stability examines a model that groups rows, got {name}")
    if not any(hasattr(model, way) for way in ("predict", "transform", "fit_predict")):
        raise ValueError(f"{name} assigns no rows to its components: there is nothing to compare")
    if not _seeds_of(model):
        raise ValueError(f"{name} has no random_state: all of its runs would be the same")
    init = getattr(last, "init", "random")
    if not (init is None or isinstance(init, str) or callable(init)):
        raise ValueError(
            "init: all runs from a given start are the same; pass a name, such as init='random'"
        )
    if subsample is None:
        return
    if not isinstance(subsample, Real) or isinstance(subsample, bool) or not 0 < subsample < 1:
        raise ValueError(f"subsample must be None or between 0 and 1, got {subsample!r}")
    if not hasattr(model, "predict") and not hasattr(model, "transform"):
        raise ValueError(f"{name} cannot assign rows that it has not seen: leave subsample out")
    if getattr(last, "validation", None) is not None:
        raise ValueError(
            "subsample gives every run other rows, and validation holds counts of all of them: "
            "leave one of the two out"
        )


def check_names(names, model, X):
    """Refuse names that are not those of the columns."""
    if names is None or isinstance(model, Pipeline):
        return
    if is_several(X):
        raise ValueError("feature_names are for one matrix; views name their own columns")
    if hasattr(X, "shape") and len(names) != X.shape[1]:
        raise ValueError(f"feature_names has {len(names)} names for {X.shape[1]} columns")


def _seeds_of(model):
    """Return the names of the parameters that are seeds, those of steps included."""
    names = model.get_params(deep=True)
    return [name for name in names if name.split("__")[-1] == "random_state"]


def is_fitted(model):
    """Tell if the model itself, the last step of a pipeline, is fitted."""
    try:
        check_is_fitted(last_of(model))
    except NotFittedError:
        return False
    return True


def some_rows(rng, n_rows, subsample):
    """Return the rows of a run in their order, or None for all."""
    if subsample is None:
        return None
    return np.sort(rng.choice(n_rows, max(int(subsample * n_rows), 1), replace=False))


def fit_again(model, X, rows, weight, seed):
    """Return a clone, fitted with a seed to some of the rows."""
    fitted = clone(model).set_params(**dict.fromkeys(_seeds_of(model), seed))
    if rows is not None:
        X, weight = _safe_indexing(X, rows), None if weight is None else weight[rows]
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    given = {} if weight is None else {f"{prefix}sample_weight": weight}
    return fitted.fit(X, **given)


def each_fit(run, plans, n_jobs):
    """Yield the results of ``run(*plan)`` in the order of the plans, some at a time in threads.

    Components that die, or runs that are cut short, show in what is made of the fits; warnings of
    them are held back here, and not in `run`: filters belong to all threads.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = Parallel(n_jobs, prefer="threads", return_as="generator", pre_dispatch="n_jobs")
        yield from fits(delayed(run)(*plan) for plan in plans)


def features_of(model, names):
    """Return for every component the features that tell most about it, or None."""
    last = last_of(model)
    if not hasattr(last, "top_features"):
        return None
    if names is None and isinstance(model, Pipeline):
        names = getattr(model[:-1], "get_feature_names_out", lambda: None)()
    several = len(getattr(last, "view_names_", ())) > 1
    views = [{"view": view} for view in last.view_names_] if several else [{}]
    for view in views:
        try:
            found = last.top_features(**view, n=N_FEATURES)
        except ValueError:  # a family whose features have no probabilities
            continue
        words = [[feature for feature, _ in top] for top in found]
        return words if names is None or several else [[_named(f, names) for f in w] for w in words]
    return None


def _named(feature, names):
    return names[feature] if isinstance(feature, Integral) else feature
