"""Fits of one model with different seeds, for models of coem and of scikit-learn."""

import warnings
from copy import copy
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_folder
from coem.estimators import MixtureClusterer, SphericalKMeans
from coem.input import take_rows
from coem.io.kept import MACHINE, check_seed, kept_fits
from coem.kernels import threads
from coem.views import Views, is_several

N_FEATURES = 6

# The estimators whose `labels_` are what `predict` returns for the rows of `fit`.
LABELS_ARE_PREDICTIONS = (MixtureClusterer, SphericalKMeans)

# The attributes that say how good a fit is; 1 if larger is better, -1 if smaller is.
MERITS = (
    ("objective_", 1),  # of coem
    ("lower_bound_", 1),  # mixtures of scikit-learn
    ("inertia_", -1),  # k-means
    ("reconstruction_err_", -1),  # NMF
    ("bound_", -1),  # latent Dirichlet allocation: its perplexity
)


@dataclass
class Fit:
    """One fit, with the component of each row.

    `model` becomes None when the model is dropped. `size` counts all components, including
    components without rows.
    """

    model: object
    labels: np.ndarray
    size: int

    @classmethod
    def of(cls, model, X, *, rows_of_fit=False):
        """Return the labels that a fitted model gives to rows.

        Parameters
        ----------
        model : estimator
            The fitted model.
        X : matrix, list, dict or Views
            The rows.
        rows_of_fit : bool, default=False
            Whether the model was fitted on exactly these rows. Where its `labels_` are its
            predictions, they are used, and the model does not look at the rows again.
        """
        last = last_of(model)
        known = rows_of_fit and _has_predictions(model)
        labels, size = (np.array(last.labels_), 0) if known else _assign(model, X)
        check_labels(labels, type(last).__name__)
        # n_clusters goes first: the n_components of SpectralClustering are not clusters.
        for name in ("n_clusters", "n_components_", "n_components"):
            asked = getattr(last, name, None)
            if size == 0 and isinstance(asked, Integral):
                size = int(asked)
        return cls(model, labels, max(size, int(labels.max()) + 1))


def _has_predictions(model):
    """Return whether `labels_` of the model, or of its last step, are its predictions.

    Only exact types count: a subclass may predict by another rule, or leave out rows in `fit`.
    """
    is_known = type(model) is Pipeline or type(model) in LABELS_ARE_PREDICTIONS
    return is_known and type(last_of(model)) in LABELS_ARE_PREDICTIONS


def _assign(model, X):
    """Return the component of each row, and the number of components, or 0 if it is unknown."""
    if hasattr(model, "predict"):
        return np.asarray(model.predict(X)), 0
    if hasattr(model, "transform"):
        shares = np.asarray(model.transform(X))
        return shares.argmax(axis=1), shares.shape[1]
    return np.asarray(last_of(model).labels_), 0


def check_labels(labels, name):
    """Raise unless `labels` has the number of a component for each row."""
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(f"{name} gives rows no numbers of components: there is nothing to compare")
    if labels.min() < 0:
        raise ValueError(
            f"{name} leaves row {int(labels.argmin())} in no component (label {labels.min()}); "
            "stability needs one for every row"
        )


def keep_best(fits):
    """Drop the last model, or the one kept so far: whichever is worse. If equal, drop the last."""
    kept, new = next(fit for fit in fits if fit.model is not None), fits[-1]
    if new is not kept:
        worse = kept if merit(new.model) > merit(kept.model) else new
        worse.model = None


def keep_central(fits, agreement):
    """Keep only the model with which the others agree most; if several do equally, the first."""
    central = int(np.argmax(agreement.sum(axis=1)))
    for number, fit in enumerate(fits):
        if number != central:
            fit.model = None


def merit(model):
    """Return how good a fit is, larger being better; 0 for a model without such an attribute."""
    last = last_of(model)
    found = ((getattr(last, name, None), sign) for name, sign in MERITS)
    return next((sign * value for value, sign in found if isinstance(value, Real)), 0.0)


# -- models -------------------------------------------------------------------------------------


def last_of(model):
    """Return the last step of a pipeline, or the model."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def check_model(model, subsample):
    """Raise unless the runs of the model can be compared."""
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
    """Raise unless there is one matrix, with one name per column."""
    if names is None or isinstance(model, Pipeline):
        return
    if is_several(X):
        raise ValueError("feature_names are for one matrix; views name their own columns")
    if hasattr(X, "shape") and len(names) != X.shape[1]:
        raise ValueError(f"feature_names has {len(names)} names for {X.shape[1]} columns")


def _seeds_of(model):
    """Return the names of the parameters that are seeds, including those of steps."""
    names = model.get_params(deep=True)
    return [name for name in names if name.split("__")[-1] == "random_state"]


def is_fitted(model):
    """Return whether the model, or the last step of a pipeline, is fitted."""
    try:
        check_is_fitted(last_of(model))
    except NotFittedError:
        return False
    return True


def some_rows(rng, n_rows, subsample):
    """Return a sorted sample of row numbers, or None if a run uses all rows."""
    if subsample is None:
        return None
    return np.sort(rng.choice(n_rows, max(int(subsample * n_rows), 1), replace=False))


def fits_of(model, X, weight, plans, n_jobs):
    """Return a function that fits a clone of the model to some rows with a seed.

    `plans` are the rows, seeds and folders for the state that it will be called with. Mixtures that
    see all rows prepare them once for all fits.
    """
    if type(model) is MixtureClusterer and all(rows is None for rows, _, _ in plans):
        _, seeds, parts = zip(*plans, strict=True)
        fit = model.fitter(X, seeds, weight, n_jobs, None if None in parts else parts)
        return lambda rows, seed, part: fit(seed)
    return lambda rows, seed, part: fit_again(model, X, rows, weight, seed, part)


def kept_of(model, X, weight, random_state, **about):
    """Return the folder that keeps several fits of a model with a `checkpoint`, or None.

    `about` is what the fits depend on beside the model, the rows, their weights and the seed.
    """
    last = last_of(model)
    place = getattr(last, "checkpoint", None)
    if place is None:
        return None
    check_folder("checkpoint", place)
    check_seed(random_state, place, "several fits")
    params = {
        name: value
        for name, value in model.get_params(deep=True).items()
        if name.split("__")[-1] not in (*MACHINE, "steps") and not hasattr(value, "get_params")
    }
    rows = [X[name] for name in X.names] if isinstance(X, Views) else [X]
    params |= {"model": type(last).__name__, "seed": int(random_state), **about}
    return kept_fits(place, params, [*rows, weight])


def with_checkpoint(model, place):
    """Return the model, which keeps its state at another place, if it can keep any."""
    last = last_of(model)
    if "checkpoint" in last.get_params(deep=False):
        last.set_params(checkpoint=place)
    return model


def fit_again(model, X, rows, weight, seed, part=None):
    """Return a clone of the model, fitted to the given rows (None: all rows) with a seed.

    `part` is the folder for its state, if that is to be kept.
    """
    fitted = clone(model).set_params(**dict.fromkeys(_seeds_of(model), seed))
    with_checkpoint(fitted, part)
    if rows is not None:
        X, weight = take_rows(X, rows), None if weight is None else weight[rows]
    prefix = f"{model.steps[-1][0]}__" if isinstance(model, Pipeline) else ""
    given = {} if weight is None else {f"{prefix}sample_weight": weight}
    return with_checkpoint(fitted.fit(X, **given), None)


def each_fit(run, plans, n_jobs):
    """Yield the results of ``run(*plan)`` in the order of the plans, `n_jobs` at a time in threads.

    Convergence warnings are suppressed, because the comparison of the fits shows what they say.
    This is done here and not in `run`, because all threads share the filters of warnings. After
    Ctrl-C, or once the caller asks for no more results, running fits are called off.
    """
    flag = threads.Flag()

    def guarded(*plan):
        try:
            return flag.guard(partial(run, *plan))
        except threads.Stopped:  # the result is not needed
            return None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fits = Parallel(n_jobs, prefer="threads", return_as="generator", pre_dispatch="n_jobs")
        try:
            for fit in fits(delayed(guarded)(*plan) for plan in plans):
                threads.heed()
                yield fit
        finally:
            flag.call_off()


def calibrate(model, X, others, weight):
    """Return a copy of a fitted mixture whose probabilities other groupings of the rows support.

    The last step of a pipeline is replaced by such a copy.
    """
    last = last_of(model)
    if not hasattr(last, "calibrate"):
        raise ValueError(
            f"{type(last).__name__} has no probabilities to calibrate; use a MixtureClusterer"
        )
    if not isinstance(model, Pipeline):
        return copy(model).calibrate(X, others, weight)
    rows = model[:-1].transform(X) if len(model.steps) > 1 else X
    return Pipeline(
        [*model.steps[:-1], (model.steps[-1][0], calibrate(last, rows, others, weight))]
    )


def features_of(model, names):
    """Return the most telling features per component, or None if the model cannot rank them."""
    last = last_of(model)
    if not hasattr(last, "top_features"):
        return None
    if names is None and isinstance(model, Pipeline):
        names = _names_out(model[:-1])
    several = len(getattr(last, "view_names_", ())) > 1
    views = [{"view": view} for view in last.view_names_] if several else [{}]
    for view in views:
        try:
            found = last.top_features(**view, n=N_FEATURES)
        except ValueError:  # the features of the family have no probabilities
            continue
        words = [[feature for feature, _ in top] for top in found]
        return words if names is None or several else [[_named(f, names) for f in w] for w in words]
    return None


def _names_out(steps):
    """Return the names of the columns that steps of a pipeline make, or None if one has none."""
    try:
        return steps.get_feature_names_out()
    except AttributeError:  # a pipeline has the method, and its steps may lack it
        return None


def _named(feature, names):
    """Return the name of a column; other features have their names already."""
    return names[feature] if isinstance(feature, Integral) else feature
