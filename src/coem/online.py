"""Stepwise EM: learn from one batch of rows after another.

Running statistics take the place of those of all rows. A batch moves their mean a step towards its
own, and the M step is the usual one (Cappe & Moulines 2009, On-line expectation-maximization
algorithm for latent data models; Liang & Klein 2009, Online EM for unsupervised models)::

    mean <- (1 - g) mean + g (statistics of the batch) / (rows of the batch)

Any latent structure whose statistics add can learn in this way.
"""

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from coem.protocols import AdditiveLatent, Clock, Part, State, Statistics, Theta
from coem.schedules import StepSize

Kept = TypeVar("Kept", bound=Statistics)


@dataclass(frozen=True)
class Running(Generic[Kept]):
    """What is kept of the batches so far: all that is needed to go on, beside the parameters.

    The statistics are the running mean times `n_rows`. Unless you give that number, it is the
    *effective number of rows*: the number of rows of equal weight whose mean is as precise as the
    running one. So a prior has the weight that it would have beside that many rows.
    """

    stats: tuple[Kept, ...]  # for every turn
    n_rows: float  # the rows that the statistics stand for
    n_seen: float  # weight of the rows of all batches
    n_batches: int


def begin(
    latent: AdditiveLatent[Part, Theta, State, Any, Kept],
    part: Part,
    n_rows: float,
    theta: Theta,
    clock: Clock,
    step: StepSize,
) -> Running[Kept] | None:
    """Return the statistics of a first batch under the parameters that were fitted to it.

    The arguments are those of `learn`. The result is None if `n_rows` is 0.
    """
    if n_rows == 0:
        return None
    _, new = _factors(None, n_rows, step)
    state = latent.infer(part, theta, clock, None)
    turns = range(latent.n_turns)
    stats = tuple(latent.gather(part, theta, turn, clock, state).scaled(new) for turn in turns)
    return Running(stats, new * n_rows, n_rows, 1)


def learn(
    latent: AdditiveLatent[Part, Theta, State, Any, Kept],
    part: Part,
    n_rows: float,
    theta: Theta,
    clock: Clock,
    running: Running[Kept] | None,
    step: StepSize,
) -> tuple[Theta, Running[Kept] | None]:
    """Do one round on a batch; return the new parameters and the new running statistics.

    Every turn infers the posteriors of the batch, moves its own statistics, and does its M step.
    So a step of size 1 with all rows is a round of `em.em`.

    Parameters
    ----------
    latent : AdditiveLatent
        The latent structure.
    part : Partition
        The rows of the batch.
    n_rows : float
        Their number, or the sum of their weights. Rows without any content do not count. If it is
        0, nothing changes.
    theta : Parameters
        The parameters before the batch.
    clock : Clock
        Inverse temperatures and eta.
    running : Running or None
        The statistics of the batches so far; None for a batch that replaces all that was before.
    step : StepSize
        How far the batch moves them.
    """
    if n_rows == 0:
        return theta, running
    old, new = _factors(running, n_rows, step)
    state: State | None = None
    kept: list[Kept] = []
    for turn in range(latent.n_turns):
        state = latent.infer(part, theta, clock, state)
        stats = latent.gather(part, theta, turn, clock, state).scaled(new)
        if running is not None:
            stats = running.stats[turn].scaled(old) + stats
        theta = latent.estimate(stats, theta, turn)
        kept.append(stats)
    if running is None:
        return theta, Running(tuple(kept), new * n_rows, n_rows, 1)
    rows, seen = old * running.n_rows + new * n_rows, running.n_seen + n_rows
    return theta, Running(tuple(kept), rows, seen, running.n_batches + 1)


def _factors(running: Running[Any] | None, n_rows: float, step: StepSize) -> tuple[float, float]:
    """Return what the running statistics and those of a batch are multiplied by."""
    if running is None:
        return 0.0, 1.0 if step.n_rows is None else step.n_rows / n_rows
    g = step(running.n_batches + 1, n_rows, running.n_seen + n_rows)
    # The mean of n rows has a variance of 1 / n, in units of that of a row.
    variance = (1.0 - g) ** 2 / running.n_rows + g**2 / n_rows
    stand_for = 1.0 / variance if step.n_rows is None else step.n_rows
    return stand_for * (1.0 - g) / running.n_rows, stand_for * g / n_rows
