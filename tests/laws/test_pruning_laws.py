"""Leaving out components that cannot matter changes nothing that anybody can see.

Rounds with bounds equal rounds that score everything, up to 1e-9 of a row, whatever is known of the
rows. A state that was lost is made again to the same.
"""

from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

from coem import MixtureClusterer
from coem.engine import LocalEngine
from coem.families import Multinomial
from coem.kernels.row_lists import RowLists
from coem.latent import pruning
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.posterior import RULES
from coem.protocols import Clock
from tests.engines import ENGINES

K, WIDTH, ROUNDS = 150, 400, 9


def corpus(n=1500, length=60, seed=0, share=0.7):
    """Return counts of K groups and the groups; the last rows are empty or short."""
    rng = np.random.default_rng(seed)
    group = rng.integers(K, size=n)
    words = rng.dirichlet(np.full(WIDTH, 0.05), size=K)
    lengths = rng.poisson(length, size=n)
    lengths[-20:] = np.arange(20) // 5
    drawn = [
        rng.multinomial(m, share * words[g] + (1 - share) / WIDTH)
        for m, g in zip(lengths, group, strict=True)
    ]
    return sp.csr_matrix(np.array(drawn, dtype=np.float32)), group


def part_of(case):
    share = 0.1 if case == "weak groups" else 0.7
    X, group = corpus(length=8 if case == "short rows" else 60, share=share)
    rng = np.random.default_rng(1)
    n = X.shape[0]
    start = np.where(rng.random(n) < 0.7, group, rng.integers(K, size=n))
    weight = rng.gamma(1.0, size=n) if case == "weights" else None
    allowed = None
    if case == "labels":
        known = rng.random(n) < 0.2
        allowed = ~known[:, np.newaxis] | (np.arange(K) == group[:, np.newaxis])
    empty = None
    if case == "blanks":
        empty = (rng.random(n) < 0.1)[:, np.newaxis]
    return Partition((X,), empty, weight, allowed, start, block_rows=400)


def rounds(case, *, betas=(1.0,) * ROUNDS, rule="soft", lose=False, alpha=0.1):
    """Return the states, parameters and values of some rounds."""
    latent = Mixture(Emissions((Multinomial(alpha=alpha),)), K, rule=RULES[rule])
    part, theta, state, seen = part_of(case), latent.unknown(), None, []
    clock = Clock(0, betas[:1], 0.0)
    state = latent.infer(part, theta, clock, None)
    for t, beta in enumerate(betas):
        theta = latent.maximise(part, theta.without(0), 0, clock, state)
        clock = Clock(t + 1, (beta,), 0.0)
        state = latent.infer(part, theta, clock, None if lose and t % 3 == 1 else state)
        value = latent.value(latent.summarise(part, theta, clock, state), theta)
        seen.append((np.array(state.resp), np.array(theta.params[0]), value.objective, state))
    return seen


@pytest.fixture
def everything(monkeypatch):
    """Return rounds in which every component of every row is scored."""

    def run(*args, **settings):
        with monkeypatch.context() as patch:
            patch.setattr(pruning, "FEWEST", 10**9)
            seen = rounds(*args, **settings)
        assert not any(isinstance(state.resp, RowLists) for *_, state in seen)
        return seen

    return run


def check_same(got, expected):
    for (resp, theta, value, _), (all_resp, all_theta, all_value, _) in zip(
        got, expected, strict=True
    ):
        assert resp.shape == all_resp.shape
        np.testing.assert_array_equal(resp.argmax(axis=-1), all_resp.argmax(axis=-1))
        np.testing.assert_allclose(resp, all_resp, rtol=1e-5, atol=2e-9)
        np.testing.assert_allclose(theta, all_theta, rtol=1e-5)
        assert value == pytest.approx(all_value, rel=1e-9)


CASES = ("plain", "weights", "labels", "blanks", "short rows")


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_lost(case, rule, everything):
    got = rounds(case, rule=rule)
    assert any(isinstance(state.resp, RowLists) for *_, state in got)
    check_same(got, everything(case, rule=rule))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_nothing_is_lost_for_any_pseudo_count(alpha, everything):
    check_same(rounds("plain", alpha=alpha), everything("plain", alpha=alpha))


@pytest.mark.parametrize("betas", [(0.3,) * ROUNDS, (0.0, 0.2, 0.4, 0.6, 0.8, 1.0, 1.0, 1.0, 2.0)])
def test_nothing_is_lost_at_other_temperatures(betas, everything):
    check_same(rounds("plain", betas=betas), everything("plain", betas=betas))


@pytest.mark.parametrize("case", CASES)
def test_a_lost_state_is_made_again_with_the_same_bits(case):
    lost, kept = rounds(case, lose=True), rounds(case)
    assert any(isinstance(state.resp, RowLists) for *_, state in kept)
    for (resp, theta, value, _), (own_resp, own_theta, own_value, _) in zip(
        lost, kept, strict=True
    ):
        np.testing.assert_array_equal(resp, own_resp)
        np.testing.assert_array_equal(theta, own_theta)
        assert value == own_value


@pytest.mark.parametrize("rule", sorted(RULES))
@pytest.mark.parametrize("case", [*CASES, "weak groups"])
def test_bits_do_not_depend_on_whether_bounds_are_used(case, rule, monkeypatch):
    runs, blocks = [], []
    for fixed in (-np.inf, pruning.FIXED, np.inf):  # wherever they can be, if they pay, never
        monkeypatch.setattr(pruning, "FIXED", fixed)
        with blocks_with_bounds(monkeypatch) as seen:
            runs.append(rounds(case, rule=rule))
        blocks.append(len(seen))
    assert blocks[0] >= blocks[1] >= blocks[2] == 0
    assert blocks[0] > 0
    for one, *others in zip(*runs, strict=True):
        for other in others:
            np.testing.assert_array_equal(other[0], one[0])
            np.testing.assert_array_equal(other[1], one[1])
            assert other[2] == one[2]


@contextmanager
def blocks_with_bounds(monkeypatch):
    """Give a list of all blocks whose components are left out by bounds."""
    seen, chances = [], pruning.Moved.chances

    def look(moved, block, *args):
        seen.append(block)
        return chances(moved, block, *args)

    with monkeypatch.context() as patch:
        patch.setattr(pruning.Moved, "chances", look)
        yield seen


def test_bounds_are_given_up_while_they_do_not_pay(monkeypatch):
    with blocks_with_bounds(monkeypatch) as seen:
        weak = [state.bounds for *_, state in rounds("weak groups", betas=(1.0,) * 16)]
    assert not seen
    # They are set in round 0, and tried in rounds 1, 2, 4 and 8: pauses of 0, 1, 3 and 7 rounds.
    paused = [t for t, bounds in enumerate(weak) if isinstance(bounds, pruning.Pause)]
    assert paused == [2, 4, 5, 6, *range(8, 15)]
    with blocks_with_bounds(monkeypatch) as seen:
        last = rounds("plain", betas=(1.0,) * 16)[-1][-1].bounds
    assert seen
    assert last.misses == 0


def test_late_rounds_have_few_entries():
    state = rounds("plain")[-1][-1]
    assert isinstance(state.resp, RowLists)
    assert len(state.resp.values) < 3 * state.resp.shape[1] + 20 * K


def fitted(X, group, **settings):
    start = np.eye(K)[group]
    return MixtureClusterer(
        K, init=start, family=Multinomial(0.1), max_iter=ROUNDS, tol=0, **settings
    ).fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_bits_do_not_depend_on_the_threads():
    X, group = corpus()
    one, two = (fitted(X, group, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.objective_ == two.objective_
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", sorted(ENGINES))
def test_engines_agree(name):
    X, group = corpus()
    one = fitted(X, group)
    with LocalEngine(1):
        other = fitted(X, group, engine=ENGINES[name]())
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-9)
    np.testing.assert_array_equal(other.predict(X), one.predict(X))
