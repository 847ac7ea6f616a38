"""Transitions through rows: slow twins, and what must hold whatever the runs."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coem.latent.shared_rows import (
    couple_resp,
    excess,
    fate,
    shared_mass,
    shared_rows,
    transition_of,
)
from coem.run_coupling import RunCoupling

every_coupling = pytest.mark.parametrize(
    "coupling",
    [
        RunCoupling("rows", a, include_self=own)
        for a in ("all", "ring", "pairs")
        for own in (True, False)
    ],
    ids=str,
)


def resp(seed, n=30, k=4):
    return np.random.default_rng(seed).dirichlet(np.full(k, 0.3), size=n)


def hard(labels, k):
    return np.eye(k)[labels]


# -- slow twins -----------------------------------------------------------------------------------


def slow_transition(a, b, weight):
    """Return p(h2|h1), row by row and component by component."""
    out = np.zeros((a.shape[1], b.shape[1]))
    for h1 in range(a.shape[1]):
        mass = sum(weight[i] * a[i, h1] for i in range(len(a)))
        for h2 in range(b.shape[1]):
            for i in range(len(a)):
                out[h1, h2] += weight[i] * a[i, h1] / mass * b[i, h2]
    return out


def slow_couple(runs, me, others, own, weight):
    """Return sum_h2 r(h2) p(h1|h2) of every row, the mean over whom `me` hears."""
    heard = [runs[me]] if own else []
    for other in others:
        told = np.zeros_like(runs[me])
        back = slow_transition(runs[other], runs[me], weight)
        for i in range(len(told)):
            for h1 in range(told.shape[1]):
                told[i, h1] = sum(r * back[h2, h1] for h2, r in enumerate(runs[other][i]))
        heard.append(told)
    return np.mean(heard, axis=0)


def slow_fates(a, b, ka, kb):
    """Return what becomes of every component of a partition, from sets of rows."""
    n = len(a)
    mine = [set(np.flatnonzero(a == h).tolist()) for h in range(ka)]
    theirs = [set(np.flatnonzero(b == h).tolist()) for h in range(kb)]

    def inside(part, whole):
        """Tell if most of one set is in the other, beyond what chance puts there."""
        if not part or len(whole) == n:
            return len(whole) == n and len(part) > 0
        chance = Fraction(len(whole), n)
        return (Fraction(len(part & whole), len(part)) - chance) / (1 - chance) > Fraction(1, 2)

    out = []
    for one in mine:
        same = [j for j, other in enumerate(theirs) if inside(one, other) and inside(other, one)]
        parts = [other for other in theirs if inside(other, one)]
        if same:
            out.append(("recurs", same[0]))
        elif parts and inside(one, set.union(*parts)):
            out.append(("split", None))
        elif any(inside(one, other) for other in theirs):
            out.append(("merged", None))
        else:
            out.append(("scattered", None))
    return out


def test_a_transition_is_the_share_of_rows_and_rows_sum_to_one():
    weight = np.random.default_rng(2).uniform(0.1, 3, size=30)
    found = transition_of(shared_mass(resp(0, k=4), resp(1, k=6), weight))
    np.testing.assert_allclose(found, slow_transition(resp(0, k=4), resp(1, k=6), weight))
    np.testing.assert_allclose(found.sum(axis=1), 1)


@every_coupling
def test_the_coupling_step_is_its_slow_twin(coupling):
    runs = [resp(0, k=4), resp(1, k=5), resp(2, k=3)]
    weight = np.random.default_rng(3).uniform(0, 2, size=30)
    found, links = couple_resp(runs, coupling, weight, turn=1)
    for me, others in enumerate(coupling.partners(3, 1)):
        own = coupling.includes_self or not others
        np.testing.assert_allclose(found[me], slow_couple(runs, me, others, own, weight))
        np.testing.assert_allclose(found[me].sum(axis=1), 1)
    for link in links:
        twin = slow_transition(runs[link.run], runs[link.other], weight)
        np.testing.assert_allclose(link.matrix, twin)


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 5), st.floats(0, 1))
def test_the_match_rule_is_its_slow_twin(seed, ka, kb, noise):
    rng = np.random.default_rng(seed)
    a = rng.integers(ka, size=40)
    b = np.where(rng.random(40) < noise, rng.integers(kb, size=40), a % kb)
    found = fate(shared_rows(a, b, (ka, kb)))
    for h, (kind, other) in enumerate(slow_fates(a, b, ka, kb)):
        mine = (
            "recurs" if found.match[h] >= 0 else "split" if found.split[h]
            else "merged" if found.whole[h] >= 0 else "scattered"
        )  # fmt: skip
        assert mine == kind
        assert other is None or found.match[h] == other
        assert found.scattered[h] == (kind == "scattered")


# -- laws -----------------------------------------------------------------------------------------


def test_partitions_are_responsibilities_of_zeros_and_ones():
    rng = np.random.default_rng(0)
    a, b, weight = rng.integers(3, size=50), rng.integers(4, size=50), rng.random(50)
    soft = shared_mass(hard(a, 3), hard(b, 4), weight)
    np.testing.assert_allclose(shared_rows(a, b, (3, 4), weight), soft)


def test_no_component_has_two_matches():
    rng = np.random.default_rng(1)
    for _ in range(50):
        mass = rng.random((5, 6)) ** 8
        match = fate(mass).match
        assert len(set(match[match >= 0])) == (match >= 0).sum()


def test_matching_is_mutual():
    mass = np.random.default_rng(2).random((6, 6)) ** 8
    there, back = fate(mass).match, fate(mass.T).match
    assert all(back[j] == i for i, j in enumerate(there) if j >= 0)


def test_the_order_of_components_does_not_matter():
    a, b = resp(0), resp(1, k=5)
    order = [2, 0, 3, 1]
    plain, turned = (fate(shared_mass(a, x, None)) for x in (b, b[:, [4, 2, 0, 1, 3]]))
    np.testing.assert_allclose(plain.strength, turned.strength)
    mine, _ = couple_resp([a, b], RunCoupling("rows"))
    theirs, _ = couple_resp([a[:, order], b], RunCoupling("rows"))
    np.testing.assert_allclose(mine[0][:, order], theirs[0])
    np.testing.assert_allclose(mine[1], theirs[1])


@pytest.mark.parametrize("k", [1, 2, 5])
def test_equal_partitions_recur_fully(k):
    labels = np.arange(40) % k
    found = fate(shared_rows(labels, labels, (k, k)))
    np.testing.assert_allclose(found.strength, 1)
    assert found.match.tolist() == list(range(k))


def test_coupling_equal_hard_runs_changes_nothing():
    one = hard(np.arange(30) % 4, 4)
    order = [3, 1, 0, 2]
    for own in (True, False):
        (first, second), _ = couple_resp(
            [one, one[:, order]], RunCoupling("rows", include_self=own)
        )
        np.testing.assert_array_equal(first, one)
        np.testing.assert_array_equal(second, one[:, order])


def test_a_weight_is_the_row_given_so_often():
    a, b = resp(0, n=10), resp(1, n=10)
    times = np.arange(10)
    again = [np.repeat(x, times, axis=0) for x in (a, b)]
    plain, _ = couple_resp(again, RunCoupling("rows", include_self=False))
    weighted, _ = couple_resp([a, b], RunCoupling("rows", include_self=False), times.astype(float))
    np.testing.assert_allclose(np.repeat(weighted[0], times, axis=0), plain[0])


def test_runs_that_have_nothing_in_common_match_by_chance_alone():
    mass = np.outer([0.9, 0.1], [0.8, 0.2])  # p(0|0) is 0.8, which says nothing
    np.testing.assert_allclose(excess(mass), 0, atol=1e-12)
    assert (fate(mass).match == -1).all()


def test_splits_and_merges_are_told_apart():
    a = np.repeat([0, 1, 2, 3], 20)
    b = np.concatenate([np.repeat([0, 1], 10), np.full(40, 2), np.arange(20) % 10 + 3])
    found = fate(shared_rows(a, b, (4, 13)))
    assert found.split.tolist() == [True, False, False, True]
    assert found.whole.tolist() == [-1, 2, 2, -1]


def test_components_without_rows_are_found_nowhere():
    labels = np.repeat([0, 1], 10)
    found = fate(shared_rows(labels, labels, (3, 4)))
    assert found.match.tolist() == [0, 1, -1]
    assert found.scattered.tolist() == [False, False, True]
    assert np.isfinite(found.transition).all()
    assert fate(np.zeros((2, 3))).match.tolist() == [-1, -1]


@pytest.mark.parametrize(
    "bad", [{"n_couplings": 0}, {"n_rounds": 1.5}, {"among": "some"}, {"n_couplings": True}]
)
def test_a_coupling_that_says_nothing_is_refused(bad):
    with pytest.raises(ValueError, match="RunCoupling: "):
        RunCoupling("rows", **bad)
