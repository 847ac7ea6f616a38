"""The loop. There is one."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from coem.engine import Engine
from coem.schedules import Schedule


@dataclass(frozen=True)
class Round:
    """What is recorded of one round over all views."""

    round: int
    objective: float
    log_likelihood: tuple[float, ...]
    dissent: float
    agreement_rate: float
    eta: float
    beta: float
    seconds: float


Monitor = Callable[[Round], None]


@dataclass
class Stopping:
    """When a run has converged.

    With `patience` None, when the objective changes by less than `tol`, relative, over a round.
    With a number, when no view's log likelihood has reached a new maximum for so many rounds
    (Bickel & Scheffer 2004, Sec. 4.2). Neither counts before the schedules have settled.
    """

    tol: float
    patience: int | None
    settled: int
    _last: Round | None = None
    _maxima: dict[int, float] = field(default_factory=dict)
    _since: int = 0

    def reached(self, record: Round) -> bool:
        """Take note of a round, and tell if it was the last one."""
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
        """Tell if the schedules had settled: earlier rounds have another objective."""
        return record.round > self.settled

    def _new_maximum(self, record: Round) -> bool:
        better = False
        for v, value in enumerate(record.log_likelihood):
            known = self._maxima.get(v, -float("inf"))
            # By more than rounding, or two states taking turns would never end.
            if value > known + 1e-12 * abs(value):
                self._maxima[v] = value
                better = True
        return better


@dataclass(frozen=True)
class Result:
    """Parameters, and how they came about."""

    theta: Any
    history: list[Round]
    converged: bool
    objective: float
    beta: float  # of the posterior that goes with theta
    fell: float  # largest fall of the objective, relative, that theory does not allow


@dataclass(frozen=True)
class State:
    """Where a run is at the end of a round: all that it needs to go on from there."""

    theta: Any
    history: list[Round]
    best: Any = None  # with patience, the best parameters so far, if they are not `theta`
    ahead: int = 0  # 1 if there was an E step before the first round


Keep = Callable[[State, bool], None]


@dataclass
class _Log:
    """The rounds of a run, and what follows from them."""

    stopping: Stopping
    monotone: bool
    history: list[Round] = field(default_factory=list)
    best: tuple[Any, Round] | None = None  # only with patience: old tables are to be freed
    converged: bool = False
    fell: float = 0.0

    def note(self, record: Round, theta: Any) -> None:
        """Take note of a round."""
        self.fell = max(self.fell, self._fall(record))
        self.history.append(record)
        better = self.best is None or _total(record) > _total(self.best[1])
        if self.stopping.patience is not None and self.stopping.counts(record) and better:
            self.best = theta, record
        self.converged = self.stopping.reached(record)

    def replay(self, state: State) -> None:
        """Take note of the rounds of a run that goes on."""
        for record in state.history:
            self.note(record, state.theta)
        if self.best is not None and state.best is not None:
            self.best = state.best, self.best[1]

    def state(self, theta: Any, ahead: int) -> State:
        """Return what a run needs to go on from here."""
        best = None if self.best is None or self.best[0] is theta else self.best[0]
        return State(theta, self.history, best, ahead)

    def result(self, theta: Any) -> Result:
        """Return the parameters, and how they came about."""
        last = self.history[-1]
        theta, last = (theta, last) if self.best is None else self.best
        return Result(theta, self.history, self.converged, last.objective, last.beta, self.fell)

    def _fall(self, record: Round) -> float:
        """Return by how much the objective fell, relative, where theory says that it cannot."""
        if not self.monotone or not self.history or self.history[-1].beta != record.beta:
            return 0.0
        before = self.history[-1].objective
        return (before - record.objective) / max(abs(before), 1.0)


def em(
    model: Any,
    engine: Engine,
    data: Any,
    start: Any,
    *,
    eta: Schedule,
    beta: Schedule,
    max_iter: int,
    tol: float,
    patience: int | None = None,
    monitor: Monitor = lambda record: None,
    keep: Keep = lambda state, last: None,
) -> Result:
    """Run expectation-maximisation from parameters, or from the `State` of a run that goes on.

    A round visits every turn of the model (for co-EM the views in their order: Bickel & Scheffer
    2005, Table 1) with an M step on the posteriors at hand and an E step with the new parameters.
    That E step is done when the posteriors are next needed, which is the E step of the next turn.
    The i-th E step of a view has the i-th value of `beta`, the i-th round the i-th of `eta`.
    After every round `monitor` is told of it, and `keep` is given the state; the rest of a run
    follows from that alone.
    """
    log = _Log(Stopping(tol, patience, max(len(eta), len(beta))), model.monotone)
    # A start from parameters has an E step before round 1.
    state = start if isinstance(start, State) else State(start, [], ahead=int(start.started))
    log.replay(state)
    theta, ahead = state.theta, state.ahead
    del start, state  # the loop frees a table before it makes the next one
    clock = time.perf_counter()
    for t in range(len(log.history), max(max_iter, len(log.history)) + 1):
        heat, bond = beta(max(t - 1 + ahead, 0)), eta(max(t - 1, 0))
        summary = model.e_step(engine, data, theta, heat, bond)
        if t > len(log.history):
            record = _record(t, summary, model.penalty(theta), bond, heat, clock)
            clock = time.perf_counter()
            log.note(record, theta)
            monitor(record)
            keep(log.state(theta, ahead), log.converged or t == max_iter)
        if log.converged or t >= max_iter:
            break
        for turn in range(model.n_turns):
            if turn > 0:
                model.refresh(engine, data, theta, turn - 1, beta(t + ahead))
            theta = theta.without(turn)  # frees a table before its successor is made
            theta = model.m_step(engine, data, theta, turn, eta(t))
    return log.result(theta)


def _record(t: int, summary: Any, penalty: float, eta: float, beta: float, clock: float) -> Round:
    return Round(
        t,
        summary.objective + penalty,
        tuple(float(value) for value in summary.log_likelihood),
        summary.dissent,
        summary.agreement_rate,
        eta,
        beta,
        time.perf_counter() - clock,
    )


def _total(record: Round) -> float:
    return sum(record.log_likelihood)
