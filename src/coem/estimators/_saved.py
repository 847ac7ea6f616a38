"""Register the estimators with model files, and check models that are loaded."""

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from coem.estimators._base import BaseMixture
from coem.estimators._linear import LinearModel, ViewScale, Weights
from coem.estimators._pool import NEW, OWN
from coem.estimators._views_model import ViewsModel
from coem.estimators.aspect import AspectModel
from coem.estimators.classifier import MixtureClassifier
from coem.estimators.clusterer import MixtureClusterer
from coem.estimators.hmm import HiddenMarkovModel
from coem.estimators.pooled import PooledClassifier
from coem.estimators.spherical import SphericalKMeans
from coem.estimators.traffic import TrafficModel
from coem.families.base import AnyFamily, Family
from coem.families.mixture_of import MixtureOfTheta
from coem.io.loaded import is_dict_of, is_table_of, need, widths_of
from coem.io.packing import flat_theta
from coem.io.registry import register
from coem.kernels.sparse_sums import SparseSums
from coem.kernels.sparse_tables import SparseTable
from coem.online import Running
from coem.protocols import AdditiveLatent
from coem.records import Records
from coem.stats import Stats
from coem.typing import Theta


def check_mixture(model: BaseMixture) -> None:
    """Raise unless the parameters of a mixture fit its views and each other."""
    if not hasattr(model, "theta_"):
        return
    widths = widths_of(model)
    model._check_params()
    k = model._n_components()
    need(is_table_of(model.weights_, k), "weights_")
    need(is_table_of(model.view_weights_, len(widths), k), "view_weights_")
    need(isinstance(model.beta_, Real) and 0 <= model.beta_ <= 1, "beta_")
    betas = getattr(model, "view_betas_", {})  # models of older files have none
    need(betas == {} or is_dict_of(betas, widths), "view_betas_")
    need(all(isinstance(b, float) and 0 < b < np.inf for b in betas.values()), "view_betas_")
    silent = getattr(model, "silent_views_", ())
    need(isinstance(silent, tuple) and set(silent) <= set(widths), "silent_views_")
    _check_history(model.history_)
    _check_thetas(model, widths, k)
    for expected in _check_stats(model._stats, model._mixture(), model._theta()):
        need(expected.mass.shape == (k,), "the statistics")


def check_clusterer(model: MixtureClusterer) -> None:
    """Raise unless the parameters fit each other, and the limit of the evidence is one."""
    check_mixture(model)
    if hasattr(model, "calibration_"):
        limit = getattr(model.calibration_, "limit", None)
        need(isinstance(limit, Real) and float(limit) > 0, "calibration_")


def _check_history(history: Any) -> None:
    """Raise unless there is a record of every round."""
    need(isinstance(history, Records) and len(history) > 0, "history_")
    need(all(isinstance(record, Bunch) for record in history), "history_")


def _check_thetas(model: ViewsModel, widths: dict[str, int], k: int) -> None:
    """Raise unless each view has a family and its parameters."""
    for name in ("theta_", "families_"):
        need(is_dict_of(getattr(model, name), widths), name)
    for view, width in widths.items():
        _check_theta(model.families_[view], model.theta_[view], width, k, view)


def _check_theta(family: AnyFamily, theta: Theta, width: int, k: int, view: str) -> None:
    """Raise unless `theta` fits the family, `k` components and `width` columns."""
    what = f"theta_ of view {view!r}"
    need(isinstance(family, Family), f"the family of view {view!r}")
    need(family.theta_type is None or type(theta) is family.theta_type, what)
    parts = flat_theta((theta,))
    kinds = np.ndarray | SparseTable
    arrays = all(isinstance(part, kinds) and part.shape[:1] == (k,) for part in parts)
    # Check the width first, so that a damaged file cannot ask for a huge row.
    sizes = [len(part.places) if isinstance(part, SparseTable) else part.size for part in parts]
    need(arrays and width <= max(sizes), what)
    row = family.encode(family.check(np.zeros((1, width)), view))
    need(family.log_prob(row, theta).shape == (1, k), what)


def _check_stats(
    running: Any, latent: AdditiveLatent[Any, Any, Any, Any, Any], theta: Any
) -> list[Any]:
    """Return the statistics of `partial_fit`; raise unless they give parameters of one shape."""
    if running is None:
        return []
    what = "the statistics"
    need(isinstance(running, Running) and isinstance(running.stats, tuple), what)
    numbers = running.n_rows, running.n_seen, running.n_batches
    finite = all(isinstance(number, Real) and np.isfinite(float(number)) for number in numbers)
    need(finite and min(numbers) > 0, what)
    need(len(running.stats) == latent.n_turns, what)
    for turn, stats in enumerate(running.stats):
        _check_sizes(stats, theta, what)
        new = latent.estimate(stats, theta, turn)
        shapes = [[part.shape for part in flat_theta(t.of_views)] for t in (theta, new)]
        need(shapes[0] == shapes[1], what)
    return list(running.stats)


def _check_sizes(stats: Any, theta: Any, what: str) -> None:
    """Raise if statistics have longer axes than the parameters of their views.

    An M step on arrays that do not fit could take any memory: it makes products of their axes.
    """
    views = stats.views
    need(isinstance(views, tuple) and len(views) == len(theta.of_views), what)
    for own, of_view in zip(views, theta.of_views, strict=True):
        parts = flat_theta((of_view,))
        k = of_view[0].size if isinstance(of_view, MixtureOfTheta) else len(parts[0])
        longest = max(k, *(part.shape[-1] for part in parts))
        for part in _parts_of(own):
            need(part is None or isinstance(part, np.ndarray | SparseSums | Real), what)
            rows, *columns = np.shape(part) or (1,)
            need(rows <= k and max(columns, default=0) <= longest, what)


def _parts_of(stats: Any) -> Iterator[Any]:
    """Yield what the statistics of coem's families consist of; those of others are their own."""
    if isinstance(stats, Stats):
        own = type(stats).__module__.startswith("coem.")
        for part in vars(stats).values() if own else ():
            yield from _parts_of(part)
    else:
        yield stats


def check_chain(model: HiddenMarkovModel) -> None:
    """Raise unless the parameters of a chain fit its views and each other."""
    if not hasattr(model, "theta_"):
        return
    widths, k = widths_of(model), model.n_components
    need(is_table_of(model.weights_, k), "weights_")
    tables = {"startprob_": (model.startprob_, (k,)), "transmat_": (model.transmat_, (k, k))}
    for name, (table, shape) in tables.items():
        need(is_table_of(table, *shape) and table.dtype == np.float64, name)
        need(np.allclose(table.sum(axis=-1), 1) and table.min() >= 0, name)
    model._check_params()  # makes tables of as many components as there are in these
    need(isinstance(model.beta_, Real) and 0 < model.beta_ <= 1, "beta_")
    _check_thetas(model, widths, k)
    for stats in _check_stats(model._stats, model._chain(), model._theta()):
        counts = stats.counts
        need(counts.starts.shape == (k,) and counts.steps.shape == (k, k), "the statistics")


def check_classifier(model: MixtureClassifier) -> None:
    """Raise unless every component has a class, and the parameters fit each other."""
    if not hasattr(model, "theta_"):
        return
    classes, of = model.classes_, model.component_classes_
    need(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 0, "classes_")
    need(isinstance(of, np.ndarray) and of.dtype.kind == "i" and of.ndim == 1, "component_classes_")
    need(len(of) > 0 and of.min() >= 0 and of.max() < len(classes), "component_classes_")
    check_mixture(model)
    if hasattr(model, "calibration_"):
        need(isinstance(model.calibration_.inverse_temperature, Real), "calibration_")


def check_pool(model: PooledClassifier) -> None:
    """Raise unless the regression and the weights fit the mixture."""
    if not hasattr(model, "pool_"):
        return
    mixture, linear, k = model.mixture_, model.linear_, len(model.classes_)
    need(isinstance(mixture, MixtureClassifier) and hasattr(mixture, "theta_"), "mixture_")
    need(np.array_equal(mixture.classes_, model.classes_), "classes_")
    need(widths_of(model) == widths_of(mixture), "mixture_")
    need(isinstance(linear, LinearModel) and is_table_of(linear.intercept, k), "linear_")
    need(isinstance(linear.scales, dict) and isinstance(linear.weights, dict), "linear_")
    need(set(linear.scales) == set(linear.weights) <= set(model.view_names_), "linear_")
    need(len(linear.weights) > 0 and bool(np.isfinite(linear.intercept).all()), "linear_")
    for name, (columns, coef) in linear.weights.items():
        scale, family = linear.scales[name], mixture.families_[name]
        empty = np.zeros((1, widths_of(model)[name]))
        width = family.encode(family.check(empty, name)).shape[1]
        need(is_table_of(scale.scale, width) and is_table_of(scale.centre, width), "linear_")
        need(all(np.isfinite(part).all() for part in (scale.scale, scale.centre, coef)), "linear_")
        need(scale.kind in ("counts", "directions", "numbers"), "linear_")
        need(isinstance(columns, np.ndarray) and columns.ndim == 1, "linear_")
        need(columns.dtype.kind == "i" and is_table_of(coef, k, len(columns)), "linear_")
        need(not len(columns) or 0 <= columns.min() <= columns.max() < width, "linear_")
    need(is_table_of(model.pool_.log_change, k), "pool_")
    need(bool(np.isfinite(model.pool_.log_change).all()), "pool_")
    own = model._own_rows
    need(isinstance(own, np.ndarray) and own.dtype == np.int64 and own.ndim == 1, "the rows")
    for name in NEW + OWN:
        value = model.pool_[name]
        need(isinstance(value, Real) and 0 < float(value) < np.inf, "pool_")


def check_sphere(model: SphericalKMeans) -> None:
    """Raise unless the concept vectors fit the views."""
    if not hasattr(model, "cluster_centers_"):
        return
    widths, k = widths_of(model), model._n_features_out
    model._check_params()
    for name in ("cluster_centers_", "consensus_centers_"):
        centres = getattr(model, name)
        need(is_dict_of(centres, widths), name)
        need(all(is_table_of(centres[view], k, width) for view, width in widths.items()), name)
    need(isinstance(model._largest, int) and 0 <= model._largest < k, "the largest cluster")


def check_aspects(model: AspectModel) -> None:
    """Raise unless the probabilities fit the columns and each other."""
    if not hasattr(model, "weights_"):
        return
    (width,) = widths_of(model).values()
    k = len(model.weights_)
    need(k > 0 and is_table_of(model.weights_, k), "weights_")
    need(is_table_of(model.x_given_h_, k, np.shape(model.x_given_h_)[1]), "x_given_h_")
    need(is_table_of(model.y_given_h_, k, width), "y_given_h_")


def check_traffic(model: TrafficModel) -> None:
    """Raise unless the probabilities fit the nodes and each other."""
    if not hasattr(model, "alpha_"):
        return
    (width,) = widths_of(model).values()
    k = len(model.alpha_)
    need(k > 0 and is_table_of(model.alpha_, k, width), "alpha_")
    need(is_table_of(model.beta_, k, k), "beta_")


register(Records)
register(MixtureClusterer, drop=("random_state", "init"), check=check_clusterer)
register(MixtureClassifier, drop=("random_state", "init", "cv"), check=check_classifier)
for _part in (LinearModel, ViewScale, Weights):
    register(_part)
register(PooledClassifier, drop=("cv",), check=check_pool)
register(HiddenMarkovModel, drop=("random_state", "init"), check=check_chain)
register(SphericalKMeans, drop=("random_state", "init"), check=check_sphere)
for _cls, _check in ((AspectModel, check_aspects), (TrafficModel, check_traffic)):
    register(_cls, drop=("random_state", "init", "validation"), check=_check)
