"""The task that spherical k-means gives to the driver of runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np
from sklearn.utils import Bunch

from coem.em import Monitor, Past, Round
from coem.latent.block import Partition
from coem.latent.parted_sphere import PartedSphere, PartedState
from coem.latent.sphere import Concepts, Sphere, SphereState, SphereSummary, blanked
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
    labels: dict[int, Array] = field(default_factory=dict)  # the partitions of every run

    def start(self, run: Run[Concepts]) -> Array:
        """Return the concept vectors of the last view that a run starts from."""
        self.rounds[run.index] = Records()
        return self.draw(np.random.default_rng(self.seeds[run.index]))

    def last_clock(self, run: Run[Concepts]) -> Clock:
        """Return the clock at the end of a run."""
        return Clock(len(run.history), (1.0,) * self.latent.n_turns, 1.0)

    def monitor(self, run: Run[Concepts], phase: int) -> Monitor[SphereSummary]:
        """Return a function that keeps a record of every round."""

        def note(record: Round, summary: SphereSummary) -> None:
            values = zip(self.names, record.log_likelihood, strict=True)
            self.rounds[run.index].append(
                Bunch(
                    round=record.round,
                    objective=record.objective,
                    view_objective=dict(values),
                    agreement_rate=record.agreement_rate,
                    reseeded=[(self.names[m.view], m.cluster, m.row) for m in summary.moves],
                    seconds=record.seconds,
                )
            )

        return note


@dataclass
class WholeTask(SphereTask[SphereState]):
    """Restarts on rows in memory."""

    latent: Sphere
    part: Partition = field(kw_only=True)

    def open(
        self, run: Run[Concepts], phase: int, engine: Engine
    ) -> tuple[Session[Concepts, SphereState, SphereSummary], Past[Concepts] | None]:
        """Return a session that starts from drawn concept vectors."""
        return engine.open(self.latent, self.part, self.latent.begin(self.start(run))), None

    def finish(
        self,
        run: Run[Concepts],
        phase: int,
        session: Session[Concepts, SphereState, SphereSummary],
    ) -> None:
        """Compute the concept vectors of the best state, and its partitions."""
        assert run.result is not None
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
        """Return a session that starts from drawn concept vectors."""
        self.engines[run.index] = engine
        start = self.latent.begin(self.start(run))
        return engine.open_parts(self.latent, self.part.parts(), start), None

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
