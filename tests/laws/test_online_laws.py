"""Laws of stepwise EM (`coem.online`), for every latent structure whose statistics add."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from coem.em import em
from coem.engine import LocalEngine
from coem.online import begin, learn
from coem.protocols import Clock
from coem.schedules import Constant, StepSize, as_step
from tests.engines import uneven
from tests.laws.test_latent_laws import CASES, N, close

STARTED = [name for name in CASES if name.endswith(("parameters", "left-right"))]
BLANKS = {"mixture blanks": "mixture with blanks", "chain blanks": "chain with blanks"}
started_case = pytest.mark.parametrize("name", STARTED)


def case(name):
    """Return a latent structure, its rows, its parameters and a clock."""
    latent, part, theta = CASES[BLANKS.get(name, name)]()
    clock = Clock(1, (0.8,) * latent.n_turns, 0.6)
    if not theta.started:  # one round from the given start
        for turn in range(latent.n_turns):
            state = latent.infer(part, theta, clock, None)
            theta = latent.maximise(part, theta, turn, clock, state)
        part = part.starting_from(None)
    return latent, part, theta, clock


@dataclass
class Frozen:
    """A latent structure whose M step changes nothing."""

    latent: Any

    def __getattr__(self, name):
        return getattr(self.latent, name)

    def estimate(self, stats, theta, turn):
        return theta


def size(part):
    return float(part.row_weight().sum())


def batches(part, n_parts=5):
    return part.cut(uneven(N, n_parts))


def test_every_additive_structure_has_a_case():
    assert {name.split()[0] for name in STARTED} == {"mixture", "chain"}


@started_case
def test_a_full_step_on_all_rows_is_a_round_of_em(name):
    latent, part, theta, _ = case(name)
    eta, beta = Constant(0.6), Constant(0.8)
    with LocalEngine(1) as engine:
        session = engine.open(latent, part, theta)
        truth = em(latent, session, eta=eta, beta=beta, max_iter=1, tol=0.0).theta
    clock = Clock(1, (0.8,) * latent.n_turns, 0.6)
    found, running = learn(latent, part, size(part), theta, clock, None, StepSize())
    close(found, truth)
    assert (running.n_rows, running.n_seen, running.n_batches) == (size(part), size(part), 1)


@pytest.mark.parametrize("name", [*STARTED, *BLANKS])
def test_sums_of_batches_are_those_of_all_rows(name):
    """With frozen parameters and step="sum", batches of any sizes are one large batch."""
    latent, part, theta, clock = case(name)
    parts = batches(part)
    running = begin(latent, parts[0], size(parts[0]), theta, clock, StepSize())
    for one in parts[1:]:
        same, running = learn(Frozen(latent), one, size(one), theta, clock, running, as_step("sum"))
        assert same is theta
    whole = begin(latent, part, size(part), theta, clock, StepSize())
    close(running.stats, whole.stats)
    assert running.n_rows == pytest.approx(size(part), rel=1e-12)
    assert running.n_seen == pytest.approx(size(part), rel=1e-12)
    assert running.n_batches == len(parts)


@pytest.mark.parametrize("n_rows", [None, 300.0])
@pytest.mark.parametrize("name", ["mixture co-em soft global parameters", *BLANKS])
def test_the_running_mean_is_a_weighted_mean_of_batches(name, n_rows):
    latent, part, theta, clock = case(name)
    step, running, means, steps, sizes = StepSize(0.6, 2.0, n_rows), None, [], [], []
    for one in batches(part):
        sizes.append(size(one))
        own = (
            begin(latent, one, sizes[-1], theta, clock, StepSize()).stats[-1].scaled(1 / sizes[-1])
        )
        steps.append(1.0 if running is None else step(len(sizes), sizes[-1], sum(sizes)))
        means = [mean.scaled(1 - steps[-1]) for mean in means] + [own.scaled(steps[-1])]
        _, running = learn(Frozen(latent), one, sizes[-1], theta, clock, running, step)
    shares = [g * np.prod(1 - np.array(steps[b + 1 :])) for b, g in enumerate(steps)]
    assert sum(shares) == pytest.approx(1.0)
    effective = 1 / sum(share**2 / n for share, n in zip(shares, sizes, strict=True))
    assert running.n_rows == pytest.approx(effective if n_rows is None else n_rows)
    first = begin(latent, part, size(part), theta, clock, step)
    assert first.n_rows == pytest.approx(n_rows or size(part))
    plain = begin(latent, part, size(part), theta, clock, StepSize())
    close(first.stats, tuple(one.scaled(first.n_rows / size(part)) for one in plain.stats))
    assert effective < sum(sizes)
    close(running.stats[-1], sum(means[1:], means[0]).scaled(running.n_rows))


@pytest.mark.parametrize("name", ["mixture co-em hard global parameters", "chain hard parameters"])
def test_what_em_cannot_improve_stays(name):
    """If the statistics stand for as many rows as there are, a maximum of EM is a fixed point."""
    latent, part, theta, _ = case(name)
    one = Constant(1.0)
    with LocalEngine(1) as engine:
        session = engine.open(latent, part, theta)
        theta = em(latent, session, eta=one, beta=one, max_iter=30, tol=0.0).theta
    clock = Clock(1, (1.0,) * latent.n_turns, 1.0)
    step = StepSize(n_rows=size(part))
    running = begin(latent, part, size(part), theta, clock, step)
    after = theta
    for _ in range(3):
        after, running = learn(latent, part, size(part), after, clock, running, step)
    close(replace(after, version=theta.version), theta)
    # Without that number, the same rows twice count as more rows, and priors count less.
    other, _ = learn(latent, part, size(part), theta, clock, running, StepSize())
    with pytest.raises(AssertionError):
        close(replace(other, version=theta.version), theta)


def test_a_batch_without_content_changes_nothing():
    latent, part, theta, clock = case(STARTED[0])
    running = begin(latent, part, size(part), theta, clock, StepSize())
    assert learn(latent, part, 0.0, theta, clock, running, StepSize()) == (theta, running)
    assert learn(latent, part, 0.0, theta, clock, None, StepSize()) == (theta, None)
    assert begin(latent, part, 0.0, theta, clock, StepSize()) is None


# -- step sizes ------------------------------------------------------------------------------------


def test_steps_of_equal_batches_are_those_of_the_papers():
    step = StepSize(0.8, 3.0)
    for t in (1, 2, 10, 1000):
        assert step(t, 20, 20 * t) == pytest.approx((t + 3.0) ** -0.8)


def test_a_batch_of_twice_the_rows_counts_twice():
    step = StepSize(0.7, 1.0)
    assert step(50, 20, 1000) == pytest.approx(2 * step(50, 10, 1000))
    assert StepSize(0.51, 0.0)(2, 990, 1000) == 1.0  # never more than all


@pytest.mark.parametrize("sizes", [[5, 1, 40, 2.5], [1e-300, 1.0, 1e100]])
def test_every_row_counts_the_same_in_a_sum(sizes):
    step = as_step("sum")
    for t in range(1, len(sizes) + 1):
        assert step(t, sizes[t - 1], sum(sizes[:t])) == sizes[t - 1] / sum(sizes[:t])


def test_the_unit_of_the_weights_does_not_matter():
    """Statistics are scaled together with the rows, and nothing overflows."""
    latent, part, theta, clock = case("mixture joint soft uniform parameters")
    masses = []
    for weight in (1.0, 1e-200, 1e100):
        running = None
        for one in batches(part, 3):
            heavy = replace(one, weight=np.full(one.n_rows, weight))
            theta, running = learn(
                Frozen(latent), heavy, size(heavy), theta, clock, running, StepSize()
            )
        masses.append([running.n_rows / weight, *(running.stats[0].mass / weight)])
    np.testing.assert_allclose(masses[1:], [masses[0]] * 2, rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"power": 0.5}, r"power must be above 0\.5 and at most 1, got 0\.5"),
        ({"power": 1.01}, "power must be above"),
        ({"offset": -1}, "offset must be a finite number of 0 or more, got -1"),
        ({"offset": np.inf}, "offset must be"),
        ({"n_rows": 0}, r"n_rows must be None, or above 0 and at most 1e\+100, got 0"),
        ({"n_rows": np.inf}, "n_rows must be"),
        ({"power": np.nan}, "got NaN"),
    ],
)
def test_a_step_size_that_cannot_work(settings, message):
    with pytest.raises(ValueError, match=message):
        StepSize(**settings)


def test_names_of_step_sizes():
    assert as_step("forget") == StepSize()
    assert as_step("sum") == StepSize(1, 0)
    assert as_step(own := StepSize(0.9)) is own
    with pytest.raises(TypeError, match="StepSize takes numbers"):
        StepSize("fast")
    for wrong in ("slow", 0.7, None):
        with pytest.raises(ValueError, match="step must be one of 'forget', 'sum' or a StepSize"):
            as_step(wrong)
