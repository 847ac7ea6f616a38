"""The task that an aspect or a traffic model gives to the driver of runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from sklearn.utils import Bunch

from coem.em import Monitor, Past, Round
from coem.estimators._count_journal import Candidate, Journal, Theta, noted, recalled
from coem.io.checkpoint import Before
from coem.kernels.aspect import Pairs
from coem.latent.aspect import (
    AspectData,
    AspectSummary,
    divergence,
    log_likelihood,
    to_divergence,
)
from coem.latent.transitions import Link
from coem.protocols import Clock, Engine, Latent, Session
from coem.records import Records
from coem.run_coupling import RunCoupling
from coem.runs import Run, Task
from coem.schedules import Later
from coem.typing import CSR, Rng


class CountLatent(Latent[AspectData, Theta, Any, AspectSummary], Protocol[Theta]):
    """A latent structure for counts: `Aspect` or `TrafficFlow`."""

    @property
    def dtype(self) -> Any:
        """Precision of the parameters."""
        ...

    def random(self, pairs: Pairs, rng: Rng) -> Theta:
        """Return a random start."""
        ...


Couple = Callable[
    [Sequence[Theta], RunCoupling, CSR | None, int], tuple[list[Theta], Sequence[Link]]
]
"""Couples the parameters of all runs: (parameters, coupling, counts or None, its number)."""


@dataclass
class CountTask(Task[Theta, Any, AspectSummary]):
    """Runs of an aspect or a traffic model on the same counts."""

    latent: CountLatent[Theta]
    data: AspectData = field(kw_only=True)
    begin: Callable[[int], Theta] = field(kw_only=True)  # returns the start of a run
    couple_params: Couple[Theta] = field(kw_only=True)
    coupling: RunCoupling | None = None
    journals: dict[int, Journal[Theta]] = field(default_factory=dict)

    def open(
        self, run: Run[Theta], phase: int, engine: Engine
    ) -> tuple[Session[Theta, Any, AspectSummary], Past[Theta] | None]:
        """Return a session from a checkpoint, a start, the end of a phase, or a coupling."""
        stop = self.saved.load(run.index, phase) if self.saved else None
        if stop is not None:
            run.history, run.fell = list(stop.before.history), stop.before.fell
            self.journals[run.index] = recalled(stop.before)
            return engine.open(self.latent, self.data, stop.theta), stop.past
        if phase == 0:
            self.journals[run.index] = Journal(self.begin(run.index))
        journal = self.journals[run.index]
        theta = journal.take_start()
        journal.kl_before = divergence(self.data.pairs, theta)
        held_out = self._held_out(theta)
        if held_out is not None:
            journal.phase_start = Candidate(theta, np.nan, journal.kl_before, held_out)
        return engine.open(self.latent, self.data, theta), None

    def before(self, run: Run[Theta]) -> Before[Theta]:
        """Return what a run brings with it to its phase, with its journal."""
        return noted(super().before(run), self.journals[run.index])

    def _held_out(self, theta: Theta) -> float | None:
        """Return the log likelihood of the held-out counts, or None if there are none."""
        pairs = self.data.held_out
        return None if pairs is None else log_likelihood(pairs, theta)

    def monitor(self, run: Run[Theta], phase: int) -> Monitor[AspectSummary]:
        """Return a function that keeps a record of every round.

        The divergence is only known in rounds where beta is 1.
        """
        pairs, held_out = self.data.pairs, self.data.held_out

        def note(record: Round, summary: AspectSummary) -> None:
            value = None if held_out is None else sum(record.log_likelihood)
            self.journals[run.index].rounds.append(
                Bunch(
                    phase=phase,
                    round=record.round,
                    objective=record.objective,
                    kl=to_divergence(pairs, summary.evidence) if record.beta == 1 else None,
                    held_out=_per_count(value, held_out),
                    beta=record.beta,
                    seconds=record.seconds,
                )
            )

        return note

    def finish(
        self, run: Run[Theta], phase: int, session: Session[Theta, Any, AspectSummary]
    ) -> None:
        """Keep the best parameters, and a record of the phase."""
        journal, result = self.journals[run.index], run.result
        assert result is not None
        kl, held_out = divergence(self.data.pairs, result.theta), self._held_out(result.theta)
        end = Candidate(result.theta, result.objective, kl, held_out)
        start = journal.phase_start
        if start is not None and start.merit > end.merit:
            end = self._back_to_start(run, journal, start, session, end)
        journal.offer(end)
        journal.next_start, journal.phase_start = end.theta, None
        journal.phases.append(self._phase_record(run, phase, journal.kl_before, end))

    def _back_to_start(
        self,
        run: Run[Theta],
        journal: Journal[Theta],
        start: Candidate[Theta],
        session: Session[Theta, Any, AspectSummary],
        end: Candidate[Theta],
    ) -> Candidate[Theta]:
        """Return the start of a phase, if early stopping has found nothing better.

        While beta changes, the run goes on from `end`. The start is then only offered as the best.
        """
        assert run.result is not None
        theta, state = start.theta, next(iter(session.states), None)
        beta = Later(self.beta, len(run.history) - len(run.result.history))
        clock = Clock(0, (beta(0),), 1.0)
        state = self.latent.infer(self.data, theta, clock, state)
        summary = self.latent.summarise(self.data, theta, clock, state)
        start = replace(start, objective=self.latent.value(summary, theta).objective)
        journal.offer(start)
        return start if len(beta) == 0 else end

    def _phase_record(
        self, run: Run[Theta], phase: int, kl_before: float, end: Candidate[Theta]
    ) -> Bunch:
        """Return a record of one phase of a run."""
        assert run.result is not None
        return Bunch(
            run=run.index,
            phase=phase,
            kl_before=kl_before,
            kl=end.kl,
            objective=end.objective,
            held_out=_per_count(end.held_out, self.data.held_out),
            n_iter=len(run.result.history),
            converged=run.result.converged,
            seconds=sum(record.seconds for record in run.result.history),
        )

    def couple(self, runs: Sequence[Run[Theta]], number: int) -> Sequence[Link]:
        """Let every run take over what the others have learnt."""
        assert self.coupling is not None
        counts = self.data.pairs.matrix if self.coupling.needs_counts else None
        journals = [self.journals[run.index] for run in runs]
        before = [journal.take_start() for journal in journals]
        coupled, links = self.couple_params(before, self.coupling, counts, number)
        for run, journal, new in zip(runs, journals, coupled, strict=True):
            run.session = None  # a run goes on from its parameters alone
            journal.next_start = new
        return links

    @property
    def records(self) -> Records:
        """The phases of all runs, in the order of the phases."""
        by_phase = zip(*(self.journals[i].phases for i in range(self.n_runs)), strict=True)
        return Records(record for phase in by_phase for record in phase)


def _per_count(value: float | None, pairs: Pairs | None) -> float | None:
    """Return a log likelihood per count, or None if there are no counts."""
    return None if value is None or pairs is None or not pairs.total > 0 else value / pairs.total
