"""The loop. There is one."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from coem.protocols import Clock, Latent, Parameters, Session, Summary, SummaryOut, Value
from coem.schedules import Schedule

Theta = TypeVar("Theta", bound=Parameters)


@dataclass(frozen=True)
class Round:
    """The record of one round over all views."""

    round: int
    objective: float
    free_energy: float
    log_likelihood: tuple[float, ...]
    dissent: float
    agreement_rate: float
    eta: float
    beta: float
    seconds: float


@dataclass
class Stopping:
    """When a run has converged.

    With `patience` None, a run converges when the objective changes by less than `tol`, relative,
    over a round. With a number, it converges when no view's log likelihood has reached a new
    maximum for that many rounds (Bickel & Scheffer 2004, Sec. 4.2). Rounds count once the
    schedules have ended.
    """

    tol: float
    patience: int | None
    scheduled: int  # rounds until the schedules have ended
    _last: Round | None = None
    _maxima: dict[int, float] = field(default_factory=dict)
    _since: int = 0

    def reached(self, record: Round) -> bool:
        """Take note of a round, and return True if it was the last one."""
        last, self._last = self._last, record
        if not self.counts(record):
            return False
        self._since = 0 if self._new_maximum(record) else self._since + 1
        if self.patience is not None:
            return self._since >= self.patience
        if last is None or self.tol == 0:
            return False
        return abs(record.objective - last.objective) <= self.tol * abs(record.objective)

    def counts(self, record: Round) -> bool:
        """Return True if the schedules had ended: earlier rounds have another objective."""
        return record.round > self.scheduled

    def _new_maximum(self, record: Round) -> bool:
        better = False
        for v, value in enumerate(record.log_likelihood):
            known = self._maxima.get(v, -float("inf"))
            # By more than rounding, or two states that take turns would never end.
            if value > known + 1e-12 * abs(value):
                self._maxima[v] = value
                better = True
        return better


@dataclass(frozen=True)
class Result(Generic[Theta]):
    """Parameters, and how they came about."""

    theta: Theta
    history: list[Round]
    converged: bool
    objective: float
    beta: float  # of the posterior that goes with theta
    fell: float  # largest fall of the free energy, relative, that theory forbids
    clock: Clock  # at the end of the last round


@dataclass(frozen=True)
class Past(Generic[Theta]):
    """The rounds of a run so far: beside the parameters, all that it needs to go on."""

    history: list[Round]
    best: Theta | None = None  # with patience, the best parameters, if they are not the last ones
    n_initial_e_steps: int = 0  # E steps before the first round: 1 for a start from parameters
    fell: float = 0.0  # as in `Result`


Monitor = Callable[[Round, SummaryOut], None]
Keep = Callable[[Theta, Past[Theta], bool], None]


def ignore(*args: Any) -> None:
    """Do nothing: the default for `monitor` and `keep`."""


@dataclass
class _Log(Generic[Theta]):
    """The rounds of a run, and what follows from them."""

    stopping: Stopping
    history: list[Round] = field(default_factory=list)
    best: tuple[Theta, Round] | None = None  # only with patience, so that old tables are freed
    converged: bool = False
    fell: float = 0.0

    def note(self, record: Round, theta: Theta, never_falls: bool = False) -> None:
        """Take note of a round."""
        if never_falls:
            self.fell = max(self.fell, self._fall(record))
        self.history.append(record)
        better = self.best is None or _total(record) > _total(self.best[1])
        if self.stopping.patience is not None and self.stopping.counts(record) and better:
            self.best = theta, record
        self.converged = self.stopping.reached(record)

    def replay(self, past: Past[Theta], theta: Theta) -> None:
        """Take note of the rounds of a run that goes on from `theta`."""
        for record in past.history:
            self.note(record, theta)
        if self.best is not None and past.best is not None:
            self.best = past.best, self.best[1]
        self.fell = past.fell

    def past(self, theta: Theta, n_initial_e_steps: int) -> Past[Theta]:
        """Return what a run needs to go on from `theta`."""
        best = None if self.best is None or self.best[0] is theta else self.best[0]
        return Past(self.history, best, n_initial_e_steps, self.fell)

    def result(self, theta: Theta, clock: Clock) -> Result[Theta]:
        """Return the parameters, and how they came about."""
        last = self.history[-1]
        theta, last = (theta, last) if self.best is None else self.best
        about = self.history, self.converged, last.objective, last.beta, self.fell
        return Result(theta, *about, clock)

    def _fall(self, record: Round) -> float:
        """Return by how much the free energy fell, relative, since a round with the same clock."""
        if not self.history:
            return 0.0
        last = self.history[-1]
        if (last.beta, last.eta) != (record.beta, record.eta):
            return 0.0
        return (last.free_energy - record.free_energy) / max(abs(last.free_energy), 1.0)


@dataclass(frozen=True)
class _Timer:
    """The clocks of a run: E step i takes value i of `beta`, round i takes value i of `eta`."""

    eta: Schedule
    beta: Schedule
    n_turns: int
    n_initial_e_steps: int

    def after(self, t: int) -> Clock:
        """Return the clock at the end of round `t`; at its start for `t` = 0."""
        return Clock(t, (self._beta(t),) * self.n_turns, self.eta(max(t - 1, 0)))

    def during(self, t: int, turn: int) -> Clock:
        """Return the clock when a turn of round `t` begins: later turns have older posteriors."""
        betas = (self._beta(t),) * turn + (self._beta(t - 1),) * (self.n_turns - turn)
        return Clock(t, betas, self.eta(t - 1))

    def _beta(self, t: int) -> float:
        """Return the inverse temperature of the E steps of round `t`."""
        return self.beta(max(t - 1 + self.n_initial_e_steps, 0))


def em(
    latent: Latent[Any, Theta, Any, SummaryOut],
    session: Session[Theta, Any, SummaryOut],
    *,
    eta: Schedule,
    beta: Schedule,
    max_iter: int,
    tol: float,
    patience: int | None = None,
    past: Past[Theta] | None = None,
    monitor: Monitor[SummaryOut] = ignore,
    keep: Keep[Theta] = ignore,
) -> Result[Theta]:
    """Run expectation-maximisation from the parameters of a session.

    A round visits every turn of the latent structure (for co-EM the views in their order: Bickel &
    Scheffer 2005, Table 1) with an M step on the posteriors at hand and an E step with the new
    parameters. That E step is done when the posteriors are next needed, which is in the next turn
    or at the end of the round.

    Parameters
    ----------
    latent : Latent
        The latent structure.
    session : Session
        The parameters to start from, the partitions and their states.
    eta, beta : Schedule
        Consensus weight of every round, and inverse temperature of every E step.
    max_iter : int
        Largest number of rounds, those of `past` included.
    tol, patience
        When to stop; see `Stopping`.
    past : Past, optional
        The rounds of a run that goes on; its parameters are those of the session.
    monitor : callable, optional
        Called after every round with its record and its summary.
    keep : callable, optional
        Called after every round with the parameters, the `Past` of the run, and whether the run
        is over. The rest of a run follows from these alone.
    """
    log: _Log[Theta] = _Log(Stopping(tol, patience, max(len(eta), len(beta))))
    n_initial_e_steps = int(session.theta.started) if past is None else past.n_initial_e_steps
    if past is not None:
        log.replay(past, session.theta)
    timer = _Timer(eta, beta, latent.n_turns, n_initial_e_steps)
    began = time.perf_counter()
    for t in range(len(log.history) + 1, max_iter + 1):
        if log.converged:
            break
        for turn in range(latent.n_turns):
            session.m_step(turn, timer.during(t, turn))
        clock = timer.after(t)
        summary = session.e_step(clock)
        value = latent.value(summary, session.theta)
        now = time.perf_counter()
        record = _record(clock, summary, value, now - began)
        began = now
        log.note(record, session.theta, latent.never_falls(clock, summary))
        monitor(record, summary)
        over = log.converged or t == max_iter
        keep(session.theta, log.past(session.theta, n_initial_e_steps), over)
    return log.result(session.theta, timer.after(len(log.history)))


def _record(clock: Clock, summary: Summary, value: Value, seconds: float) -> Round:
    return Round(
        clock.round,
        value.objective,
        value.free_energy,
        tuple(float(likelihood) for likelihood in summary.log_likelihood),
        summary.dissent,
        summary.agreement_rate,
        clock.eta,
        clock.betas[-1],
        seconds,
    )


def _total(record: Round) -> float:
    return sum(record.log_likelihood)
