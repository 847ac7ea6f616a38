"""The task that a mixture gives to the driver of runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from coem.coupling import average
from coem.em import Keep, Result
from coem.estimators._restarts import RestartTask
from coem.initialise import Start
from coem.latent.block import Partition
from coem.latent.mixture import Mixture, MixtureState, MixtureTheta
from coem.latent.shared_rows import couple_resp
from coem.latent.summaries import MixtureSummary
from coem.latent.transitions import Link
from coem.protocols import Engine, Session
from coem.records import Records
from coem.run_coupling import RunCoupling
from coem.runs import Phase, Run, drive
from coem.schedules import Constant, Later, Schedule, max_rounds
from coem.typing import Array

MixtureSession = Session[MixtureTheta, MixtureState, MixtureSummary]

N_COUPLINGS, N_ROUNDS = 3, 15  # docs/coupling-mixtures.md


@dataclass
class MixtureTask(RestartTask[MixtureTheta, MixtureState, MixtureSummary, Partition]):
    """Runs of a mixture on one partition."""

    latent: Mixture
    coupling: RunCoupling | None = None
    look_on: Callable[[int], Keep[MixtureTheta]] | None = None  # for `coem.analysis`
    coupled: dict[int, Array] = field(default_factory=dict)
    """The responsibilities from which each run starts its next phase, after a coupling."""

    def first(self, run: Run[MixtureTheta], phase: int) -> Start[MixtureTheta]:
        """Return the start of a run, or what a coupling has left it with."""
        if phase == 0:
            return super().first(run, phase)
        return Start(self.latent.unknown(), self.coupled[run.index])

    def keeper(self, run: Run[MixtureTheta]) -> Keep[MixtureTheta]:
        """Return a function that writes the checkpoint of a run, or the callback of `look_on`."""
        if self.saved or self.look_on is None:
            return super().keeper(run)
        return self.look_on(run.index)

    def couple(self, runs: Sequence[Run[MixtureTheta]], number: int) -> Sequence[Link]:
        """Let every run learn from the posteriors of the other runs."""
        assert self.coupling is not None
        resp = []
        for run in runs:
            resp.append(_joined([np.asarray(state.resp) for state in _states(run)]))
            run.session = None  # frees its other posteriors
        assert isinstance(self.part, Partition)  # rows of a corpus are not coupled
        empty = self.part.empty
        means = [average(own, empty) if len(own) > 1 else own[0] for own in resp]
        new, used = couple_resp(resp, self.coupling, self.part.row_weight(), number, means)
        self.coupled = dict(enumerate(new))
        return used

    def rerun(self, index: int, beta: float, engine: Engine) -> Result[MixtureTheta]:
        """Repeat one run from the same start at a constant inverse temperature."""
        once = replace(
            self,
            n_runs=1,
            beta=Constant(beta),
            begin=lambda _: self.begin(index),
            saved=None,
            look_on=None,
            links=Records(),
        )
        (run,) = drive(once, engine)
        return run.end


def _states(run: Run[MixtureTheta]) -> Sequence[MixtureState]:
    """Return the posteriors at the end of a phase; a run from a checkpoint makes them again."""
    assert run.session is not None
    assert run.result is not None
    if not run.session.states:
        run.session.e_step(run.result.clock)
    states: Sequence[MixtureState] = run.session.states
    return states


def _joined(parts: Sequence[Array]) -> Array:
    """Return the responsibilities (n_slots, n, k) of all partitions."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def phases_of(
    coupling: RunCoupling | None,
    eta: Schedule,
    beta: Schedule,
    max_iter: int | None,
    tol: float,
    patience: int | None,
) -> list[Phase]:
    """Return the phases of a fit: a fixed number of rounds before each coupling, then the last.

    `max_iter`, `tol` and `patience` are for the last phase.
    """
    if coupling is None:
        return [Phase(max_rounds(max_iter, eta, beta), tol, patience)]
    n_couplings = coupling.n_couplings or N_COUPLINGS
    n_rounds = coupling.n_rounds or N_ROUNDS
    n_before = n_couplings * n_rounds
    n_last = max_rounds(max_iter, Later(eta, n_before), Later(beta, n_before))
    return [Phase(n_rounds, 0.0, None)] * n_couplings + [Phase(n_last, tol, patience)]
