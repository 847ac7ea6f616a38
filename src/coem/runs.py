"""The driver of runs: restarts, and runs that learn from each other between phases.

Every estimator fits by `drive`. A *run* goes from one start to its end, in one *phase* of EM or in
several; between two phases all runs are coupled. What differs from estimator to estimator (the
start, the coupling, what is recorded) is a `Task`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from sklearn.utils import Bunch, check_random_state

from coem.checks import warn_user
from coem.em import Keep, Monitor, Past, Result, Round, em, ignore
from coem.io.checkpoint import Before, Checkpoint
from coem.io.stopping import rounds
from coem.latent.transitions import Link
from coem.protocols import Engine, Latent, Session, State, SummaryOut, Theta
from coem.records import Records, progress
from coem.schedules import Later, Schedule
from coem.typing import Array

__all__ = [
    "Phase",
    "Run",
    "Task",
    "best_of",
    "draw_seeds",
    "drive",
    "each_run",
    "run_records",
    "warn_collapsed",
    "warn_dead",
    "warn_fall",
    "warn_no_convergence",
    "warn_user",
]

Outcome = TypeVar("Outcome")

ALIKE = 1e-12  # values of runs that differ by less, relative, count as equal


@dataclass(frozen=True)
class Phase:
    """How one phase of EM ends; see `em.Stopping`."""

    max_iter: int
    tol: float
    patience: int | None


@dataclass
class Run(Generic[Theta]):
    """One run: where it is, and what it went through."""

    index: int
    phase: int = 0
    history: list[Round] = field(default_factory=list)  # of all phases, numbered throughout
    result: Result[Theta] | None = None  # of its last phase
    fell: float = 0.0  # largest fall of the free energy, relative, that theory forbids
    session: Session[Theta, Any, Any] | None = None  # kept only while runs are coupled

    @property
    def end(self) -> Result[Theta]:
        """The result of the last phase, with the history of all phases."""
        assert self.result is not None
        return replace(self.result, history=self.history, fell=self.fell)


@dataclass
class Task(ABC, Generic[Theta, State, SummaryOut]):
    """What an estimator wants from its runs."""

    latent: Latent[Any, Theta, State, SummaryOut]
    n_runs: int
    eta: Schedule
    beta: Schedule
    phases: Sequence[Phase]
    label: str  # of the lines that show progress
    verbose: int = 0
    links: Records = field(default_factory=Records, kw_only=True)  # of all couplings
    saved: Checkpoint[Theta] | None = field(default=None, kw_only=True)

    @abstractmethod
    def open(
        self, run: Run[Theta], phase: int, engine: Engine
    ) -> tuple[Session[Theta, State, SummaryOut], Past[Theta] | None]:
        """Return a session at the start of a phase, and the rounds that it goes on from.

        A phase that goes on from a checkpoint gives the run its earlier rounds back.
        """

    def couple(self, runs: Sequence[Run[Theta]], number: int) -> Sequence[Link]:
        """Let all runs learn from each other, and return the transitions that were used.

        `number` counts the couplings from 0. Sessions of runs that go on from a checkpoint may have
        no states: `e_step` with the clock of the result makes them again.
        """
        raise NotImplementedError

    def monitor(self, run: Run[Theta], phase: int) -> Monitor[SummaryOut]:
        """Return what is called after every round, beside the progress that is shown."""
        return ignore

    def keeper(self, run: Run[Theta]) -> Keep[Theta]:
        """Return what is given the parameters and the past of a run after every round."""
        if self.saved is None:
            return ignore
        return self.saved.keep(run.index, run.phase, partial(self.before, run))

    def before(self, run: Run[Theta]) -> Before[Theta]:
        """Return what a run brings with it to its phase: with the parameters and the past, all."""
        return Before(run.history, run.fell)

    def finish(
        self, run: Run[Theta], phase: int, session: Session[Theta, State, SummaryOut]
    ) -> None:
        """Take note of the end of a phase."""


def drive(task: Task[Theta, State, SummaryOut], engine: Engine) -> list[Run[Theta]]:
    """Take all runs through all phases, and return them."""
    runs: list[Run[Theta]] = [Run(index) for index in range(task.n_runs)]
    first = _first_phase(task)
    for phase in range(first, len(task.phases)):
        if phase > first:
            _couple(task, runs, phase - 1)
        each_run(engine, partial(_go_on, task, runs, phase, engine), task.n_runs)
    return runs


def _first_phase(task: Task[Theta, State, SummaryOut]) -> int:
    """Return the phase to begin with, and take note of the couplings before it."""
    if task.saved is None:
        return 0
    first = min(task.saved.first_phase(), len(task.phases) - 1)
    for number in range(first):
        task.links += [Bunch(**link) for link in task.saved.load_coupling(number)]
    return first


def _couple(task: Task[Theta, State, SummaryOut], runs: Sequence[Run[Theta]], number: int) -> None:
    """Couple all runs, and take note of it."""
    links = [Bunch(coupling=number, **vars(link)) for link in task.couple(runs, number)]
    task.links += links
    if task.saved is not None:
        task.saved.keep_coupling(number, links)


def _go_on(
    task: Task[Theta, State, SummaryOut],
    runs: Sequence[Run[Theta]],
    phase: int,
    engine: Engine,
    index: int,
) -> None:
    """Take one run through one phase."""
    run = runs[index]
    run.phase, run.session = phase, None
    session, past = task.open(run, phase, engine)
    n_before = len(run.history)
    # Schedules go on through the phases: nothing is heated again (Lin 2006, Sec. 4.2).
    eta, beta = Later(task.eta, n_before), Later(task.beta, n_before)
    own, show = task.monitor(run, phase), progress(task.verbose, _name(task, run, phase))

    def monitor(record: Round, summary: SummaryOut) -> None:
        own(record, summary)
        show(record)

    with nullcontext() if task.saved is None else rounds():
        run.result = em(
            task.latent,
            session,
            eta=eta,
            beta=beta,
            **vars(task.phases[phase]),
            past=past,
            monitor=monitor,
            keep=task.keeper(run),
        )
    run.history += [replace(record, round=record.round + n_before) for record in run.result.history]
    run.fell = max(run.fell, run.result.fell)
    task.finish(run, phase, session)
    if phase + 1 < len(task.phases):
        run.session = session  # the coupling reads its posteriors


def _name(task: Task[Any, Any, Any], run: Run[Any], phase: int) -> str:
    several = f", phase {phase + 1}," if len(task.phases) > 1 else ""
    return f"[{task.label}] run {run.index + 1}{several}"


def draw_seeds(random_state: Any, n: int) -> Array:
    """Return one seed for each of `n` runs."""
    return np.asarray(check_random_state(random_state).randint(np.iinfo(np.int32).max, size=n))


def each_run(engine: Engine, run: Callable[[int], Outcome], n: int) -> list[Outcome]:
    """Return the results of ``run(index)`` for `n` runs.

    Runs go side by side, one thread each, if no thread is idle then; else one after the other on
    all threads. The bits are the same.
    """
    if n >= engine.n_workers > 1:
        return engine.map(run, range(n))
    return [run(index) for index in range(n)]


def run_records(results: Sequence[Result[Any]], seeds: Array) -> Records:
    """Return a record of every run."""
    return Records(
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


def best_of(values: Sequence[float]) -> int:
    """Return the first run with the largest value. Runs that end alike differ by rounding alone."""
    top = np.max(values)
    return int(np.argmax(np.asarray(values) >= top - ALIKE * abs(top)))


# -- warnings -----------------------------------------------------------------------------------


def warn_no_convergence(n_rounds: int, advice: str) -> None:
    """Warn that a run ended before it had converged."""
    warn_user(f"no convergence after {n_rounds} rounds; {advice}")


def warn_dead(dead: Sequence[int], n: int, what: str, owned: str, advice: str) -> None:
    """Warn of components, or what they are called here, that nothing belongs to."""
    if len(dead):
        warn_user(f"{what} {list(dead)} of {n} died: no {owned} belongs to them; {advice}")


def warn_collapsed(components: Sequence[int], what: str, view: str, advice: str) -> None:
    """Warn of components whose rows do not vary in a direction in which all rows do."""
    if len(components):
        warn_user(
            f"{what} {list(components)} of view {view!r} have collapsed: in some direction their "
            "rows do not vary, and their variance there was set to the least that is allowed; "
            f"{advice}"
        )


def warn_fall(fell: float, allowed: float, advice: str) -> None:
    """Warn of an objective that fell by more than rounding, where theory forbids it."""
    if fell > allowed:
        warn_user(
            f"the objective fell by {fell:.2g}, relative, where it cannot: {advice}",
            RuntimeWarning,
        )
