"""Sessions over partitions that are stored: each is loaded, worked on, and let go.

Only the parameters, their statistics, and a few partitions are in memory at a time.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic

import numpy as np

from coem.engine.sessions import collect, look
from coem.protocols import (
    AdditiveLatent,
    Clock,
    Part,
    State,
    Stored,
    Sum,
    SummaryOut,
    Theta,
)

KEPT = 1 << 28  # bytes of states that a session keeps from one turn to the next


def read_ahead(stored: Sequence[Stored[Part]]) -> Iterator[Part]:
    """Yield partitions; while one is worked on, a thread loads the next."""
    with ThreadPoolExecutor(1, thread_name_prefix="coem-reader") as reader:
        coming = reader.submit(stored[0].load)
        for after in [*stored[1:], None]:
            part = coming.result()
            if after is not None:
                coming = reader.submit(after.load)
            yield part
            del part  # or two partitions would be there beside the one that comes


class StreamedSession(Generic[Part, Theta, State, SummaryOut, Sum]):
    """Rows in stored partitions, which are read one after the other in every step.

    The E step at the end of a round also gathers what the first M step of the next round needs, so
    that a round of a single posterior reads the rows once. With several posteriors, states are kept
    from turn to turn while they fit in memory; the others are inferred again.
    """

    def __init__(
        self,
        latent: AdditiveLatent[Part, Theta, State, SummaryOut, Sum],
        parts: Sequence[Stored[Part]],
        theta: Theta,
        room: int = KEPT,
    ) -> None:
        self.latent, self.parts, self.theta = latent, parts, theta
        self._kept: dict[int, State] = {}
        self._room = room if latent.n_turns > 1 else 0  # bytes
        self._next: tuple[Clock, Sum] | None = None  # what the first turn of a round learns from
        self._clock: Clock | None = None  # of the last step

    @property
    def states(self) -> list[State]:
        """The states of the partitions; an empty list before the first step."""
        clock = self._clock
        if clock is None:
            return []
        parts = enumerate(read_ahead(self.parts))
        return [self.latent.infer(part, self.theta, clock, self._kept.get(i)) for i, part in parts]

    def e_step(self, clock: Clock) -> SummaryOut:
        """Infer the states of all rows, and return their summary."""
        self._next, self._clock = None, clock  # frees old statistics before there are new ones
        summary: SummaryOut | None = None
        stats: Sum | None = None
        for i, part in enumerate(read_ahead(self.parts)):
            kept = self._kept.pop(i, None)
            state, summary = look(self.latent, part, self.theta, kept, clock, summary)
            stats = self.latent.gather(part, self.theta, 0, clock, state, stats)
            self._keep(i, state)
        assert stats is not None
        assert summary is not None
        self._next = clock, stats
        return summary

    def m_step(self, turn: int, clock: Clock) -> None:
        """Infer the states of all rows, unless that was done, and do the M step of a turn."""
        stats = self._gathered(clock) if turn == 0 else None
        self._next, self._clock = None, clock
        self.theta = self.latent.estimate(stats or self._gather(turn, clock), self.theta, turn)

    def _gathered(self, clock: Clock) -> Sum | None:
        """Return what the last E step gathered, if the clock has not changed it since."""
        if self._next is None:
            return None
        before, stats = self._next
        return stats if is_up_to_date(before, clock, self.latent.n_turns) else None

    def _gather(self, turn: int, clock: Clock) -> Sum:
        """Return the statistics of all rows for the M step of a turn."""
        total: Sum | None = None
        for i, part in enumerate(read_ahead(self.parts)):
            kept = self._kept.pop(i, None)
            state, total = collect(self.latent, part, self.theta, kept, turn, clock, total)
            self._keep(i, state)
        assert total is not None
        return total

    def _keep(self, i: int, state: State) -> None:
        """Keep a state for the next turn, if there is room for it."""
        if self._room and sum(map(n_bytes, self._kept.values())) + n_bytes(state) <= self._room:
            self._kept[i] = state


def n_bytes(state: Any) -> int:
    """Return what the arrays of a state take in memory, without the parameters behind it."""
    total = 0
    for value in vars(state).values():
        if isinstance(value, np.ndarray):
            total += value.nbytes
        elif hasattr(value, "__dict__"):  # labels in the place of responsibilities
            total += n_bytes(value)
    return total


def is_up_to_date(before: Clock, clock: Clock, n_turns: int) -> bool:
    """Return True if the first turn at `clock` learns what it would have learnt at `before`."""
    return clock.betas == before.betas and (clock.eta == before.eta or n_turns == 1)
