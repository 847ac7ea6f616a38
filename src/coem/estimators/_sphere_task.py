"""The task that spherical k-means gives to the driver of runs."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np
from sklearn.utils import Bunch

from coem.em import Monitor, Past, Round
from coem.engine.sessions import WholeSession
from coem.io.checkpoint import Before, Stop
from coem.latent.block import Partition
from coem.latent.parted_sphere import PartedSphere, PartedState
from coem.latent.sphere import Concepts, Move, Sphere, SphereState, SphereSummary, blanked
from coem.latent.stored import StoredRows
from coem.protocols import Clock, Engine, Session
from coem.records import Records
from coem.runs import Run, Task
from coem.typing import Array, Rng

StateT = TypeVar("StateT", SphereState, PartedState)


@dataclass
class SphereTask(Task[Concepts, StateT, SphereSummary], Generic[StateT]):
    """Restarts of spherical k-means."""

    draw: Callable[[Rng], Array] = field(kw_only=True)  # draws concept vectors of the last view
    seeds: Array = field(kw_only=True)
    names: Sequence[str] = field(kw_only=True)  # of the views
    rounds: dict[int, Records] = field(default_factory=dict)  # of every run
    moves: dict[int, list[tuple[Move, ...]]] = field(default_factory=dict)  # in every round
    labels: dict[int, Array] = field(default_factory=dict)  # the partitions of every run

    def start(self, run: Run[Concepts]) -> Array:
        """Return the concept vectors of the last view that a run starts from."""
        self._take_note(run, [], [])
        return self.draw(np.random.default_rng(self.seeds[run.index]))

    def stop(self, run: Run[Concepts]) -> Stop[Concepts] | None:
        """Return where a run was when the fit was stopped, or None, and recall its rounds."""
        stop = self.saved.load(run.index) if self.saved else None
        if stop is not None:
            with self.explained(run):
                self._take_note(run, stop.past.history, _moves(stop, len(self.names)))
        return stop

    def explained(self, run: Run[Concepts]) -> AbstractContextManager[None]:
        """Say what to do if the file of a run does not hold what it should."""
        assert self.saved is not None
        return self.saved.explained(run.index)

    def _take_note(
        self,
        run: Run[Concepts],
        rounds: Sequence[Round],
        moves: Sequence[tuple[Move, ...]],
    ) -> None:
        """Begin the records of a run with some rounds, and the rows that were moved in each."""
        self.moves[run.index] = list(moves)
        pairs = zip(rounds, moves, strict=True)
        self.rounds[run.index] = Records(self._record(*pair) for pair in pairs)

    def _record(self, record: Round, moves: Sequence[Move]) -> Bunch:
        """Return the record of a round."""
        values = zip(self.names, record.log_likelihood, strict=True)
        return Bunch(
            round=record.round,
            objective=record.objective,
            view_objective=dict(values),
            agreement_rate=record.agreement_rate,
            reseeded=[(self.names[m.view], m.cluster, m.row) for m in moves],
            seconds=record.seconds,
        )

    def before(self, run: Run[Concepts]) -> Before[Concepts]:
        """Return what a run brings with it: also the rows that were moved in every round."""
        moves = [[list(move) for move in each] for each in self.moves[run.index]]
        return replace(super().before(run), notes={"moves": moves})

    def last_clock(self, run: Run[Concepts]) -> Clock:
        """Return the clock at the end of a run."""
        return Clock(len(run.history), (1.0,) * self.latent.n_turns, 1.0)

    def monitor(self, run: Run[Concepts], phase: int) -> Monitor[SphereSummary]:
        """Return a function that keeps a record of every round."""

        def note(record: Round, summary: SphereSummary) -> None:
            self.moves[run.index].append(summary.moves)
            self.rounds[run.index].append(self._record(record, summary.moves))

        return note


@dataclass
class WholeTask(SphereTask[SphereState]):
    """Restarts on rows in memory."""

    latent: Sphere
    part: Partition = field(kw_only=True)
    sessions: dict[int, Session[Concepts, SphereState, SphereSummary]] = field(
        default_factory=dict
    )  # of the runs under way

    def open(
        self, run: Run[Concepts], phase: int, engine: Engine
    ) -> tuple[Session[Concepts, SphereState, SphereSummary], Past[Concepts] | None]:
        """Return a session from a checkpoint, or from drawn concept vectors."""
        stop = self.stop(run)
        session: Session[Concepts, SphereState, SphereSummary]
        if stop is None:
            session = engine.open(self.latent, self.part, self.latent.begin(self.start(run)))
        else:
            with self.explained(run):
                state = self.latent.restored(self.part, stop.theta, stop.before.arrays)
            session = WholeSession(self.latent, self.part, stop.theta, state)
        self.sessions[run.index] = session
        return session, None if stop is None else stop.past

    def before(self, run: Run[Concepts]) -> Before[Concepts]:
        """Return what a run brings with it: also the sums of its clusters."""
        (state,) = self.sessions[run.index].states
        return replace(super().before(run), arrays=state.kept())

    def finish(
        self,
        run: Run[Concepts],
        phase: int,
        session: Session[Concepts, SphereState, SphereSummary],
    ) -> None:
        """Compute the concept vectors of the best state, and its partitions."""
        assert run.result is not None
        del self.sessions[run.index]
        (state,) = session.states
        theta = self.latent.with_arrays(self.part, run.result.theta, state)
        state = self.latent.infer(self.part, theta, self.last_clock(run), state)
        self.labels[run.index] = blanked(self.part, state.labels)
        run.result = replace(run.result, theta=theta)


@dataclass
class StoredTask(SphereTask[PartedState]):
    """Restarts on the rows of a corpus."""

    latent: PartedSphere
    part: StoredRows = field(kw_only=True)
    engines: dict[int, Engine] = field(default_factory=dict)  # of every run

    def open(
        self, run: Run[Concepts], phase: int, engine: Engine
    ) -> tuple[Session[Concepts, PartedState, SphereSummary], Past[Concepts] | None]:
        """Return a session from a checkpoint, or from drawn concept vectors."""
        self.engines[run.index] = engine
        stop = self.stop(run)
        theta = self.latent.begin(self.start(run)) if stop is None else stop.theta
        session = engine.open_parts(self.latent, self.part.parts(), theta)
        return session, None if stop is None else stop.past

    def finish(
        self,
        run: Run[Concepts],
        phase: int,
        session: Session[Concepts, PartedState, SphereSummary],
    ) -> None:
        """Compute the partitions of the best concept vectors."""
        assert run.result is not None
        theta, clock = run.result.theta, self.last_clock(run)

        def labels(part: Partition) -> Array:
            return blanked(part, list(self.latent.infer(part, theta, clock, None).labels))

        found = self.engines[run.index].each_part(labels, self.part.parts())
        self.labels[run.index] = np.concatenate(list(found))


def _moves(stop: Stop[Concepts], n_views: int) -> list[tuple[Move, ...]]:
    """Return the rows that a run has moved in every round; raise ValueError if it tells none."""
    moves = [tuple(Move(*map(int, move)) for move in each) for each in stop.before.notes["moves"]]
    if len(moves) != len(stop.past.history):
        raise ValueError("it tells of other rounds")
    if not all(0 <= move.view < n_views for each in moves for move in each):
        raise ValueError("it tells of other views")
    return moves
