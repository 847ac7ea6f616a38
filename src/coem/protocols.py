"""What the loop, the latent structures and the engines expect of each other. Read this first.

`em.em` is the only loop. It knows a *latent structure* (what is hidden, and how it is inferred and
estimated) and a *session* (the parameters, the partitions of the data and their states, in the
hands of an engine), and of both no more than this file says.

A round goes through these seams::

    em ── m_step(turn, clock) ─▶ Session ── infer, then maximise ────────▶ Latent   one partition
                                         ── infer, gather, ─┐              Additive several
                                            which adds up   │
                                            estimate ◀──────┘
       ── e_step(clock) ───────▶ Session ── infer, summarise ────────────▶ Latent
       ── value(summary, theta) ─────────────────────────────────────────▶ Latent

State is returned and never written from a distance: `infer` takes a partition, the parameters, the
clock and the partition's last state, and returns the new state. It must give the same result when
the last state is None. So an engine may keep a state, move it, or lose it and have it made again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

Part = TypeVar("Part")
Theta = TypeVar("Theta", bound="Parameters")
State = TypeVar("State")
Sum = TypeVar("Sum", bound="Additive")
Item = TypeVar("Item")
Result = TypeVar("Result")

PartIn = TypeVar("PartIn", contravariant=True)
PartCo = TypeVar("PartCo", covariant=True)
SummaryOut = TypeVar("SummaryOut", bound="Summary")
SummaryCo = TypeVar("SummaryCo", bound="Summary", covariant=True)
StateCo = TypeVar("StateCo", covariant=True)
ThetaCo = TypeVar("ThetaCo", bound="Parameters", covariant=True)


@dataclass(frozen=True)
class Clock:
    """The time of a run. A state follows from its partition, the parameters and the clock.

    Attributes
    ----------
    round : int
        The current round; 0 before the first one.
    betas : tuple of float
        For each turn, the inverse temperature of its latest E step.
    eta : float
        The consensus weight of the round.
    """

    round: int
    betas: tuple[float, ...]
    eta: float


class Parameters(Protocol):
    """Parameters of a latent structure. They are passed in and returned, never changed."""

    @property
    def started(self) -> bool:
        """True if every turn has parameters. Until then a start is in the partition."""
        ...

    def without(self, turn: int) -> Self:
        """Return the parameters that the M step of a turn still needs.

        The others can be freed before their successors are made.
        """
        ...


class Additive(Protocol):
    """Statistics and summaries: ``a + b`` are those of the rows of `a` and of `b`.

    Statistics can be as large as the parameters. So `AdditiveLatent.gather` adds to a total.
    """

    def __add__(self, other: Self, /) -> Self:
        """Return the sum."""
        ...


class Statistics(Additive, Protocol):
    """Statistics of rows with weights."""

    def scaled(self, factor: float) -> Self:
        """Return those of the same rows, each with `factor` times its weight."""
        ...


class Summary(Protocol):
    """What an E step says of rows, for the record of a round."""

    @property
    def log_likelihood(self) -> Iterable[float]:
        """Log likelihood of each view, or one for all views together."""
        ...

    @property
    def dissent(self) -> float:
        """How much the views disagree, in nats (Bickel & Scheffer 2005, Eq. 10)."""
        ...

    @property
    def agreement_rate(self) -> float:
        """Share of the rows on which the views agree."""
        ...


class Value(NamedTuple):
    """What parameters are worth; larger is better.

    The *objective* is what a run reports and what ends it. The *free energy* is what the steps of
    EM maximise one after the other: it is the quantity that cannot fall (see `never_falls`). The
    two are the same wherever all views share one posterior.
    """

    objective: float
    free_energy: float


class Partition(Protocol):
    """Rows, and what is known about them. An engine decides where it lives."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    def cut(self, bounds: Sequence[int]) -> Sequence[Self]:
        """Return the partitions between the given rows, without copying."""
        ...


@runtime_checkable
class Stored(Protocol[PartCo]):
    """A partition that is kept elsewhere until it is needed: in a file, or on another machine.

    It is small and can be pickled. An engine loads it where it works on it, as often as it likes.
    """

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    def load(self) -> PartCo:
        """Return the partition."""
        ...


@runtime_checkable
class OnWorker(Protocol[PartCo]):
    """A stored partition whose rows are on a worker of a cluster.

    Engines of that cluster make the partition there.
    """

    @property
    def block(self) -> Any:
        """The future of the rows."""
        ...

    @property
    def maker(self) -> Callable[[Any], PartCo]:
        """A function from the rows to the partition, which can be pickled."""
        ...


class Latent(Protocol[PartIn, Theta, State, SummaryOut]):
    """A latent structure: all that the loop asks for, if one partition holds all rows."""

    @property
    def n_turns(self) -> int:
        """Number of M steps in a round; for co-EM one per view."""
        ...

    def infer(self, part: PartIn, theta: Theta, clock: Clock, state: State | None) -> State:
        """Return the state of a partition under `theta`: the E step of all that is stale.

        The memory of the given state may be used again; do not read it after the call.
        """
        ...

    def summarise(self, part: PartIn, theta: Theta, clock: Clock, state: State) -> SummaryOut:
        """Return what the state says of the rows."""
        ...

    def maximise(self, part: PartIn, theta: Theta, turn: int, clock: Clock, state: State) -> Theta:
        """Return the parameters after the M step of a turn on all rows.

        Only what ``theta.without(turn)`` keeps may be read of `theta`.
        """
        ...

    def value(self, summary: SummaryOut, theta: Theta) -> Value:
        """Return what `theta` is worth for the summary of all rows, log priors included."""
        ...

    def never_falls(self, clock: Clock, summary: SummaryOut) -> bool:
        """Return True if theory says that the free energy cannot fall at a fixed clock."""
        ...


class AdditiveLatent(
    Latent[PartIn, Theta, State, SummaryOut], Protocol[PartIn, Theta, State, SummaryOut, Sum]
):
    """A latent structure whose rows can be cut into partitions, because its statistics add.

    Its summaries add as well. A structure that is a `Latent` alone needs all rows in one place.
    """

    def gather(
        self,
        part: PartIn,
        theta: Theta,
        turn: int,
        clock: Clock,
        state: State,
        total: Sum | None = None,
    ) -> Sum:
        """Return the statistics of a partition for the M step of a turn, added to `total`.

        The result equals ``total + gather(part, theta, turn, clock, state)`` up to rounding, and
        needs no memory for the statistics of the partition. The memory of `total` may be used
        again; do not read it after the call. The result shares no memory with the state.
        """
        ...

    def estimate(self, stats: Sum, theta: Theta, turn: int) -> Theta:
        """Return the parameters for the statistics of all rows.

        On one partition it equals `maximise`, up to rounding.
        """
        ...


class Session(Protocol[ThetaCo, StateCo, SummaryCo]):
    """One run in the hands of an engine: the parameters, the partitions and their states."""

    @property
    def theta(self) -> ThetaCo:
        """The current parameters. Do not keep them longer than you need them: tables are large."""
        ...

    @property
    def states(self) -> Sequence[StateCo]:
        """The states of the partitions, in the order of the rows."""
        ...

    def e_step(self, clock: Clock) -> SummaryCo:
        """Bring all states up to date, and return the summary of all rows."""
        ...

    def m_step(self, turn: int, clock: Clock) -> None:
        """Bring all states up to date, and do the M step of a turn."""
        ...


class Engine(Protocol):
    """Where partitions and their states live, and what computes on them. A context manager."""

    @property
    def n_workers(self) -> int:
        """Number of tasks that can run at the same time."""
        ...

    def __enter__(self) -> Self:
        """Start the workers."""
        ...

    def __exit__(self, *exception: object) -> None:
        """Stop the workers."""
        ...

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the results of `function` in the order of the items.

        A task must not call `map` of the same engine: it could wait for itself.
        """
        ...

    def each_part(
        self, function: Callable[[Part], Result], parts: Sequence[Part | Stored[Part]]
    ) -> Iterator[Result]:
        """Yield the results of `function` for partitions, in their order, as they are ready.

        The function works where a partition is, and may use all threads there.
        """
        ...

    def open(
        self, latent: Latent[Part, Theta, State, SummaryOut], part: Part, theta: Theta
    ) -> Session[Theta, State, SummaryOut]:
        """Return a session for rows that have to stay together."""
        ...

    def open_parts(
        self,
        latent: AdditiveLatent[Part, Theta, State, SummaryOut, Any],
        parts: Sequence[Part | Stored[Part]],
        theta: Theta,
    ) -> Session[Theta, State, SummaryOut]:
        """Return a session for rows in partitions, which the engine may cut further.

        Either all partitions are stored or none is.
        """
        ...
