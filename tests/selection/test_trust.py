"""Trust: one scale for rows and groups, 0 as by chance and 1 for the same rows in every run."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coem.selection.trust import group_trust, row_trust


def slow_jaccard(labels, other):
    """Return for each row what its two groups have in common, from sets of rows."""
    out = []
    for i in range(len(labels)):
        mine = {j for j in range(len(labels)) if labels[j] == labels[i]}
        theirs = {j for j in range(len(labels)) if other[j] == other[i]}
        out.append(len(mine & theirs) / len(mine | theirs))
    return np.array(out)


def slow_trust(labels, others, rng, shuffles=200):
    """Return the trust of each row; chance is found by shuffling the other run."""
    total = np.zeros(len(labels))
    for other in others:
        chance = np.mean(
            [slow_jaccard(labels, rng.permutation(other)) for _ in range(shuffles)], axis=0
        )
        for g in np.unique(labels):
            inside = labels == g
            by_chance = chance[inside].mean()
            total[inside] += (slow_jaccard(labels, other)[inside] - by_chance) / (1 - by_chance)
    return np.clip(total / len(others), 0, 1)


def runs(seed, n, k, n_runs, noise):
    """Return a grouping and others that put a share of the rows elsewhere."""
    rng = np.random.default_rng(seed)
    one = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 3.0)))
    more = [np.where(rng.random(n) < noise, rng.integers(k, size=n), one) for _ in range(n_runs)]
    return one, more


@pytest.mark.parametrize("noise", [0.1, 0.5, 1.0])
def test_trust_is_its_slow_twin(noise):
    one, more = runs(0, 40, 4, 2, noise)
    twin = slow_trust(one, more, np.random.default_rng(1))
    np.testing.assert_allclose(row_trust(one, more), twin, atol=0.02)


@given(st.integers(0, 10**6), st.integers(2, 8))
def test_the_same_groups_under_other_numbers_have_a_trust_of_one(seed, k):
    one, _ = runs(seed, 50, k, 0, 0)
    order = np.random.default_rng(seed).permutation(k + 2)
    if len(np.unique(one)) > 1:
        np.testing.assert_allclose(row_trust(one, [order[one]] * 3), 1)


@pytest.mark.parametrize(("n", "k"), [(60, 2), (60, 6), (100, 20), (500, 20)])
def test_groups_of_all_sizes_have_no_trust_by_chance(n, k):
    rng = np.random.default_rng(0)
    one = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 1.0)))
    found = row_trust(one, [rng.permutation(one) for _ in range(200)])
    assert found.mean() < 0.01
    assert group_trust(one, found, k).max() < 0.05


def test_a_large_group_that_swallows_another_lends_it_no_trust():
    one = np.repeat([0, 1, 2], [10, 90, 100])
    found = group_trust(one, row_trust(one, [np.repeat([0, 1], [100, 100])]), 3)
    assert found[0] < 0.1 < 0.8 < found[1] < found[2] == 1


def test_a_row_that_leaves_is_trusted_less_than_those_that_stay():
    one = np.repeat([0, 1, 2], 10)
    other = one.copy()
    other[0] = 2
    found = row_trust(one, [other])
    assert found[0] < 0.1
    assert found[1:10].min() > 0.8


def test_a_group_of_all_rows_has_no_trust():
    whole = np.zeros(20, dtype=int)
    assert not row_trust(whole, [whole, whole]).any()
    assert not row_trust(whole, [np.arange(20) % 2]).any()


def test_a_weight_is_the_row_given_so_often():
    one, more = runs(3, 60, 4, 3, 0.3)
    times = np.random.default_rng(0).integers(1, 4, size=60)
    again = np.repeat(row_trust(one, more, times.astype(float)), times)
    repeated = row_trust(np.repeat(one, times), [np.repeat(o, times) for o in more])
    np.testing.assert_allclose(again, repeated)


def test_only_the_ratio_of_small_weights_matters():
    one, more = runs(4, 60, 4, 3, 0.3)
    np.testing.assert_allclose(row_trust(one, more, np.full(60, 0.01)), row_trust(one, more))


def test_a_group_has_the_mean_of_its_rows():
    one, more = runs(5, 60, 4, 3, 0.3)
    rows, weight = row_trust(one, more), np.random.default_rng(0).random(60)
    found = group_trust(one, rows, 6, weight)
    means = [np.average(rows[one == g], weights=weight[one == g]) for g in range(4)]
    np.testing.assert_allclose(found, [*means, 0, 0])
