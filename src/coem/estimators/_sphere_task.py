"""The task that spherical k-means gives to the driver of runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from sklearn.utils import Bunch

from coem.em import Monitor, Past, Round
from coem.latent.block import Partition
from coem.latent.sphere import Concepts, Sphere, SphereState, SphereSummary, view_labels
from coem.protocols import Clock, Engine, Session
from coem.records import Records
from coem.runs import Run, Task
from coem.typing import Array, Rng

SphereSession = Session[Concepts, SphereState, SphereSummary]


@dataclass
class SphereTask(Task[Concepts, SphereState, SphereSummary]):
    """Restarts of spherical k-means."""

    latent: Sphere
    part: Partition = field(kw_only=True)
    draw: Callable[[Rng], Array] = field(kw_only=True)  # draws concept vectors of the last view
    seeds: Array = field(kw_only=True)
    names: Sequence[str] = field(kw_only=True)  # of the views
    rounds: dict[int, Records] = field(default_factory=dict)  # of every run
    labels: dict[int, Array] = field(default_factory=dict)  # the partitions of every run

    def open(
        self, run: Run[Concepts], phase: int, engine: Engine
    ) -> tuple[SphereSession, Past[Concepts] | None]:
        """Return a session that starts from drawn concept vectors."""
        self.rounds[run.index] = Records()
        start = self.latent.begin(self.draw(np.random.default_rng(self.seeds[run.index])))
        return engine.open(self.latent, self.part, start), None

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

    def finish(self, run: Run[Concepts], phase: int, session: SphereSession) -> None:
        """Compute the concept vectors of the best state, and its partitions."""
        assert run.result is not None
        (state,) = session.states
        theta = self.latent.with_arrays(self.part, run.result.theta, state)
        clock = Clock(len(run.history), (1.0,) * self.latent.n_turns, 1.0)
        state = self.latent.infer(self.part, theta, clock, state)
        self.labels[run.index] = view_labels(self.part, state)
        run.result = replace(run.result, theta=theta)
