"""Schedules: the value of eta or beta in every round, and the step size of every batch."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real

from coem.checks import LARGEST_WEIGHT, check_number


class Schedule(ABC):
    """A value for every round. The value is constant from round ``len(schedule)`` on."""

    @abstractmethod
    def __call__(self, t: int) -> float:
        """Return the value in round `t`; the first round is 0."""

    @abstractmethod
    def __len__(self) -> int:
        """Return the round from which the value no longer changes."""

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest value; by default, of the first and last round."""
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
        """Return 0, because the value never changes."""
        return 0


@dataclass(frozen=True)
class Linear(Schedule):
    """Change from `start` to `stop` in `rounds` equal steps; `stop` is reached exactly.

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
        """Raise unless `rounds` is at least 1."""
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
    """Begin with `start` and multiply by `factor` in every round, until exactly `stop` is reached.

    Parameters
    ----------
    start : float
        First value.
    factor : float
        Each value is the one before it times `factor`. Above 1 the values rise, below 1 they fall.
    stop : float, default=1.0
        Last value. If it is 0, values below 0.001 become 0.

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
        """Raise unless the schedule reaches `stop`."""
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
    """Take the given values, each for the same number of rounds; the last one stays.

    Parameters
    ----------
    values : sequence of float
        The values in order.
    rounds : int, default=1
        Number of rounds for each value.

    Examples
    --------
    >>> from coem.schedules import Steps
    >>> [Steps([0.5, 1.0], 2)(t) for t in range(5)]
    [0.5, 0.5, 1.0, 1.0, 1.0]
    """

    values: Sequence[float]
    rounds: int = 1

    def __post_init__(self) -> None:
        """Raise unless there is a value and `rounds` is at least 1."""
        if len(self.values) == 0:
            raise ValueError("Steps needs at least one value")
        _check_numbers("Steps", *self.values)
        check_number("rounds", self.rounds, Integral, 1)

    def extremes(self) -> tuple[float, float]:
        """Return the smallest and the largest value."""
        return float(min(self.values)), float(max(self.values))

    def __call__(self, t: int) -> float:
        """Return the value in round `t`."""
        return float(self.values[min(t // self.rounds, len(self.values) - 1)])

    def __len__(self) -> int:
        """Return the round that first has the last value."""
        return (len(self.values) - 1) * self.rounds


@dataclass(frozen=True)
class Later(Schedule):
    """The rest of a schedule after some rounds.

    Parameters
    ----------
    schedule : Schedule
        The whole schedule.
    rounds : int
        Number of rounds to skip.

    Examples
    --------
    >>> from coem.schedules import Later, Linear
    >>> [Later(Linear(0.0, 1.0, 4), 2)(t) for t in range(4)]
    [0.5, 0.75, 1.0, 1.0]
    """

    schedule: Schedule
    rounds: int

    def extremes(self) -> tuple[float, float]:
        """Return bounds of the values: the extremes of the whole schedule."""
        return self.schedule.extremes()

    def __call__(self, t: int) -> float:
        """Return the value in round `t` of the rest."""
        return self.schedule(t + self.rounds)

    def __len__(self) -> int:
        """Return the round that first has the last value."""
        return max(len(self.schedule) - self.rounds, 0)


@dataclass(frozen=True)
class StepSize:
    """How far each batch of rows moves the running statistics of stepwise EM (`partial_fit`).

    Batch t, counted from 1, has a step of size ``(t + offset) ** -power``, times its number of rows
    over the mean of the batches so far, and at most 1. So batches may differ in size, and weights
    count like rows.

    Parameters
    ----------
    power : float, default=0.7
        Above 0.5 and at most 1. With a smaller power, old rows are forgotten sooner and steps are
        noisier. scikit-learn calls it `learning_decay` (`LatentDirichletAllocation`).
    offset : float, default=1.0
        0 or more. With a larger offset, the first batches count less (`learning_offset`).
    n_rows : float, optional
        The number of rows that the running statistics stand for, or the sum of their weights.
        Priors and pseudo-counts have the weight that they have beside that many rows, from the
        first batch on. Give the number of rows of your data if you know it, above all if you pass
        over it several times (`total_samples`). None takes the effective number of rows: the
        number of rows of equal weight whose mean is as precise as the running mean.

    Examples
    --------
    >>> from coem.schedules import StepSize
    >>> [round(StepSize()(t, n_rows=50, n_seen=50 * t), 2) for t in (1, 2, 10, 100)]
    [0.62, 0.46, 0.19, 0.04]

    With ``power=1`` and ``offset=0``, every row counts the same:

    >>> StepSize(power=1, offset=0)(3, n_rows=10, n_seen=100)
    0.1
    """

    power: float = 0.7
    offset: float = 1.0
    n_rows: float | None = None

    def __post_init__(self) -> None:
        """Raise unless the steps become small, but not so fast that they end nowhere."""
        _check_numbers("StepSize", self.power, self.offset, self.n_rows or 0.0)
        if not 0.5 < self.power <= 1:
            raise ValueError(f"power must be above 0.5 and at most 1, got {self.power!r}")
        if not 0 <= self.offset < math.inf:
            raise ValueError(f"offset must be a finite number of 0 or more, got {self.offset!r}")
        if self.n_rows is not None and not 0 < self.n_rows <= LARGEST_WEIGHT:
            raise ValueError(
                f"n_rows must be None, or above 0 and at most {LARGEST_WEIGHT:g}, got "
                f"{self.n_rows!r}"
            )

    def __call__(self, t: int, n_rows: float, n_seen: float) -> float:
        """Return the step size of batch `t`, with `n_rows` of the `n_seen` rows up to its end."""
        return min(1.0, t / math.pow(t + self.offset, self.power) * n_rows / n_seen)


def as_step(value: str | StepSize) -> StepSize:
    """Return the step size that a name stands for, or the step size itself."""
    if isinstance(value, StepSize):
        return value
    if not isinstance(value, str) or value not in STEP_SIZES:
        names = ", ".join(map(repr, STEP_SIZES))
        raise ValueError(f"step must be one of {names} or a StepSize, got {value!r}")
    return STEP_SIZES[value]


def as_schedule(value: float | Schedule, name: str) -> Schedule:
    """Return a number or a schedule as a schedule; raise unless all values lie in [0, 1]."""
    schedule = value if isinstance(value, Schedule) else _constant(value, name)
    least, largest = schedule.extremes()
    if not (least >= 0 and largest <= 1):
        outside = least if not least >= 0 else largest
        raise ValueError(f"{name} must lie between 0 and 1, got {outside}")
    return schedule


def max_rounds(max_iter: int | None, eta: Schedule, beta: Schedule) -> int:
    """Return `max_iter`, or if it is None, 200 rounds more than the longer schedule."""
    return 200 + max(len(eta), len(beta)) if max_iter is None else max_iter


def _check_numbers(kind: str, *values: float) -> None:
    if not all(isinstance(v, Real) and not isinstance(v, bool) for v in values):
        raise TypeError(f"{kind} takes numbers, got {', '.join(map(repr, values))}")
    if any(v != v for v in values):
        raise ValueError(f"{kind} takes numbers, got NaN")


def _constant(value: float, name: str) -> Constant:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number or a schedule of coem.schedules, got {value!r}")
    return Constant(float(value))


STEP_SIZES = {"forget": StepSize(), "sum": StepSize(power=1, offset=0)}
"""Step sizes that have a name."""
