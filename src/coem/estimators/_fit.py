"""How a mixture is fitted: starts, runs, checkpoints, and the attributes that a fit sets."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_choice
from coem.em import Keep, Result
from coem.engine import LocalEngine
from coem.estimators._base import BaseMixture
from coem.estimators._mixture_task import (
    Draw,
    MixtureTask,
    draws_early,
    draws_late,
    phases_of,
)
from coem.estimators._starts import as_responsibilities
from coem.estimators._types import Seed
from coem.families.named import shape_of
from coem.initialise import INITS, Start
from coem.io.checkpoint import Checkpoint, fingerprint, flat_theta
from coem.latent.block import Block, Partition
from coem.latent.mixture import Mixture, MixtureTheta
from coem.latent.weights import safe_log
from coem.protocols import Engine
from coem.records import Records, round_record
from coem.run_coupling import RunCoupling
from coem.runs import (
    best_of,
    draw_seeds,
    drive,
    each_run,
    run_records,
    warn_dead,
    warn_fall,
    warn_no_convergence,
)
from coem.typing import Array, Matrix

DEAD = 1e-2  # a component that expects fewer rows (of mean weight) than this is reported

# Parameters that do not change a run. They may differ when a fit goes on from a checkpoint.
NOT_IN_FINGERPRINT = (
    *("n_jobs", "verbose", "engine", "checkpoint", "random_state", "max_iter", "init"),
)


class Starts(NamedTuple):
    """Where the runs of a fit start."""

    draw: Draw  # draws one start
    n_runs: int
    early: bool = False  # draw all starts before the first run


class Drawn(NamedTuple):
    """The seeds of the runs of a fit, and a function that returns the start of each."""

    seeds: Array
    begin: Callable[[int], Start]


class MixtureFit(BaseMixture):
    """The fit that `MixtureClusterer` and `MixtureClassifier` have in common."""

    _inits: ClassVar[Sequence[str]] = INITS  # the names that `init` can be

    def _fit(
        self, part: Partition, shares: Array | None = None, drawn: Drawn | None = None
    ) -> Checkpoint | None:
        """Run EM from all starts, keep the best run, and label the rows.

        `shares` (n_rows, n_classes) is what the labelled rows teach their classes. `drawn` are
        starts that have been drawn before. Return the checkpoint, to be cleared when the estimator
        is complete, or None.
        """
        mixture = self._mixture()
        self._has_rows = _views_with_rows(part.empty, len(part.views))
        saved = self._open_checkpoint(mixture, part)
        with self._engine() as engine:
            if drawn is None:
                drawn = self._draw(self._starts(part, shares), self.random_state, engine, saved)
            seeds, begin = drawn
            task = self._task(mixture, part, begin, len(seeds), saved)
            results = [run.end for run in drive(task, engine)]
            if task.coupling is not None:
                self.transition_ = task.links
            self._keep_best(mixture, results, seeds)
            rows = Partition(part.views, part.empty, part.weight)
            self._name_components(
                rows, shares, lambda: task.rerun(self.best_run_, 1.0, engine).theta
            )
            self._set_labels(rows, engine)
        self._warn(mixture, results[self.best_run_])
        return saved

    def _draw_all(self, starts: Starts, seeds: Sequence[int], engine: Engine) -> list[Drawn]:
        """Return the starts of one fit per seed, drawn side by side."""
        serial = LocalEngine(1)  # a task of an engine must not wait for other tasks of it
        return each_run(engine, lambda i: self._draw(starts, seeds[i], serial), len(seeds))

    def _draw(
        self, starts: Starts, random_state: Seed, engine: Engine, saved: Checkpoint | None = None
    ) -> Drawn:
        """Return the seeds of the runs, and a function that returns the start of each."""
        seeds = draw_seeds(random_state, starts.n_runs)
        if saved:
            seeds = saved.seeds(seeds, fixed=isinstance(random_state, Integral))
        if starts.early:  # the caller can now free what they are drawn from
            return Drawn(seeds, draws_early(starts.draw, seeds, engine, saved))
        return Drawn(seeds, draws_late(starts.draw, seeds))

    def _task(
        self,
        mixture: Mixture,
        part: Partition,
        begin: Callable[[int], Start],
        n_runs: int,
        saved: Checkpoint | None,
    ) -> MixtureTask:
        """Return the task for the driver of runs."""
        (eta, beta), coupling = self._schedules(), self._coupling_of_runs()
        return MixtureTask(
            latent=mixture,
            n_runs=n_runs,
            eta=eta,
            beta=beta,
            phases=phases_of(coupling, eta, beta, self.max_iter, self.tol, self.patience),
            label=type(self).__name__,
            verbose=self.verbose,
            part=part,
            begin=begin,
            saved=saved,
            coupling=coupling,
            look_on=self._look_on(mixture),
        )

    def _open_checkpoint(self, mixture: Mixture, part: Partition) -> Checkpoint | None:
        """Return the checkpoint of this fit, or None if the user asked for none."""
        if self.checkpoint is None:
            return None
        params = {n: v for n, v in self.get_params().items() if n not in NOT_IN_FINGERPRINT}
        parts: list[Matrix | None] = [*part.views, part.empty, part.weight, part.allowed]
        if isinstance(self.init, BaseMixture):
            parts += [self.init.weights_, *flat_theta(self.init._theta().of_views)]
        elif self.init is not None:
            parts.append(np.asarray(self.init))
        return Checkpoint(Path(self.checkpoint), mixture, fingerprint(params, parts))

    # -- starts ------------------------------------------------------------------------------

    def _given_start(self, n_rows: int) -> Draw | None:
        """Return a function that returns the start in `init`, or None if `init` is a name."""
        if isinstance(self.init, str):
            check_choice("init", self.init, self._inits)
            return None
        if isinstance(self.init, BaseMixture):
            theta = self._theta_of(self.init)
            return lambda rng: Start(theta)
        resp = as_responsibilities(self.init, n_rows, self._n_components())
        return lambda rng: Start(self._mixture().unknown(), resp)

    def _theta_of(self, other: BaseMixture) -> MixtureTheta:
        """Return the parameters of another fitted mixture as a start for this one."""
        check_is_fitted(other)
        self._check_same_shape(other)
        theta = other._theta()
        if self._mixture().n_turns > 1:
            return theta
        # A single posterior takes a single set of weights: the one that `score_samples` uses.
        shared = np.broadcast_to(safe_log(other.weights_), theta.log_weights.shape)
        return replace(theta, log_weights=shared.copy())

    def _check_same_shape(self, other: BaseMixture) -> None:
        """Raise unless the parameters of another fitted mixture suit this one."""
        same = other.view_names_ == self.view_names_ and other.view_widths_ == self.view_widths_
        if not same or len(other.weights_) != self._n_components():
            raise ValueError(
                "init: the fitted model has other views, features or components "
                f"({list(other.view_names_)}, {list(other.view_widths_)}, {len(other.weights_)}); "
                "fit the same views, or pass responsibilities, such as its predict_proba, as init"
            )
        mine, theirs = self.families_.values(), other.families_.values()
        if [shape_of(family) for family in mine] != [shape_of(family) for family in theirs]:
            raise ValueError("init: the fitted model has other families than this one")

    # -- results -----------------------------------------------------------------------------

    def _keep_best(
        self, mixture: Mixture, results: Sequence[Result[MixtureTheta]], seeds: Array
    ) -> None:
        """Set the fitted attributes from the best run."""
        self.runs_ = run_records(results, seeds)
        self.best_run_ = best_of([result.objective for result in results])
        best = results[self.best_run_]
        self._set_theta(mixture, best.theta)
        self.history_ = Records(round_record(r, self.view_names_) for r in best.history)
        self.objective_ = best.objective
        self.n_iter_ = len(best.history)
        self.converged_ = best.converged
        self.beta_ = best.beta
        self._stats = None

    def _set_labels(self, part: Partition, engine: Engine) -> None:
        """Set the labels of the rows, and warn of components without rows."""
        fitted = self._fitted()

        def work(block: Block) -> tuple[Array, Array]:
            proba = fitted.proba(block)
            return self._labels(proba), block.row_weight() @ proba

        labels, masses = zip(*engine.map(work, part.blocks), strict=True)
        self.labels_ = np.concatenate(labels)
        mass = np.asarray(sum(masses))
        dead = np.flatnonzero(mass < DEAD * mass.sum() / part.n_rows).tolist()
        advice = "use fewer components or more restarts (n_init)"
        warn_dead(dead, len(mass), "components", "row", advice)

    def _is_double(self) -> bool:
        """Return True if all parameters and responsibilities are in double precision."""
        single = any(family.single_precision for family in self.families_.values())
        return self.dtype == np.float64 or (self.dtype is None and not single)

    def _warn(self, mixture: Mixture, best: Result[MixtureTheta]) -> None:
        """Warn if the best run did not converge, or if its objective fell."""
        if self.tol > 0 and not best.converged:
            advice = "raise max_iter or tol, or pass tol=0 to run a fixed number of rounds"
            warn_no_convergence(self.n_iter_, advice)
        warn_fall(
            best.fell,
            1e-9 if self._is_double() else 1e-5,
            "a family's M step or log_prior is wrong (run coem.families.check_family on it), or a "
            "variance has collapsed (raise reg)",
        )

    # -- hooks -------------------------------------------------------------------------------

    @abstractmethod
    def _starts(self, part: Partition, shares: Array | None) -> Starts:
        """Return where the runs start; `shares` are those of `_fit`."""

    def _coupling_of_runs(self) -> RunCoupling | None:
        """Return how the runs are coupled, or None."""
        return None

    def _name_components(
        self, part: Partition, shares: Array | None, unannealed: Callable[[], MixtureTheta]
    ) -> None:
        """Decide which class each component stands for, before rows are labelled.

        `unannealed` returns the parameters of the best run when it is repeated without annealing.
        """

    def _look_on(self, mixture: Mixture) -> Callable[[int], Keep[MixtureTheta]] | None:
        """Return a function from the number of a run to a callback, or None for no callbacks.

        The callback is called after every round of the run; see `em.em`. `coem.analysis` overrides
        this method.
        """
        return None


def _views_with_rows(empty: Array | None, n_views: int) -> Array:
    """Return which views count in the mixture weights: those with rows; if none has any, all."""
    if empty is None or empty.all():
        return np.ones(n_views, dtype=bool)
    return np.logical_not(empty.all(axis=0))
