"""Schedules: the value of eta or beta in every round."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

from coem.checks import check_number


class Schedule(ABC):
    """A value for every round; constant from round ``len(schedule)`` on."""

    @abstractmethod
    def __call__(self, t: int) -> float:
        """Return the value in round `t`, the first being 0."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the round from which the value no longer changes."""

    def extremes(self) -> tuple[float, float]:
        """Return the least and the largest value; they are the ends unless a schedule turns."""
        ends = self(0), self(len(self))
        return min(ends), max(ends)


@dataclass(frozen=True)
class Constant(Schedule):
    """The same value in every round."""

    value: float

    def __call__(self, t: int) -> float:
        """Return the value."""
        return float(self.value)

    def __len__(self) -> int:
        """Return 0: it never changes."""
        return 0


@dataclass(frozen=True)
class Linear(Schedule):
    """From `start` to `stop` in equal steps, reaching `stop` exactly after `rounds` rounds.

    Parameters
    ----------
    start, stop : float
        First and last value.
    rounds : int, default=20
        Number of steps between the two.

    Examples
    --------
    >>> from coem.schedules import Linear
    >>> [Linear(1.0, 0.0, 4)(t) for t in range(6)]
    [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    """

    start: float
    stop: float
    rounds: int = 20

    def __post_init__(self) -> None:
        """Refuse a schedule without rounds."""
        _check_numbers("Linear", self.start, self.stop)
        check_number("rounds", self.rounds, Integral, 1)

    def __call__(self, t: int) -> float:
        """Return the value in round `t`."""
        if t >= self.rounds:
            return float(self.stop)
        return self.start + (self.stop - self.start) * t / self.rounds

    def __len__(self) -> int:
        """Return the round that first has the last value."""
        return self.rounds


@dataclass(frozen=True)
class Geometric(Schedule):
    """From `start`, times `factor` every round, until `stop` is reached exactly.

    Parameters
    ----------
    start : float
        First value.
    factor : float
        What a value is multiplied by to get the next; above 1 to rise, below 1 to fall.
    stop : float, default=1.0
        Last value. A fall towards 0 ends there once it is below 0.001.

    Examples
    --------
    >>> from coem.schedules import Geometric
    >>> [Geometric(0.25, 2.0, 1.0)(t) for t in range(4)]
    [0.25, 0.5, 1.0, 1.0]
    """

    start: float
    factor: float
    stop: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a schedule that never reaches its end."""
        _check_numbers("Geometric", self.start, self.factor, self.stop)
        if not self.start > 0 or not self.factor > 0 or not 0 <= self.stop < float("inf"):
            raise ValueError("Geometric needs a start and a factor above 0, and a finite stop")
        stuck = self.factor == 1 or (self.stop > self.start) != (self.factor > 1)
        if self.start != self.stop and stuck:
            raise ValueError(
                f"Geometric({self.start}, {self.factor}, {self.stop}) never reaches {self.stop}; "
                "a factor above 1 rises, one below 1 falls"
            )

    def __call__(self, t: int) -> float:
        """Return the value in round `t`."""
        return float(self.stop) if t >= len(self) else self.start * self.factor**t

    def __len__(self) -> int:
        """Return the round that first has the last value."""
        if self.start == self.stop:
            return 0
        end = self.stop if self.stop > 0 else 1e-3
        return max(math.ceil(math.log(end / self.start) / math.log(self.factor) - 1e-9), 0)


@dataclass(frozen=True)
class Steps(Schedule):
    """Given values, each held for a number of rounds; the last one stays.

    Parameters
    ----------
    values : sequence of float
        The values in their order.
    rounds : int, default=1
        How long each is held.

    Examples
    --------
    >>> from coem.schedules import Steps
    >>> [Steps([0.5, 1.0], 2)(t) for t in range(5)]
    [0.5, 0.5, 1.0, 1.0, 1.0]
    """

    values: Sequence[float]
    rounds: int = 1

    def __post_init__(self) -> None:
        """Refuse an empty schedule."""
        if len(self.values) == 0:
            raise ValueError("Steps needs at least one value")
        _check_numbers("Steps", *self.values)
        check_number("rounds", self.rounds, Integral, 1)

    def extremes(self) -> tuple[float, float]:
        """Return the least and the largest value."""
        return float(min(self.values)), float(max(self.values))

    def __call__(self, t: int) -> float:
        """Return the value in round `t`."""
        return float(self.values[min(t // self.rounds, len(self.values) - 1)])

    def __len__(self) -> int:
        """Return the round that first has the last value."""
        return (len(self.values) - 1) * self.rounds


@dataclass(frozen=True)
class Later(Schedule):
    """What is left of a schedule after some rounds.

    Parameters
    ----------
    schedule : Schedule
        The whole schedule.
    rounds : int
        How many of its rounds are over.

    Examples
    --------
    >>> from coem.schedules import Later, Linear
    >>> [Later(Linear(0.0, 1.0, 4), 2)(t) for t in range(4)]
    [0.5, 0.75, 1.0, 1.0]
    """

    schedule: Schedule
    rounds: int

    def extremes(self) -> tuple[float, float]:
        """Return bounds of the values: those of the whole schedule."""
        return self.schedule.extremes()

    def __call__(self, t: int) -> float:
        """Return the value in round `t` of those that are left."""
        return self.schedule(t + self.rounds)

    def __len__(self) -> int:
        """Return the round that first has the last value."""
        return max(len(self.schedule) - self.rounds, 0)


def as_schedule(value: float | Schedule, name: str) -> Schedule:
    """Return a schedule for a number or a schedule, all of whose values lie in [0, 1]."""
    schedule = value if isinstance(value, Schedule) else _constant(value, name)
    least, largest = schedule.extremes()
    if not (least >= 0 and largest <= 1):
        outside = least if not least >= 0 else largest
        raise ValueError(f"{name} must lie between 0 and 1, got {outside}")
    return schedule


def max_rounds(max_iter: int | None, eta: Schedule, beta: Schedule) -> int:
    """Return the largest number of rounds: `max_iter`, or 200 after both schedules have ended."""
    return 200 + max(len(eta), len(beta)) if max_iter is None else max_iter


def _check_numbers(kind: str, *values: float) -> None:
    if not all(isinstance(v, Real) and not isinstance(v, bool) for v in values):
        raise TypeError(f"{kind} takes numbers, got {', '.join(map(repr, values))}")
    if any(v != v for v in values):
        raise ValueError(f"{kind} takes numbers, and NaN is none")


def _constant(value: float, name: str) -> Constant:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number or a schedule of coem.schedules, got {value!r}")
    return Constant(float(value))
