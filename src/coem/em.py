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
            if value > self._maxima.get(v, -float("inf")):
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


def em(
    model: Any,
    engine: Engine,
    data: Any,
    theta: Any,
    *,
    eta: Schedule,
    beta: Schedule,
    max_iter: int,
    tol: float,
    patience: int | None = None,
    monitor: Monitor = lambda record: None,
) -> Result:
    """Run expectation-maximisation from `theta`.

    A round visits every turn of the model (for co-EM the views in their order: Bickel & Scheffer
    2005, Table 1) with an M step on the posteriors at hand and an E step with the new parameters.
    That E step is done when the posteriors are next needed, which is the E step of the next turn.
    The i-th E step of a view has the i-th value of `beta`, the i-th round the i-th of `eta`.
    """
    stopping = Stopping(tol, patience, max(len(eta), len(beta)))
    ahead = 1 if theta.started else 0  # a start from parameters has an E step before round 1
    history: list[Round] = []
    best: tuple[float, Any, Round] | None = None
    fell, converged = 0.0, False
    clock = time.perf_counter()
    for t in range(max_iter + 1):
        heat, bond = beta(max(t - 1 + ahead, 0)), eta(max(t - 1, 0))
        summary = model.e_step(engine, data, theta, heat, bond)
        if t > 0:
            record = _record(t, summary, model.penalty(theta), bond, heat, clock)
            clock = time.perf_counter()
            fell = max(fell, _fall(model, history, record))
            history.append(record)
            monitor(record)
            better = best is None or _total(record) > best[0]
            if patience is not None and stopping.counts(record) and better:
                best = _total(record), theta, record
            converged = stopping.reached(record)
        if converged or t == max_iter:
            break
        for turn in range(model.n_turns):
            if turn > 0:
                model.refresh(engine, data, theta, turn - 1, beta(t + ahead))
            theta = theta.without(turn)  # frees a table before its successor is made
            theta = model.m_step(engine, data, theta, turn, eta(t))
    last = history[-1]
    if best is not None:
        _, theta, last = best
    return Result(theta, history, converged, last.objective, last.beta, fell)


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


def _fall(model: Any, history: list[Round], record: Round) -> float:
    """Return by how much the objective fell, relative, where theory says that it cannot."""
    if not model.monotone or not history or history[-1].beta != record.beta:
        return 0.0
    before = history[-1].objective
    return (before - record.objective) / max(abs(before), 1.0)
