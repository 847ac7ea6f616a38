"""Fits with restarts: seeds, starts, checkpoints, and the attributes that the best run sets."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from coem.em import Past, Result
from coem.engine import LocalEngine
from coem.estimators._keeping import checkpoint_of
from coem.estimators._types import Seed
from coem.estimators._views_model import ViewsModel
from coem.initialise import Start
from coem.io.checkpoint import Checkpoint
from coem.io.kept import Part
from coem.io.packing import Packing
from coem.latent.block import Partition
from coem.latent.stored import StoredRows
from coem.protocols import AdditiveLatent, Engine, Session, State, SummaryOut, Theta
from coem.records import Records, round_record
from coem.runs import (
    Run,
    Task,
    best_of,
    draw_seeds,
    each_run,
    run_records,
    warn_collapsed,
    warn_dead,
    warn_fall,
    warn_no_convergence,
)
from coem.typing import Array, Matrix, Rng

DEAD = 1e-2  # a component that expects fewer rows (of mean weight) than this is reported

PartT = TypeVar("PartT", bound=Partition)

Draw: TypeAlias = Callable[[Rng], Start[Theta]]


Rows: TypeAlias = Partition | StoredRows
"""All rows of a fit, in memory or in a corpus."""


class Starts(NamedTuple, Generic[Theta]):
    """Where the runs of a fit start."""

    draw: Draw[Theta]  # draws one start
    n_runs: int
    early: bool = False  # draw all starts before the first run
    n_rows: int | None = None  # that they are drawn from; None for all rows


class Drawn(NamedTuple, Generic[Theta]):
    """The seeds of the runs of a fit, and a function that returns the start of each."""

    seeds: Array
    begin: Callable[[int], Start[Theta]]


@dataclass
class RestartTask(Task[Theta, State, SummaryOut], Generic[Theta, State, SummaryOut, PartT]):
    """Runs on one partition, each from a start of its own."""

    latent: AdditiveLatent[PartT, Theta, State, SummaryOut, Any]
    part: PartT | StoredRows = field(kw_only=True)
    begin: Callable[[int], Start[Theta]] = field(kw_only=True)  # returns the start of a run

    def open(
        self, run: Run[Theta], phase: int, engine: Engine
    ) -> tuple[Session[Theta, State, SummaryOut], Past[Theta] | None]:
        """Return a session from a checkpoint or from a start."""
        stop = self.saved.load(run.index, phase) if self.saved else None
        if stop is None:
            return self.session(engine, self.first(run, phase)), None
        run.history, run.fell = list(stop.before.history), stop.before.fell
        return self.session(engine, Start(stop.theta)), stop.past

    def first(self, run: Run[Theta], phase: int) -> Start[Theta]:
        """Return where a run starts a phase."""
        return self.begin(run.index)

    def session(self, engine: Engine, start: Start[Theta]) -> Session[Theta, State, SummaryOut]:
        """Return a session from a start."""
        # Keep no other name for the start: the session frees each old table before it makes a new
        # one.
        parts: Sequence[Any] = self.part.parts(start.given)
        return engine.open_parts(self.latent, parts, start.theta)


class RestartFit(ViewsModel):
    """What the fits of mixtures and chains have in common."""

    n_start_rows_: int

    def _say_sample(self, starts: Starts[Theta], n_rows: int) -> None:
        """Set how many rows the starts are drawn from, and say so if they are a sample."""
        self.n_start_rows_ = n_rows if starts.n_rows is None else starts.n_rows
        if self.verbose and self.n_start_rows_ < n_rows:
            sys.stderr.write(
                f"{type(self).__name__}: starts are drawn from {self.n_start_rows_:,} of "
                f"{n_rows:,} rows, chosen by their content\n"
            )

    def _draw_all(
        self,
        starts: Starts[Theta],
        fits: Sequence[tuple[int, Checkpoint[Theta] | None]],
        engine: Engine,
    ) -> list[Drawn[Theta]]:
        """Return the starts of one fit per seed and checkpoint, drawn side by side."""
        serial = LocalEngine(1)  # a task of an engine must not wait for other tasks of it

        def draw(i: int) -> Drawn[Theta]:
            seed, saved = fits[i]
            return self._draw(starts, seed, serial, saved)

        return each_run(engine, draw, len(fits))

    def _draw(
        self,
        starts: Starts[Theta],
        random_state: Seed,
        engine: Engine,
        saved: Checkpoint[Theta] | None = None,
    ) -> Drawn[Theta]:
        """Return the seeds of the runs, and a function that returns the start of each."""
        seeds = draw_seeds(random_state, starts.n_runs)
        if saved:
            seeds = saved.seeds(seeds, fixed=isinstance(random_state, Integral))
        if starts.early:  # the caller can now free what they are drawn from
            return Drawn(seeds, _draws_early(starts.draw, seeds, engine, saved))
        return Drawn(seeds, _draws_late(starts.draw, seeds))

    def _open_checkpoint(
        self,
        packing: Packing[Theta],
        data: Callable[[], Sequence[Matrix | None]],
        part: Part | None = None,
    ) -> Checkpoint[Theta] | None:
        """Return the checkpoint of this fit, or None if the user asked for none.

        `data` returns all that the fit depends on beside the parameters of the estimator. `part`
        is the folder of the fit, if it is one of several.
        """
        place = part or self.checkpoint
        if place is None:
            return None
        return checkpoint_of(place, packing, self.get_params(), data())

    def _keep_run(self, results: Sequence[Result[Theta]], seeds: Array) -> Result[Theta]:
        """Set the attributes that tell how the best run went, and return it."""
        self.runs_ = run_records(results, seeds)
        self.best_run_ = best_of([result.objective for result in results])
        best = results[self.best_run_]
        self.history_ = Records(round_record(r, self.view_names_) for r in best.history)
        self.objective_ = best.objective
        self.n_iter_ = len(best.history)
        self.converged_ = best.converged
        self.beta_ = best.beta
        return best

    @property
    def collapsed_(self) -> dict[str, list[int]]:
        """View -> its components that do not vary in some direction in which all rows do."""
        return {
            name: family.collapsed(self.theta_[name], self.weights_).tolist()
            for name, family in self.families_.items()
        }

    def _warn(self, best: Result[Theta], what: str = "components") -> None:
        """Warn if the best run did not converge, has collapsed, or had an objective that fell."""
        if self.tol > 0 and not best.converged:
            advice = "raise max_iter or tol, or pass tol=0 to run a fixed number of rounds"
            warn_no_convergence(self.n_iter_, advice)
        for view, components in self.collapsed_.items():
            advice = f"raise reg, or use fewer {what} or more restarts (n_init)"
            warn_collapsed(components, what, view, advice)
        warn_fall(
            best.fell,
            1e-9 if self._is_double() else 1e-5,
            "a family's M step or log_prior is wrong (run coem.families.check_family on it), or a "
            "variance has collapsed (raise reg)",
        )


def warn_dead_components(mass: Array, n_rows: int, what: str = "components") -> None:
    """Warn of components that expect hardly any row; `mass` (k,) are sums of posteriors."""
    dead = np.flatnonzero(mass < DEAD * mass.sum() / n_rows).tolist()
    advice = f"use fewer {what} or more restarts (n_init)"
    warn_dead(dead, len(mass), what, "row", advice)


def _draws_early(
    draw: Draw[Theta], seeds: Array, engine: Engine, saved: Checkpoint[Theta] | None
) -> Callable[[int], Start[Theta]]:
    """Draw the starts of all runs that have no checkpoint; return a function that returns them.

    These starts are small. What they are drawn from can be freed before the first round.
    """

    def begin(index: int) -> Start[Theta] | None:
        return None if saved and saved.has(index) else draw(np.random.default_rng(seeds[index]))

    starts = each_run(engine, begin, len(seeds))

    def start_of(index: int) -> Start[Theta]:
        start = starts[index]
        return draw(np.random.default_rng(seeds[index])) if start is None else start

    return start_of


def _draws_late(draw: Draw[Theta], seeds: Array) -> Callable[[int], Start[Theta]]:
    """Return a function that draws the start of a run when the run begins.

    Only one start at a time is then in memory.
    """
    return lambda index: draw(np.random.default_rng(seeds[index]))
