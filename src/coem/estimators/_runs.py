"""Several runs of an aspect model, coupled now and then."""

from dataclasses import dataclass, field

import numpy as np
from sklearn.utils import Bunch

from coem.em import em
from coem.engine import LocalEngine
from coem.estimators._records import Records, progress
from coem.latent.aspect import (
    AspectData,
    AspectTheta,
    divergence,
    log_likelihood,
    to_divergence,
)
from coem.latent.runs import couple_runs
from coem.schedules import Constant, Later


@dataclass(frozen=True)
class Plan:
    """What is to be done with every run: phases of EM, with a coupling between two phases."""

    coupling: object  # RunCoupling, or None: one phase
    rounds: int  # couplings
    beta: object  # Schedule
    max_iter: int  # of a phase
    tol: float
    patience: int | None
    verbose: int


@dataclass
class Run:
    """One run: where it is, and what it went through."""

    index: int
    theta: AspectTheta
    data: AspectData
    history: Records = field(default_factory=Records)
    result: object = None  # of its last phase

    @property
    def n_iter(self):
        """Iterations in all phases."""
        return len(self.history)

    @property
    def held_out(self):
        """Log likelihood of the held-out counts, or None."""
        pairs = self.data.held_out
        return None if pairs is None else log_likelihood(pairs, self.theta)

    @property
    def merit(self):
        """What the best run has most of."""
        return self.result.objective if self.data.held_out is None else self.held_out


@dataclass
class Outcome:
    """All runs after the last phase, a record of each after each phase, and the transitions."""

    runs: list
    records: Records
    links: Records

    @property
    def best(self):
        """The run that is kept."""
        return self.runs[int(np.argmax([run.merit for run in self.runs]))]


def run_all(model, pairs, held_out, starts, plan, engine):
    """Take every run through its phases."""
    runs = [Run(index, theta, AspectData(pairs, held_out)) for index, theta in enumerate(starts)]
    outcome = Outcome(runs, Records(), Records())
    for phase in range(1 if plan.coupling is None else plan.rounds + 1):
        if phase > 0:
            outcome.links += _couple(runs, plan.coupling, pairs, phase)
        outcome.records += _each(
            runs, engine, lambda run, e, p=phase: _go_on(model, run, p, plan, e)
        )
    return outcome


def _each(runs, engine, work):
    """Return what `work` does with every run, on the threads of the engine."""
    if len(runs) >= engine.n_workers > 1:
        # One thread a run: the bits are those of one run after another.
        serial = LocalEngine(1)
        return engine.map(lambda run: work(run, serial), runs)
    return [work(run, engine) for run in runs]


def _go_on(model, run, phase, plan, engine):
    """Take one run through one phase, and return a record of it."""
    pairs = run.data.pairs
    before = divergence(pairs, run.theta)
    label = f"[AspectModel] run {run.index + 1}, phase {phase + 1},"
    write = progress(plan.verbose, label)

    def monitor(record):
        run.history.append(_round(record, phase, run.data))
        write(record)

    run.result = em(
        model,
        engine,
        run.data,
        run.theta,
        eta=Constant(1.0),
        beta=Later(plan.beta, run.n_iter),  # never heated again (Lin 2006, Sec. 4.2)
        max_iter=plan.max_iter,
        tol=plan.tol,
        patience=plan.patience,
        monitor=monitor,
    )
    run.theta = run.result.theta
    return Bunch(
        run=run.index,
        phase=phase,
        kl_before=before,
        kl=divergence(pairs, run.theta),
        objective=run.result.objective,
        held_out=_per_count(run.held_out, run.data.held_out),
        n_iter=len(run.result.history),
        converged=run.result.converged,
        seconds=sum(record.seconds for record in run.result.history),
    )


def _round(record, phase, data):
    """Return what is told of one round; the divergence is known where beta is 1."""
    kl = to_divergence(data.pairs, data.cache.evidence) if record.beta == 1 else None
    held_out = None if data.held_out is None else sum(record.log_likelihood)
    return Bunch(
        phase=phase,
        round=record.round,
        objective=record.objective,
        kl=kl,
        held_out=_per_count(held_out, data.held_out),
        beta=record.beta,
        seconds=record.seconds,
    )


def _per_count(value, pairs):
    return None if value is None or not pairs.total > 0 else value / pairs.total


def _couple(runs, coupling, pairs, phase):
    """Couple all runs, and return the transitions that were used."""
    counts = pairs.matrix if coupling.needs_counts else None
    aspects = [run.theta.aspects for run in runs]
    coupled, links = couple_runs(aspects, coupling, counts, turn=phase - 1)
    for run, new in zip(runs, coupled, strict=True):
        run.theta = AspectTheta.of(new, run.theta.x.dtype)
    return [Bunch(coupling=phase - 1, **vars(link)) for link in links]
