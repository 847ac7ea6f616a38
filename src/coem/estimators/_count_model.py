"""The base of `AspectModel` and `TrafficModel`: parameters, runs, and the attributes of a fit."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from coem.checks import check_dtype, check_flag, check_folder, check_number, check_workers
from coem.engine import LocalEngine
from coem.estimators._count_journal import Candidate, Theta
from coem.estimators._count_task import CountLatent, CountTask, Couple
from coem.estimators._counts import check_counts, held_out_pairs
from coem.estimators._keeping import OF_ONE_FIT, checkpoint_of
from coem.estimators._starts import KeepsInit
from coem.estimators._types import Folder, Precision, Seed
from coem.input import read_views
from coem.io.checkpoint import Checkpoint
from coem.io.model_file import Saves
from coem.io.packing import Packing
from coem.kernels.aspect import Pairs
from coem.latent.aspect import AspectData
from coem.records import Records
from coem.row_store import RowStore
from coem.run_coupling import RunCoupling, Via, read_coupling
from coem.runs import (
    Phase,
    Run,
    best_of,
    draw_seeds,
    drive,
    warn_dead,
    warn_fall,
    warn_no_convergence,
    warn_user,
)
from coem.schedules import Constant, Schedule, as_schedule
from coem.typing import Array, Matrix

DEAD = 1e-2  # a component that expects fewer non-zeros (of mean count) than this is reported


@dataclass(frozen=True)
class Plan:
    """The phases of a fit, and the coupling between them."""

    coupling: RunCoupling | None
    beta: Schedule
    phases: Sequence[Phase]

    def check_runs(self, n_runs: int) -> None:
        """Raise if a run has no other run to learn from."""
        if self.coupling is not None and self.coupling.among != "self" and n_runs < 2:
            raise ValueError(
                "coupling needs two runs: set n_runs to 2 or more, give a list of starts, or set "
                "self_coupling=True"
            )


class CountModel(Saves, KeepsInit, BaseEstimator):
    """What `AspectModel` and `TrafficModel` have in common."""

    coupling: str | RunCoupling | None
    n_runs: int
    rounds: int
    self_coupling: bool
    beta: float | Schedule
    init: Any  # "random", parameters, a fitted model, or a list of these
    max_iter: int
    tol: float
    validation: Any  # a matrix of counts, or None
    patience: int
    smoothing: Any  # a number, or for an aspect model two
    dtype: Precision
    n_jobs: int | None
    random_state: Seed
    checkpoint: Folder | None
    verbose: int

    kl_: float
    objective_: float
    history_: Records
    runs_: Records
    transition_: Records
    best_run_: int
    n_iter_: int
    converged_: bool

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _read_counts(self, X: Any, *, reset: bool) -> Matrix:
        """Return checked counts."""
        if isinstance(X, RowStore) and len(X.names) > 1:
            raise ValueError(
                f"{type(self).__name__} takes one view of a corpus, which has {list(X.names)}; "
                f"choose one, such as corpus[[{X.names[0]!r}]]"
            )
        views = read_views(self, X, reset=reset)
        return check_counts(views[views.names[0]], "X")

    # -- plan --------------------------------------------------------------------------------

    def _plan(self, size: str, vias: tuple[Via, ...]) -> Plan:
        """Return the plan of a fit; raise unless all parameters are valid.

        `size` is the name of the parameter with the number of components. `vias` are the couplings
        that the model knows.
        """
        for name in (size, "n_runs", "rounds", "max_iter", "patience"):
            check_number(name, getattr(self, name), Integral, 1)
        check_number("tol", self.tol, Real, 0)
        check_dtype(self.dtype)
        check_workers(self.n_jobs, self.verbose)
        check_folder("checkpoint", self.checkpoint)
        beta = as_schedule(self.beta, "beta")
        if not beta.extremes()[0] > 0:
            raise ValueError("beta must be above 0: at 0 all components are the same; try 0.5")
        coupling = self._read_coupling(vias)
        patience = None if self.validation is None else self.patience
        last = Phase(self.max_iter, self.tol, patience)
        if coupling is None:
            return Plan(None, beta, [last])
        early = replace(last, max_iter=coupling.n_rounds or last.max_iter)
        return Plan(coupling, beta, [early] * (coupling.n_couplings or self.rounds) + [last])

    def _read_coupling(self, vias: tuple[Via, ...]) -> RunCoupling | None:
        """Return the coupling of the runs, or None."""
        check_flag("self_coupling", self.self_coupling)
        coupling = read_coupling(self.coupling, vias, "coupling")
        if coupling is None and self.self_coupling:
            raise ValueError(
                f"self_coupling needs a coupling: choose one of {', '.join(map(repr, vias))}"
            )
        if coupling is None and self.rounds > 1:
            raise ValueError(
                f"rounds={self.rounds} is a number of couplings, but coupling is None: set "
                f"coupling={vias[0]!r}, for example, or leave rounds at 1"
            )
        return (
            replace(coupling, among="self", itself=None)
            if coupling and self.self_coupling
            else coupling
        )

    # -- fit ---------------------------------------------------------------------------------

    def _fit_runs(
        self,
        plan: Plan,
        latent: CountLatent[Theta],
        couple: Couple[Theta],
        packing: Packing[Theta],
        counts: Matrix,
        weight: Array | None,
        given: Sequence[Theta] | None,
        components: str,
    ) -> Candidate[Theta]:
        """Do all runs, set the attributes that describe them, and return the best parameters.

        `given` are the starts, or None if they are to be drawn. `components` is what the
        components are called in warnings.
        """
        n_runs = self.n_runs if given is None else len(given)
        plan.check_runs(n_runs)
        names = getattr(self, "feature_names_in_", None)
        held_out = held_out_pairs(self.validation, counts.shape, names, latent.dtype)
        seeds = draw_seeds(self.random_state, n_runs)
        saved = self._open_checkpoint(plan, packing, [counts, weight], given)
        with saved or nullcontext(), LocalEngine(self.n_jobs) as engine:
            if saved:
                seeds = saved.seeds(seeds, fixed=isinstance(self.random_state, Integral))
            pairs = Pairs.of(counts, weight, latent.dtype)

            def begin(index: int) -> Theta:
                if given is not None:
                    return given[index]
                return latent.random(pairs, np.random.default_rng(seeds[index]))

            task = CountTask(
                latent=latent,
                n_runs=n_runs,
                eta=Constant(1.0),
                beta=plan.beta,
                phases=plan.phases,
                label=type(self).__name__,
                verbose=self.verbose,
                data=AspectData(pairs, held_out),
                begin=begin,
                couple_params=couple,
                coupling=plan.coupling,
                saved=saved,
            )
            runs = drive(task, engine)
        best = self._keep_best(task, runs)
        self._warn(task, runs[self.best_run_])
        _warn_dead(best, len(pairs.counts), components)
        if saved:
            saved.clear()
        return best

    def _open_checkpoint(
        self,
        plan: Plan,
        packing: Packing[Theta],
        data: list[Matrix | None],
        given: Sequence[Theta] | None,
    ) -> Checkpoint[Theta] | None:
        """Return the checkpoint of this fit, or None if the user asked for none.

        `max_iter` may differ if it is only the length of the last phase.
        """
        if self.checkpoint is None:
            return None
        early = len(plan.phases) > 1 and not (plan.coupling and plan.coupling.n_rounds)
        without = [name for name in OF_ONE_FIT if name != "max_iter" or not early]
        for start in given or ():
            data += packing.pack(start).values()
        params = self.get_params(deep=False)
        return checkpoint_of(self.checkpoint, packing, params, data, without=without)

    def _keep_best(self, task: CountTask[Theta], runs: Sequence[Run[Theta]]) -> Candidate[Theta]:
        """Set the attributes that describe the runs, and return the best parameters."""
        ends = [task.journals[run.index].best for run in runs]
        found = [end for end in ends if end is not None]
        self.best_run_ = best_of([candidate.merit for candidate in found])
        best, end = found[self.best_run_], runs[self.best_run_].end
        self.runs_, self.transition_ = task.records, task.links
        self.history_ = task.journals[self.best_run_].rounds
        self.kl_, self.objective_ = best.kl, best.objective
        self.n_iter_, self.converged_ = len(end.history), end.converged
        return best

    def _warn(self, task: CountTask[Theta], best: Run[Theta]) -> None:
        """Warn if the best run ended too early, or if its objective fell."""
        n_iter, end = len(best.history), best.end
        if n_iter < len(task.beta):
            warn_user(
                f"beta was {task.beta(n_iter):.3g} after the last round, but its schedule takes "
                f"{len(task.beta)} rounds: raise max_iter, or shorten the schedule"
            )
        elif self.tol > 0 and not end.converged:
            advice = "raise max_iter or tol, or pass tol=0 to run a fixed number of rounds"
            warn_no_convergence(task.phases[-1].max_iter, advice)
        # If every count is certain, the objective is only the rounding error of the total. A fall
        # is relative to the round before it, which may be any of them.
        rounding = 1e-5 if end.theta.x.dtype == np.float32 else 1e-9
        least = min(abs(record.free_energy) for record in best.history)
        total = task.data.pairs.total / max(least, 1.0)
        assert best.result is not None
        warn_fall(best.result.fell, rounding * max(total, 1.0), "dtype=np.float64 may help")


def _warn_dead(best: Candidate[Theta], n_counts: int, components: str) -> None:
    """Warn of components without counts; `n_counts` is the number of non-zeros."""
    weights = best.theta.plain.weights
    dead = np.flatnonzero(weights * n_counts < DEAD).tolist() if n_counts else []
    warn_dead(dead, len(weights), components, "count", f"use fewer {components}")
