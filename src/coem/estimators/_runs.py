"""Several runs of an aspect or a traffic model, coupled now and then."""

import warnings
from dataclasses import dataclass, field, replace
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Bunch

from coem.checks import check_choice, check_dtype, check_number, check_workers
from coem.em import em
from coem.engine import LocalEngine
from coem.estimators._aspects import held_out_pairs
from coem.estimators._restarts import draw_seeds, each_run
from coem.kernels.aspect import Pairs
from coem.latent.aspect import AspectData, divergence, log_likelihood, to_divergence
from coem.latent.runs import RunCoupling
from coem.records import Records, progress
from coem.schedules import Constant, Later, as_schedule

DEAD = 1e-2  # a component that expects fewer non-zeros (of mean count) than this is reported


@dataclass(frozen=True)
class Plan:
    """What is to be done with every run: phases of EM, with a coupling between two phases."""

    name: str  # of the estimator
    couple: object  # function that couples the parameters of all runs
    coupling: object  # RunCoupling, or None: one phase
    rounds: int  # couplings
    beta: object  # Schedule
    max_iter: int  # of a phase
    tol: float
    patience: int | None
    verbose: int

    @classmethod
    def of(cls, estimator, size, couple, vias):
        """Return the plan of a fit from the parameters of an estimator, once they are checked."""
        for name in (size, "n_runs", "rounds", "max_iter", "patience"):
            check_number(name, getattr(estimator, name), Integral, 1)
        check_number("tol", estimator.tol, Real, 0)
        check_dtype(estimator.dtype)
        check_workers(estimator.n_jobs, None, estimator.verbose)
        beta = as_schedule(estimator.beta, "beta")
        if not beta.extremes()[0] > 0:
            raise ValueError("beta must be above 0: at 0 all components are alike; try 0.5")
        coupling = as_coupling(estimator.coupling, estimator.self_coupling, vias)
        if coupling is None and estimator.rounds > 1:
            raise ValueError(
                f"rounds={estimator.rounds} counts couplings, and there is none: set "
                f"coupling={vias[0]!r}, say, or leave rounds at 1"
            )
        return cls(
            type(estimator).__name__,
            couple,
            coupling,
            estimator.rounds,
            beta,
            estimator.max_iter,
            estimator.tol,
            None if estimator.validation is None else estimator.patience,
            estimator.verbose,
        )

    def check_runs(self, n_runs):
        """Refuse to couple a run that has no other."""
        if self.coupling is not None and not self.coupling.itself and n_runs < 2:
            raise ValueError(
                "coupling needs two runs: set n_runs to 2 or more, give a list of starts, or set "
                "self_coupling=True"
            )


def as_coupling(coupling, itself, vias):
    """Return the coupling of runs as a value, or None."""
    if not isinstance(itself, bool | np.bool_):
        raise ValueError(f"self_coupling must be True or False, got {itself!r}")
    if coupling is None:
        if itself:
            raise ValueError(
                f"self_coupling needs a coupling: choose one of {', '.join(map(repr, vias))}"
            )
        return None
    if not isinstance(coupling, RunCoupling):
        check_choice("coupling", coupling, vias)
        return RunCoupling(coupling, itself=bool(itself))
    check_choice("via of coupling", coupling.via, vias)
    return replace(coupling, itself=bool(coupling.itself or itself))


@dataclass(frozen=True)
class Found:
    """Parameters that a run may end with, and what is known of them."""

    theta: object  # AspectTheta or TrafficTheta
    objective: float
    kl: float
    held_out: float | None  # log likelihood of the held-out counts, if there are any

    @property
    def merit(self):
        """What the best run has most of."""
        return self.objective if self.held_out is None else self.held_out


@dataclass
class Run:
    """One run: where it is, what it went through, and what it would end with."""

    index: int
    theta: object  # AspectTheta or TrafficTheta
    data: AspectData
    history: Records = field(default_factory=Records)
    result: object = None  # of its last phase
    kept: Found | None = None

    @property
    def n_iter(self):
        """Iterations in all phases."""
        return len(self.history)

    @property
    def held_out(self):
        """Log likelihood of the held-out counts, or None."""
        pairs = self.data.held_out
        return None if pairs is None else log_likelihood(pairs, self.theta)

    def keep(self, found):
        """Keep what is best by the held-out counts; without any, what comes last."""
        if self.kept is None or found.held_out is None or found.held_out > self.kept.held_out:
            self.kept = found


@dataclass
class Outcome:
    """All runs after the last phase, a record of each after each phase, and the transitions."""

    runs: list
    records: Records
    links: Records

    @property
    def best(self):
        """The run that is kept."""
        return self.runs[int(np.argmax([run.kept.merit for run in self.runs]))]


def fit_runs(estimator, plan, model, counts, weight, given):
    """Take all runs through their phases and set what is told of them; return the best.

    `given` are the starts in the form that the kernels read, or None if they are to be drawn.
    """
    n_runs = estimator.n_runs if given is None else len(given)
    plan.check_runs(n_runs)
    names = getattr(estimator, "feature_names_in_", None)
    held_out = held_out_pairs(estimator.validation, counts.shape, names, model.dtype)
    seeds = draw_seeds(estimator.random_state, n_runs)
    with LocalEngine(estimator.n_jobs) as engine:
        pairs = Pairs.of(counts, weight, model.dtype)
        starts = given or [model.random(pairs, np.random.default_rng(seed)) for seed in seeds]
        outcome = run_all(model, pairs, held_out, starts, plan, engine)
    keep_best(estimator, plan, outcome)
    return outcome.best


def run_all(model, pairs, held_out, starts, plan, engine):
    """Take every run through its phases."""
    runs = [Run(index, theta, AspectData(pairs, held_out)) for index, theta in enumerate(starts)]
    outcome = Outcome(runs, Records(), Records())
    for phase in range(1 if plan.coupling is None else plan.rounds + 1):
        if phase > 0:
            outcome.links += _couple(runs, plan, pairs, phase)
        outcome.records += each_run(
            engine, lambda i, e, p=phase: _go_on(model, runs[i], p, plan, e), len(runs)
        )
    return outcome


def _go_on(model, run, phase, plan, engine):
    """Take one run through one phase, and return a record of it."""
    pairs, start, held_out = run.data.pairs, run.theta, run.held_out
    before = divergence(pairs, start)
    beta = Later(plan.beta, run.n_iter)  # never heated again (Lin 2006, Sec. 4.2)
    run.result = _climb(model, run, phase, plan, engine, beta)
    run.theta = run.result.theta
    end = Found(run.theta, run.result.objective, divergence(pairs, run.theta), run.held_out)
    if held_out is not None and held_out > end.held_out:
        # Early stopping may find nothing better than what the phase began with.
        summary = model.e_step(engine, run.data, start, beta(0), 1.0)
        first = Found(start, summary.objective + model.penalty(start), before, held_out)
        run.keep(first)
        if len(beta) == 0:  # who is being annealed does not turn back
            run.theta, end = start, first
    run.keep(end)
    return _phase(run, phase, before, end)


def _climb(model, run, phase, plan, engine, beta):
    """Run EM from where a run is, and take down every round."""
    write = progress(plan.verbose, f"[{plan.name}] run {run.index + 1}, phase {phase + 1},")

    def monitor(record):
        run.history.append(_round(record, phase, run.data))
        write(record)

    return em(
        model,
        engine,
        run.data,
        run.theta,
        eta=Constant(1.0),
        beta=beta,
        max_iter=plan.max_iter,
        tol=plan.tol,
        patience=plan.patience,
        monitor=monitor,
    )


def _phase(run, phase, before, end):
    """Return what is told of one phase."""
    return Bunch(
        run=run.index,
        phase=phase,
        kl_before=before,
        kl=end.kl,
        objective=end.objective,
        held_out=_per_count(end.held_out, run.data.held_out),
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


def _couple(runs, plan, pairs, phase):
    """Couple all runs, and return the transitions that were used."""
    counts = pairs.matrix if plan.coupling.needs_counts else None
    before = [run.theta.plain for run in runs]
    coupled, links = plan.couple(before, plan.coupling, counts, turn=phase - 1)
    for run, new in zip(runs, coupled, strict=True):
        run.theta = type(run.theta).of(new, run.theta.x.dtype)
    return [Bunch(coupling=phase - 1, **vars(link)) for link in links]


def keep_best(estimator, plan, outcome):
    """Set the fitted attributes that tell of the runs, and warn of what matters."""
    best = outcome.best
    estimator.runs_, estimator.transition_ = outcome.records, outcome.links
    estimator.best_run_, estimator.history_ = best.index, best.history
    estimator.kl_, estimator.objective_ = best.kept.kl, best.kept.objective
    estimator.n_iter_, estimator.converged_ = best.n_iter, best.result.converged
    if best.n_iter < len(plan.beta):
        warnings.warn(
            f"beta had come to {plan.beta(best.n_iter):.3g} when the iterations ended, and its "
            f"schedule takes {len(plan.beta)}: raise max_iter, or shorten the schedule",
            ConvergenceWarning,
            stacklevel=5,
        )
    elif plan.tol > 0 and not estimator.converged_:
        warnings.warn(
            f"no convergence after {plan.max_iter} iterations; raise max_iter or tol, or pass "
            "tol=0 to run a fixed number of iterations",
            ConvergenceWarning,
            stacklevel=5,
        )
    # Where every count is certain the objective is nothing but the rounding of their total.
    rounding = 1e-5 if best.kept.theta.x.dtype == np.float32 else 1e-9
    total = best.data.pairs.total / max(abs(best.result.objective), 1.0)
    if best.result.fell > rounding * max(total, 1.0):
        warnings.warn(
            f"the objective fell by {best.result.fell:.2g}, relative, where it cannot; "
            "dtype=np.float64 may help",
            RuntimeWarning,
            stacklevel=5,
        )


def warn_of_dead(weights, best, what):
    """Warn of components, or what they are called here, that no count belongs to."""
    n_counts = len(best.data.pairs.counts)
    dead = np.flatnonzero(weights * n_counts < DEAD)
    if len(dead) and n_counts:
        warnings.warn(
            f"{what} {dead.tolist()} of {len(weights)} died: no count belongs to them; use fewer "
            f"{what}",
            ConvergenceWarning,
            stacklevel=4,
        )
