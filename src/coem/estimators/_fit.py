"""How a mixture is fitted: starts, runs, checkpoints, and the attributes that a fit sets."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_choice
from coem.em import Keep
from coem.estimators._base import BaseMixture
from coem.estimators._mixture_task import MixtureTask, phases_of
from coem.estimators._restarts import (
    Draw,
    Drawn,
    RestartFit,
    Rows,
    Starts,
    warn_dead_components,
)
from coem.estimators._starts import as_responsibilities
from coem.families.named import shape_of
from coem.initialise import INITS, Start
from coem.io.checkpoint import Checkpoint
from coem.io.kept import Part
from coem.io.packing import MixturePacking, flat_theta
from coem.kernels import threads
from coem.latent.block import Block, Partition
from coem.latent.fitted import Fitted
from coem.latent.mixture import Mixture, MixtureTheta
from coem.latent.weights import safe_log
from coem.posterior import Hard, as_rule
from coem.protocols import Engine
from coem.run_coupling import RunCoupling
from coem.runs import (
    drive,
)
from coem.typing import Array


class Lesson(NamedTuple):
    """What labelled rows teach their classes."""

    rows: Array  # (m,), their numbers
    shares: Array  # (m, n_classes)


class MixtureFit(BaseMixture, RestartFit):
    """The fit that `MixtureClusterer` and `MixtureClassifier` have in common."""

    _inits: ClassVar[Sequence[str]] = INITS  # the names that `init` can be

    def _fit(
        self,
        part: Rows,
        lesson: Lesson | None = None,
        drawn: Drawn[MixtureTheta] | None = None,
        saved: Checkpoint[MixtureTheta] | None = None,
    ) -> None:
        """Run EM from all starts, keep the best run, and label the rows.

        `lesson` is what the labelled rows teach their classes. `drawn` are starts that have been
        drawn before. The checkpoint in `saved` is to be cleared when the estimator is complete.
        """
        mixture = self._mixture()
        self._has_rows = part.has_rows()
        with saved or nullcontext(), self._engine() as engine:
            if drawn is None:
                starts = self._starts(part, lesson, engine)
                self._say_sample(starts, part.n_rows)
                drawn = self._draw(starts, self.random_state, engine, saved)
                del starts  # frees what early starts are drawn from
            seeds, begin = drawn
            task = self._task(mixture, part, begin, len(seeds), saved)
            results = [run.end for run in drive(task, engine)]
            if task.coupling is not None:
                self.transition_ = task.links
            best = self._keep_run(results, seeds)
            for record in self.runs_:
                record.silent_views = self._left_out()
                record.view_betas = dict(self.view_betas_)
            self._set_theta(mixture, best.theta)
            self._stats = None
            rows = part.without_labels()
            self._name_components(
                rows, lesson, lambda: task.rerun(self.best_run_, 1.0, engine).theta
            )
            self._set_labels(part, engine)
        self._warn(best)

    def _saved(self, rows: Rows, part: Part | None = None) -> Checkpoint[MixtureTheta] | None:
        """Return the checkpoint of a fit to some rows, or None; see `_open_checkpoint`."""
        return self._open_checkpoint(
            MixturePacking(self._mixture()), lambda: self._data(rows), part
        )

    def _task(
        self,
        mixture: Mixture,
        part: Rows,
        begin: Callable[[int], Start[MixtureTheta]],
        n_runs: int,
        saved: Checkpoint[MixtureTheta] | None,
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

    def _data(self, part: Rows) -> list[Any]:
        """Return all that a fit depends on beside its parameters, for a checkpoint."""
        parts = part.content()
        if isinstance(self.init, BaseMixture):
            parts += [self.init.weights_, *flat_theta(self.init._theta().of_views)]
        elif self.init is not None:
            parts.append(np.asarray(self.init))
        return parts

    # -- starts ------------------------------------------------------------------------------

    def _given_start(self, n_rows: int) -> Draw[MixtureTheta] | None:
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

    def _set_labels(self, part: Rows, engine: Engine) -> None:
        """Set the labels of the rows, and warn of components without rows.

        A hard posterior gives each row to one component, of those that its label allows. So a
        component without such rows is dead, even if its density equals that of another.
        """
        hard = isinstance(as_rule(self.posterior), Hard)
        work = partial(_label, fitted=self._fitted(), hard=hard, labels_of=self._labels)
        labels, masses = zip(*engine.each_part(work, part.parts()), strict=True)
        self.labels_ = np.concatenate(labels)
        mass = np.asarray(sum(masses))
        warn_dead_components(mass, part.n_rows)

    # -- hooks -------------------------------------------------------------------------------

    @abstractmethod
    def _starts(self, part: Rows, lesson: Lesson | None, engine: Engine) -> Starts[MixtureTheta]:
        """Return where the runs start; `lesson` is that of `_fit`."""

    def _coupling_of_runs(self) -> RunCoupling | None:
        """Return how the runs are coupled, or None."""
        return None

    def _name_components(
        self, part: Rows, lesson: Lesson | None, unannealed: Callable[[], MixtureTheta]
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


def _label(
    part: Partition, *, fitted: Fitted, hard: bool, labels_of: Callable[[Array], Array]
) -> tuple[Array, Array]:
    """Return the labels of the rows of a partition, and the mass of the components."""

    def work(block: Block) -> tuple[Array, Array]:
        proba, weight = fitted.proba(block), block.row_weight()
        if not hard:
            return labels_of(proba), weight @ proba
        open_ = proba if block.allowed is None else np.where(block.allowed, proba, -1.0)
        counts = np.bincount(open_.argmax(axis=1), weight, minlength=proba.shape[1])
        return labels_of(proba), counts

    labels, masses = zip(*threads.spread(work, part.blocks), strict=True)
    return np.concatenate(labels), np.asarray(sum(masses))
