"""Tests of significance against SciPy, and by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from coem.metrics import mcnemar, paired_t_test

ALTERNATIVES = ["two-sided", "less", "greater"]


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_paired_t_test_is_that_of_scipy(alternative):
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.4, size=12), rng.normal(size=12)
    found = paired_t_test(a, b, alternative=alternative)
    theirs = stats.ttest_rel(a, b, alternative=alternative)
    assert found.statistic == pytest.approx(theirs.statistic)
    assert found.p_value == pytest.approx(theirs.pvalue)
    assert found.difference == pytest.approx(np.mean(a - b))
    assert found.error == pytest.approx(stats.sem(a - b))


def test_paired_t_test_by_hand():
    # Differences 1, 2, 3: mean 2, standard error 1 / sqrt(3), t = 2 sqrt(3) with 2 degrees of
    # freedom, whose distribution function is 1/2 + t / (2 sqrt(2 + t^2)).
    t = 2 * math.sqrt(3)
    found = paired_t_test([2, 4, 6], [1, 2, 3], alternative="greater")
    assert found.statistic == pytest.approx(t)
    assert found.p_value == pytest.approx(0.5 - t / (2 * math.sqrt(2 + t**2)))


def test_equal_differences():
    assert paired_t_test([1, 2], [1, 2]) == (0.0, 0.0, 0.0, 1.0)
    found = paired_t_test([1, 2], [2, 3])
    assert (found.statistic, found.p_value) == (-math.inf, 0.0)
    assert paired_t_test([1, 2], [2, 3], alternative="greater").p_value == 1.0


def test_mcnemar_by_hand():
    truth = np.zeros(20, dtype=int)
    a, b = truth.copy(), truth.copy()
    b[:6], a[6:8], a[8:10], b[8:10] = 1, 1, 1, 1  # six rows only a has right, two only b
    ways = sum(math.comb(8, i) for i in (6, 7, 8)) / 2**8
    assert mcnemar(truth, a, b, alternative="greater") == (6, 2, pytest.approx(ways))
    assert mcnemar(truth, a, b) == (6, 2, pytest.approx(2 * ways))
    less = 1 - sum(math.comb(8, i) for i in (7, 8)) / 2**8
    assert mcnemar(truth, a, b, alternative="less").p_value == pytest.approx(less)


def test_mcnemar_comes_near_the_statistic_of_mcnemar_with_many_rows():
    rng = np.random.default_rng(1)
    truth = np.repeat(["yes", "no"], 2000)
    a = np.where(rng.random(4000) < 0.80, truth, "other")
    b = np.where(rng.random(4000) < 0.78, truth, "other")
    found = mcnemar(truth, a, b)
    gap = abs(found.only_a - found.only_b) - 1
    chi = gap**2 / (found.only_a + found.only_b)  # with Yates' correction
    assert found.p_value == pytest.approx(stats.chi2(1).sf(chi), rel=0.05)


def test_classifiers_that_never_differ():
    assert mcnemar([1, 0], [1, 1], [1, 1]) == (0, 0, 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: paired_t_test([1, 2], [1, 2], alternative="more"), "one of two-sided, less"),
        (lambda: mcnemar([1], [1], [1], alternative="more"), "one of two-sided, less"),
        (lambda: paired_t_test([1], [2]), "two or more trials"),
        (lambda: paired_t_test([1, 2], [2]), r"\(2,\) and \(1,\)"),
        (lambda: paired_t_test([1, np.nan], [2, 3]), "finite"),
        (lambda: mcnemar([1, 2], [1], [1, 2]), "one value per row"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
