"""What the mixture estimators share: validation, restarts, prediction."""

import warnings
from copy import deepcopy
from dataclasses import fields
from functools import reduce
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, _clone_parametrized
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from coem.coupling import COUPLINGS, average
from coem.em import em
from coem.engine import LocalEngine
from coem.estimators._families import check_same_views, family_parts, shape_of, with_field
from coem.estimators._params import (
    check_choice,
    check_dtype,
    check_folder,
    check_number,
    check_workers,
)
from coem.estimators._records import Records, progress, round_record
from coem.families import as_family
from coem.initialise import INITS, pool_views, start
from coem.io.checkpoint import Checkpoint, fingerprint, flat_theta
from coem.latent.block import Partition, any_empty
from coem.latent.mixture import WEIGHTS, Mixture, MixtureTheta, safe_log
from coem.posterior import RULES, posterior
from coem.schedules import as_schedule
from coem.views import as_views

ASSIGNS = ("joint", "average")

DEAD = 1e-2  # a component that expects fewer rows (of mean weight) than this is reported


class BaseMixture(BaseEstimator):
    """Mixture over views: everything but what a label means."""

    # -- parameters --------------------------------------------------------------------------

    def get_params(self, deep=True):
        """Return the parameters; with `deep`, those of the families as ``family__alpha`` too."""
        params = super().get_params(deep=deep)
        if deep:
            for prefix, family in family_parts(self.family):
                params |= {f"{prefix}__{f.name}": getattr(family, f.name) for f in fields(family)}
        return params

    def set_params(self, **params):
        """Set parameters; ``family__alpha=0.1`` replaces the family by one with that value."""
        nested = {key: params.pop(key) for key in list(params) if key.startswith("family__")}
        super().set_params(**params)
        for key, value in nested.items():
            self.family = with_field(self.family, key.split("__")[1:], value)
        return self

    def __sklearn_tags__(self):
        """Tell scikit-learn what the families take."""
        tags = super().__sklearn_tags__()
        families = [family for _, family in family_parts(self.family)]
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = any(family.nonnegative for family in families)
        tags.input_tags.allow_nan = any(family.allows_nan for family in families)
        return tags

    def _check_params(self):
        for name, choices in (
            ("coupling", COUPLINGS),
            ("posterior", RULES),
            ("weights", WEIGHTS),
            ("assign", ASSIGNS),
        ):
            check_choice(name, getattr(self, name), choices)
        for name, least in (("n_init", 1), ("max_iter", 1), ("patience", 1)):
            if hasattr(self, name):
                value = getattr(self, name)
                check_number(name, value, Integral, least, optional=name == "patience")
        check_number("tol", self.tol, Real, 0)
        check_dtype(self.dtype)
        check_workers(self.n_jobs, self.engine, self.verbose)
        check_folder("checkpoint", self.checkpoint)
        as_schedule(self.eta, "eta")
        as_schedule(self.beta, "beta")

    def __sklearn_is_fitted__(self):
        """Tell scikit-learn if there are parameters."""
        return hasattr(self, "theta_")

    def __sklearn_clone__(self):
        """Return an unfitted copy; a fitted model that serves as `init` stays fitted."""
        copied = _clone_parametrized(self)
        if isinstance(getattr(self, "init", None), BaseMixture):
            copied.init = deepcopy(self.init)
        return copied

    def _family_of(self, names):
        """Return one family a view, before it has seen any data."""
        if not isinstance(self.family, dict):
            return {name: as_family(self.family) for name in names}
        missing = [name for name in names if name not in self.family]
        unknown = [name for name in self.family if name not in names]
        if missing or unknown:
            raise ValueError(
                f"family must name every view once: the views are {list(names)}, "
                f"the families are for {list(self.family)}"
            )
        return {name: as_family(self.family[name]) for name in names}

    # -- data --------------------------------------------------------------------------------

    def _read(self, X, *, reset):
        """Return checked views, and see that their names and widths are those of `fit`."""
        views = as_views(X)
        if not reset and set(views.names) == set(self.view_names_):
            views = views[list(self.view_names_)]  # by name, in whatever order they came
        if not reset:
            check_same_views(views, self.view_names_, self.view_widths_, type(self).__name__)
        validate_data(
            self, X if hasattr(X, "columns") else views, reset=reset, skip_check_array=True
        )
        if reset:
            self.view_names_ = tuple(views.names)
            self.view_widths_ = tuple(views[name].shape[1] for name in views.names)
        return views

    def _encode(self, views, *, reset):
        """Return encoded matrices and which of their rows are empty."""
        families = self._family_of(views.names) if reset else self.families_
        checked = {name: families[name].check(views[name], name) for name in views.names}
        if reset:
            families = {n: families[n].bind(X, self.dtype) for n, X in checked.items()}
            self.families_ = families
        empty = any_empty([families[name].empty(X) for name, X in checked.items()])
        return tuple(families[name].encode(X) for name, X in checked.items()), empty

    def _model(self, *, rule=None):
        """Return the mixture over the fitted families."""
        families = tuple(self.families_[name] for name in self.view_names_)
        single = all(family.single_precision for family in families)
        return Mixture(
            families,
            self._n_components(),
            coupling=self.coupling,
            rule=rule or self.posterior,
            weights=self.weights,
            weight_prior=self._weight_prior(),
            dtype=self.dtype or (np.float32 if single else np.float64),
        )

    def _engine(self):
        return LocalEngine(self.n_jobs) if self.engine is None else self.engine

    # -- fit ---------------------------------------------------------------------------------

    def _fit(self, matrices, empty, weight, allowed=None, prime=None):
        """Run every restart and keep the best; `prime` gives a start of its own."""
        eta, beta = as_schedule(self.eta, "eta"), as_schedule(self.beta, "beta")
        model = self._model()
        given = prime or self._given_start(model, matrices[0].shape[0])
        seeds = self._seeds(1 if given else self.n_init)
        saved = self._checkpoint(model, (*matrices, empty, weight, allowed))
        if saved:
            seeds = saved.seeds(seeds, fixed=isinstance(self.random_state, Integral))

        def begin(index, data):
            state = saved.load(index) if saved else None
            if state is not None or given:
                return state or given(model, data)
            return start(model, data, self.init, np.random.default_rng(seeds[index]), pools)

        def run(index, engine):
            data = Partition(matrices, empty, weight, allowed)
            # Passed on and not kept: the loop frees a table before it makes the next one.
            return em(
                model,
                engine,
                data,
                begin(index, data),
                eta=eta,
                beta=beta,
                max_iter=self.max_iter,
                tol=self.tol,
                patience=self.patience,
                monitor=progress(self.verbose, f"[{type(self).__name__}] run {index + 1}"),
                **({"keep": saved.keep(index)} if saved else {}),
            )

        self._has_rows = _views_with_rows(empty, len(matrices))
        with self._engine() as engine:
            pools = [] if given else pool_views(model, Partition(matrices, empty, weight))
            if len(seeds) > 1 and engine.n_workers > 1:
                # One thread a restart: the bits are those of one restart after another.
                serial = LocalEngine(1)
                results = engine.map(lambda index: run(index, serial), range(len(seeds)))
            else:
                results = [run(index, engine) for index in range(len(seeds))]
            self._keep(model, results, seeds)
            data = Partition(matrices, empty, weight)
            self._finish(results[self.best_run_], model, data, engine)
        if saved:
            saved.clear()
        return self

    def _checkpoint(self, model, parts):
        """Return the files that keep this fit while it runs, or None."""
        if self.checkpoint is None:
            return None
        # What does not change the course of a run may change between its beginning and its end.
        free = ("n_jobs", "verbose", "engine", "checkpoint", "random_state", "max_iter", "init")
        params = {name: value for name, value in self.get_params().items() if name not in free}
        init = getattr(self, "init", None)
        if isinstance(init, BaseMixture):
            parts = (*parts, init.weights_, *flat_theta(init._theta().params))
        elif init is not None:
            parts = (*parts, np.asarray(init))
        mark = fingerprint(params, parts)
        return Checkpoint(self.checkpoint, model, mark)

    def _given_start(self, model, n_rows):
        """Return a function from data to a start for `init` given as an array or a model."""
        if isinstance(self.init, str):
            check_choice("init", self.init, INITS)
            return None
        if isinstance(self.init, BaseMixture):
            check_is_fitted(self.init)
            theta = self._warm(self.init)
            return lambda model, data: theta
        try:
            resp = np.asarray(self.init, dtype=np.float64)
        except (TypeError, ValueError):
            resp = np.empty(())
        if resp.ndim == 0:
            raise ValueError(
                f"init must be one of {', '.join(map(repr, INITS))}, an array of responsibilities "
                f"(rows by components) or a fitted mixture, got {self.init!r}"
            )
        if resp.shape != (n_rows, model.n_components):
            raise ValueError(
                f"init must have shape ({n_rows}, {model.n_components}), rows by components, "
                f"got {resp.shape}"
            )
        if not np.isfinite(resp).all() or resp.min() < 0:
            raise ValueError("init must hold responsibilities, finite and 0 or more")
        sums = resp.sum(axis=1, keepdims=True)
        if not sums.all():
            raise ValueError(f"init: row {int(sums.argmin())} has no responsibility above 0")
        if np.abs(sums - 1).max() > 1e-6:
            resp = resp / sums
        return lambda model, data: model.from_resp(data, resp)

    def _warm(self, other):
        same = other.view_names_ == self.view_names_ and other.view_widths_ == self.view_widths_
        if not same or len(other.weights_) != self._n_components():
            raise ValueError(
                "init: the fitted model has other views, features or components "
                f"({list(other.view_names_)}, {list(other.view_widths_)}, {len(other.weights_)})"
            )
        if [shape_of(f) for f in self.families_.values()] != [
            shape_of(f) for f in other.families_.values()
        ]:
            raise ValueError("init: the fitted model has other families than this one")
        return other._theta()

    def _seeds(self, n):
        return check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=n)

    def _keep(self, model, results, seeds):
        """Set the fitted attributes from the best of the runs."""
        self.runs_ = Records(
            Bunch(
                run=index,
                seed=int(seed),
                objective=result.objective,
                n_iter=len(result.history),
                converged=result.converged,
                seconds=sum(record.seconds for record in result.history),
            )
            for index, (seed, result) in enumerate(zip(seeds, results, strict=True))
        )
        self.best_run_ = int(np.argmax([result.objective for result in results]))
        best = results[self.best_run_]
        self._set_theta(model, best.theta)
        self.history_ = Records(round_record(r, self.view_names_) for r in best.history)
        self.objective_ = best.objective
        self.n_iter_ = len(best.history)
        self.converged_ = best.converged
        self.beta_ = best.beta
        self._stats = None  # of the rows seen by partial_fit

    def _set_theta(self, model, theta):
        """Set the fitted parameters."""
        self.theta_ = dict(zip(self.view_names_, theta.params, strict=True))
        if self.weights == "per_view" and model.separate:
            self.view_weights_ = np.exp(theta.log_weights)
            self.weights_ = self.view_weights_[self._has_rows].mean(axis=0)  # 2005, Eq. 16
        else:
            self.weights_ = theta.weights
            self.view_weights_ = np.tile(self.weights_, (len(self.view_names_), 1))

    def _finish(self, result, model, data, engine):
        """Set the labels, and warn of what a user should know."""
        if self.tol > 0 and not result.converged:
            warnings.warn(
                f"no convergence after {self.n_iter_} rounds; raise max_iter or tol, or pass "
                "tol=0 to run a fixed number of rounds",
                ConvergenceWarning,
                stacklevel=5,
            )
        if result.fell > (1e-5 if model.dtype == np.float32 else 1e-9):
            warnings.warn(
                f"the objective fell by {result.fell:.2g}, relative, where it cannot: a family's "
                "M step or log_prior is wrong (run coem.families.check_family on it), or a "
                "variance has collapsed (raise reg)",
                RuntimeWarning,
                stacklevel=5,
            )
        theta, soft = self._theta(), self._model(rule="soft")

        def work(block):
            proba = self._assign(block, theta, soft)
            return self._labels(proba), block.row_weight() @ proba

        labels, masses = zip(*engine.map(work, data.blocks), strict=True)
        self.labels_ = np.concatenate(labels)
        mass = sum(masses)
        dead = np.flatnonzero(mass < DEAD * mass.sum() / data.n_rows)
        if len(dead):
            warnings.warn(
                f"components {dead.tolist()} of {len(mass)} died: no row belongs to them; use "
                "fewer components or more restarts (n_init)",
                ConvergenceWarning,
                stacklevel=5,
            )

    # -- predict -----------------------------------------------------------------------------

    def _theta(self):
        """Return the fitted parameters in the form of the engine."""
        params = tuple(self.theta_[name] for name in self.view_names_)
        return MixtureTheta(params, safe_log(self.view_weights_), (1,) * len(params))

    def _data(self, X):
        check_is_fitted(self)
        views = self._read(X, reset=False)
        matrices, empty = self._encode(views, reset=False)
        return Partition(matrices, empty)

    def _log_weights(self):
        return safe_log(self.weights_)

    def _joint(self, block, theta, model, beta):
        """Return the posterior of all views together, 2005, Eq. 19."""
        views = range(len(model.families))
        log_prob = reduce(np.add, (model.log_prob(block, theta, v) for v in views))
        return posterior(log_prob, self._log_weights(), beta=beta)

    def _view_posteriors(self, block, theta, model):
        """Return (n_views, n, k) posteriors of every view by itself."""
        parts = [
            posterior(model.log_prob(block, theta, v), theta.log_weights[v], beta=self.beta_).resp
            for v in range(len(model.families))
        ]
        return np.stack(parts)

    def _assign(self, block, theta, model):
        """Return the posterior that assigns rows, of shape (n, k)."""
        if self.assign == "joint":
            proba = self._joint(block, theta, model, self.beta_).resp
        else:
            proba = average(self._view_posteriors(block, theta, model), block.empty)
        if block.empty is not None:
            proba[block.empty.all(axis=1)] = self.weights_ / self.weights_.sum()
        return proba

    def _proba(self, X):
        """Return the posterior that assigns rows, for new rows."""
        return self._map(X, self._assign)

    def _map(self, X, work):
        """Return the results of `work` on every block of `X`, one after the other."""
        data = self._data(X)
        theta, model = self._theta(), self._model(rule="soft")
        with self._engine() as engine:
            return np.concatenate(engine.map(lambda b: work(b, theta, model), data.blocks))


def _views_with_rows(empty, n_views):
    """Return which views have a say in the mixture weights: all but those empty in every row."""
    there = np.ones(n_views, dtype=bool) if empty is None else ~empty.all(axis=0)
    return there if there.any() else ~there
