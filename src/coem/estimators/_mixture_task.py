"""The task that a mixture gives to the driver of runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.utils import Bunch

from coem.coupling import average
from coem.em import Keep, Past, Result
from coem.initialise import Start
from coem.io.checkpoint import Checkpoint
from coem.latent.block import Partition
from coem.latent.mixture import Mixture, MixtureState, MixtureTheta
from coem.latent.shared_rows import couple_resp
from coem.latent.summaries import MixtureSummary
from coem.protocols import Engine, Session
from coem.records import Records
from coem.run_coupling import RunCoupling
from coem.runs import Phase, Run, Task, drive, each_run
from coem.schedules import Constant, Later, Schedule, max_rounds
from coem.typing import Array, Rng

MixtureSession = Session[MixtureTheta, MixtureState, MixtureSummary]
Draw = Callable[[Rng], Start]

N_COUPLINGS, N_ROUNDS = 3, 15  # docs/coupling-mixtures.md


@dataclass
class MixtureTask(Task[MixtureTheta, MixtureState, MixtureSummary]):
    """Runs of a mixture on one partition."""

    latent: Mixture
    part: Partition = field(kw_only=True)
    begin: Callable[[int], Start] = field(kw_only=True)  # returns the start of a run
    saved: Checkpoint | None = None
    coupling: RunCoupling | None = None
    look_on: Callable[[int], Keep[MixtureTheta]] | None = None  # for `coem.analysis`
    links: Records = field(default_factory=Records)
    coupled: dict[int, Array] = field(default_factory=dict)
    """The responsibilities from which each run starts its next phase, after a coupling."""

    def open(
        self, run: Run[MixtureTheta], phase: int, engine: Engine
    ) -> tuple[MixtureSession, Past[MixtureTheta] | None]:
        """Return a session from a checkpoint, from a start, or from a coupling."""
        kept = self.saved.load(run.index) if self.saved else None
        if kept is not None:
            return self._session(engine, Start(kept[0])), kept[1]
        if phase == 0:
            return self._session(engine, self.begin(run.index)), None
        return self._session(engine, Start(self.latent.unknown(), self.coupled[run.index])), None

    def _session(self, engine: Engine, start: Start) -> MixtureSession:
        # Keep no other name for the start: the session frees each old table before it makes a new
        # one.
        return engine.open_parts(self.latent, [self.part.starting_from(start.given)], start.theta)

    def keeper(self, run: Run[MixtureTheta]) -> Keep[MixtureTheta]:
        """Return a function that writes the checkpoint of a run, or the callback of `look_on`."""
        if self.saved:
            return self.saved.keep(run.index)
        return super().keeper(run) if self.look_on is None else self.look_on(run.index)

    def couple(self, runs: Sequence[Run[MixtureTheta]], number: int) -> None:
        """Let every run learn from the posteriors of the other runs."""
        assert self.coupling is not None
        resp = []
        for run in runs:
            assert run.session is not None
            resp.append(_joined([state.resp for state in run.session.states]))
            run.session = None  # frees its other posteriors
        empty = self.part.empty
        means = [average(own, empty) if len(own) > 1 else own[0] for own in resp]
        new, used = couple_resp(resp, self.coupling, self.part.row_weight(), number, means)
        self.coupled = dict(enumerate(new))
        self.links += [Bunch(coupling=number, **vars(link)) for link in used]

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


def draws_early(
    draw: Draw, seeds: Array, engine: Engine, saved: Checkpoint | None
) -> Callable[[int], Start]:
    """Draw the starts of all runs that have no checkpoint; return a function that returns them.

    These starts are small. What they are drawn from can be freed before the first round.
    """

    def begin(index: int) -> Start | None:
        return None if saved and saved.has(index) else draw(np.random.default_rng(seeds[index]))

    starts = each_run(engine, begin, len(seeds))

    def start_of(index: int) -> Start:
        start = starts[index]
        assert start is not None
        return start

    return start_of


def draws_late(draw: Draw, seeds: Array) -> Callable[[int], Start]:
    """Return a function that draws the start of a run when the run begins.

    Only one start at a time is then in memory.
    """
    return lambda index: draw(np.random.default_rng(seeds[index]))
