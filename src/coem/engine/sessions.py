"""Sessions in this process: one partition on a fast path, or several whose statistics are added."""

from collections.abc import Callable, Sequence
from typing import Any, Generic

from coem.protocols import (
    AdditiveLatent,
    Clock,
    Latent,
    Part,
    State,
    Sum,
    SummaryOut,
    Theta,
)


class WholeSession(Generic[Part, Theta, State, SummaryOut]):
    """All rows in one partition: no statistics are kept, and tables are freed early."""

    def __init__(
        self,
        latent: Latent[Part, Theta, State, SummaryOut],
        part: Part,
        theta: Theta,
        state: State | None = None,
    ) -> None:
        self.latent, self.part = latent, part
        self.theta = theta
        self._state = state

    @property
    def states(self) -> list[State]:
        """The state of the one partition; an empty list before the first step."""
        return [] if self._state is None else [self._state]

    def e_step(self, clock: Clock) -> SummaryOut:
        """Bring the state up to date, and return the summary of all rows."""
        self._state = state = self.latent.infer(self.part, self.theta, clock, self._state)
        return self.latent.summarise(self.part, self.theta, clock, state)

    def m_step(self, turn: int, clock: Clock) -> None:
        """Bring the state up to date, and do the M step of a turn."""
        self._state = state = self.latent.infer(self.part, self.theta, clock, self._state)
        # No other name holds the parameters here: what `without` drops is freed before the new
        # table is made.
        self.theta = self.theta.without(turn)
        self.theta = self.latent.maximise(self.part, self.theta, turn, clock, state)


class PartedSession(Generic[Part, Theta, State, SummaryOut, Sum]):
    """Rows in several partitions, one after the other; their statistics are added in that order.

    `call` runs a function of this module on its arguments, here or elsewhere.
    """

    def __init__(
        self,
        latent: AdditiveLatent[Part, Theta, State, SummaryOut, Sum],
        parts: Sequence[Part],
        theta: Theta,
        call: Callable[..., Any] = lambda function, *args: function(*args),
    ) -> None:
        self.latent, self.parts, self.theta, self.call = latent, parts, theta, call
        self._states: list[State | None] = [None] * len(parts)
        self._clock: Clock | None = None  # of the last step

    @property
    def states(self) -> list[State]:
        """The states of the partitions; an empty list before the first step.

        A state that was lost is made again.
        """
        if self._clock is None:
            return []
        for i, part in enumerate(self.parts):
            if self._states[i] is None:
                self._states[i] = self.latent.infer(part, self.theta, self._clock, None)
        return [state for state in self._states if state is not None]

    def e_step(self, clock: Clock) -> SummaryOut:
        """Bring all states up to date, and return the summary of all rows."""
        self._clock = clock
        summary: SummaryOut = self._sum(look, clock)
        return summary

    def m_step(self, turn: int, clock: Clock) -> None:
        """Bring all states up to date, and do the M step of a turn."""
        self._clock = clock
        stats = self._sum(collect, turn, clock)
        self.theta = self.latent.estimate(stats, self.theta, turn)

    def _sum(self, work: Callable[..., Any], *args: Any) -> Any:
        """Return what work on every partition adds to nothing; keep the states."""
        total: Any = None
        for i, part in enumerate(self.parts):
            call = work, self.latent, part, self.theta, self._states[i], *args, total
            self._states[i], total = self.call(*call)
        return total


def look(
    latent: Latent[Part, Theta, State, SummaryOut],
    part: Part,
    theta: Theta,
    state: State | None,
    clock: Clock,
    total: Any = None,
) -> tuple[State, SummaryOut]:
    """Return the new state of a partition, and what it says of the rows, added to `total`."""
    state = latent.infer(part, theta, clock, state)
    seen = latent.summarise(part, theta, clock, state)
    return state, seen if total is None else total + seen


def collect(
    latent: AdditiveLatent[Part, Theta, State, Any, Sum],
    part: Part,
    theta: Theta,
    state: State | None,
    turn: int,
    clock: Clock,
    total: Sum | None = None,
) -> tuple[State, Sum]:
    """Return the new state of a partition, and its statistics for a turn, added to `total`."""
    state = latent.infer(part, theta, clock, state)
    return state, latent.gather(part, theta, turn, clock, state, total)
