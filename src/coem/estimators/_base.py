"""What the mixture estimators share: validation, restarts, prediction."""

import warnings
from dataclasses import fields, replace
from functools import partial, reduce
from numbers import Integral, Real

import numpy as np
from scipy.special import log_softmax
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_choice, check_dtype, check_folder, check_number, check_workers
from coem.coupling import COUPLINGS, average
from coem.em import em
from coem.engine import LocalEngine
from coem.estimators._coupled import run_coupled
from coem.estimators._restarts import draw_seeds, each_run, run_records
from coem.estimators._starts import KeepsInit, as_responsibilities, check_warm
from coem.families.named import families_for, family_parts, with_field
from coem.initialise import INITS
from coem.input import read_views
from coem.io.checkpoint import Checkpoint, fingerprint, flat_theta
from coem.io.model_file import Saves
from coem.latent.block import Partition, any_empty
from coem.latent.mixture import WEIGHTS, Mixture, MixtureTheta, safe_log
from coem.posterior import RULES, posterior
from coem.records import Records, progress, round_record
from coem.schedules import Constant, as_schedule, max_rounds

ASSIGNS = ("joint", "average")

DEAD = 1e-2  # a component that expects fewer rows (of mean weight) than this is reported


class BaseMixture(Saves, KeepsInit, BaseEstimator):
    """Mixture over views: everything but what a label means."""

    _inits = INITS

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
        for name in ("n_init", "max_iter", "patience"):
            check_number(name, getattr(self, name), Integral, 1, optional=name != "n_init")
        check_number("tol", self.tol, Real, 0)
        check_dtype(self.dtype)
        check_workers(self.n_jobs, self.engine, self.verbose)
        check_folder("checkpoint", self.checkpoint)
        as_schedule(self.eta, "eta")
        as_schedule(self.beta, "beta")

    def __sklearn_is_fitted__(self):
        """Tell scikit-learn if there are parameters."""
        return hasattr(self, "theta_")

    # -- data --------------------------------------------------------------------------------

    def _encode(self, views, *, reset):
        """Return encoded matrices and which of their rows are empty."""
        families = families_for(self.family, views) if reset else self.families_
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
            classes=self._classes(),
            dtype=self.dtype or (np.float32 if single else np.float64),
        )

    def _engine(self):
        return LocalEngine(self.n_jobs) if self.engine is None else self.engine

    # -- fit ---------------------------------------------------------------------------------

    def _fit(self, matrices, empty, weight, allowed=None, draw=None, n_runs=1):
        """Run every restart from what `draw(model, data, rng)` returns, and keep the best.

        Returns the files of the fit, to be cleared when all is done, or None.
        """
        model = self._model()
        seeds = draw_seeds(self.random_state, n_runs)
        saved = self._checkpoint(model, (*matrices, empty, weight, allowed))
        if saved:
            seeds = saved.seeds(seeds, fixed=isinstance(self.random_state, Integral))

        def begin(index, data, saved=None):
            state = saved.load(index) if saved else None
            return state or draw(model, data, np.random.default_rng(seeds[index]))

        def run(index, engine, saved=saved, **settings):
            data = Partition(matrices, empty, weight, allowed)
            keep = self._keeper(model, index, saved)
            first = partial(begin, index, data, saved)
            return self._em(index, engine, model, data, first, keep=keep, **settings)

        self._has_rows = _views_with_rows(empty, len(matrices))
        coupling = self._coupling_of_runs()
        with self._engine() as engine:
            if coupling is None:
                results = each_run(engine, run, len(seeds))
            else:
                partitions = [Partition(matrices, empty, weight, allowed) for _ in seeds]
                results, self.transition_ = run_coupled(
                    coupling, model, partitions, begin, self._em, engine, self._schedules()
                )
                del partitions  # with the posteriors of all runs
            self._keep(model, results, seeds)
            data = Partition(matrices, empty, weight)
            plain = partial(run, self.best_run_, engine, None, beta=Constant(1.0))
            self._settle(model, data, engine, plain)
            self._finish(results[self.best_run_], model, data, engine)
        return saved

    def _keeper(self, model, index, saved):
        """Return what is given the state of a run after every round; `coem.analysis` looks on."""
        return saved.keep(index) if saved else lambda state, last: None

    def _schedules(self):
        return {name: as_schedule(getattr(self, name), name) for name in ("eta", "beta")}

    def _em(self, index, engine, model, data, begin, **settings):
        """Run EM from what `begin()` returns, as the parameters say but for some settings."""
        settings = self._schedules() | settings
        usual = {
            "max_iter": max_rounds(self.max_iter, settings["eta"], settings["beta"]),
            "tol": self.tol,
            "patience": self.patience,
            "keep": self._keeper(model, index, None),
            "monitor": progress(self.verbose, f"[{type(self).__name__}] run {index + 1}"),
        }
        # Passed on and not kept: the loop frees a table before it makes the next one.
        return em(model, engine, data, begin(), **(usual | settings))

    def _coupling_of_runs(self):
        """Return how runs are coupled, or None."""
        return None

    def _settle(self, model, data, engine, plain):
        """Do what is left to do before rows are assigned; `plain` runs EM without annealing."""

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

    def _given_start(self, n_rows):
        """Return what draws the start that `init` is, as an array or a model; None for a name."""
        if isinstance(self.init, str):
            check_choice("init", self.init, self._inits)
            return None
        if isinstance(self.init, BaseMixture):
            check_is_fitted(self.init)
            check_warm(self.init, self)
            theta = self.init._theta()
            if self.coupling == "joint":
                # One posterior takes one set of weights: those of `score_samples`.
                shared = np.broadcast_to(self.init._log_weights(), theta.log_weights.shape)
                theta = replace(theta, log_weights=shared.copy())
            return lambda model, data, rng: theta
        resp = as_responsibilities(self.init, n_rows, self._n_components())
        return lambda model, data, rng: model.from_resp(data, resp)

    def _keep(self, model, results, seeds):
        """Set the fitted attributes from the best of the runs."""
        self.runs_ = run_records(results, seeds)
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
        views = read_views(self, X, reset=False)
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

    def _log_assign(self, block, theta, model):
        """Return the logarithm of that posterior, which tells the unlikely apart."""
        if self.assign == "joint":
            log_proba = self._joint(block, theta, model, 1.0).log_posterior
            # For beta = 1 too: beside an evidence of 1e8 the differences have lost their sum.
            log_proba = log_softmax(self.beta_ * log_proba, axis=1)
        else:
            log_proba = safe_log(average(self._view_posteriors(block, theta, model), block.empty))
        if block.empty is not None:
            log_proba[block.empty.all(axis=1)] = safe_log(self.weights_ / self.weights_.sum())
        return log_proba

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
