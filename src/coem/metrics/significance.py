"""Whether one method is better than another, or whether chance explains the difference."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

__all__ = ["McNemar", "PairedTTest", "mcnemar", "paired_t_test"]

ALTERNATIVES = ("two-sided", "less", "greater")


class PairedTTest(NamedTuple):
    """The mean of a - b with its standard error, Student's t, and the probability of chance."""

    difference: float
    error: float
    statistic: float
    p_value: float


class McNemar(NamedTuple):
    """How many rows only a, and only b, has right, and the probability of chance."""

    only_a: int
    only_b: int
    p_value: float


def paired_t_test(a: ArrayLike, b: ArrayLike, *, alternative: str = "two-sided") -> PairedTTest:
    r"""Compare the results of two methods on the same trials.

    Parameters
    ----------
    a, b : array-like of shape (n_trials,)
        The results. The i-th values belong together: the same split, seed or data set.
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        What you ask for: that the mean of a differs from that of b, is less, or is greater.

    Returns
    -------
    test : PairedTTest
        ``difference`` (the mean of a - b), ``error`` (its standard error), ``statistic`` and
        ``p_value``: how probable such a difference, or a larger one, is by chance.

    Notes
    -----
    The statistic is difference / error, with n - 1 degrees of freedom. If all differences are
    equal, it is infinite, and 0 if there are none.

    Examples
    --------
    >>> from coem.metrics import paired_t_test
    >>> test = paired_t_test([1.5, 1.7, 1.6], [2.0, 2.1, 2.2], alternative="less")
    >>> round(test.difference, 2), round(test.p_value, 4)
    (-0.5, 0.0065)
    """
    _check(alternative)
    first, second = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    if first.ndim != 1 or first.shape != second.shape or len(first) < 2:
        raise ValueError(
            f"a and b must be two arrays of the same two or more trials, got the shapes "
            f"{first.shape} and {second.shape}"
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a and b must be finite; leave out trials without a result")
    differences = first - second
    mean = float(differences.mean())
    error = float(differences.std(ddof=1)) / math.sqrt(len(first))
    t = mean / error if error else math.copysign(math.inf, mean) if mean else 0.0
    law = stats.t(len(first) - 1)
    below, above = float(law.cdf(t)), float(law.sf(t))
    p = {"less": below, "greater": above, "two-sided": min(1.0, 2 * min(below, above))}
    return PairedTTest(mean, error, t, p[alternative])


def mcnemar(
    y_true: ArrayLike, pred_a: ArrayLike, pred_b: ArrayLike, *, alternative: str = "two-sided"
) -> McNemar:
    """Compare the predictions of two classifiers for the same rows.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
        The true classes.
    pred_a, pred_b : array-like of shape (n_rows,)
        The classes that the two predict.
    alternative : {"two-sided", "less", "greater"}, default="two-sided"
        What you ask for: that the accuracy of a differs from that of b, is less, or is greater.

    Returns
    -------
    test : McNemar
        ``only_a`` and ``only_b`` (the numbers of rows that only one of the two has right) and
        ``p_value``.

    Notes
    -----
    Rows on which both are right or both are wrong say nothing. If the two are equally good, each
    of the others is a fair coin. The p-value is that of the binomial distribution, for any number
    of rows, and needs no correction for continuity.

    Examples
    --------
    >>> from coem.metrics import mcnemar
    >>> truth = [1, 1, 1, 1, 1, 1]
    >>> mcnemar(truth, [1, 1, 1, 1, 1, 0], [1, 0, 0, 0, 0, 0], alternative="greater")
    McNemar(only_a=4, only_b=0, p_value=0.0625)
    """
    _check(alternative)
    truth, first, second = (np.asarray(values) for values in (y_true, pred_a, pred_b))
    if truth.ndim != 1 or not truth.shape == first.shape == second.shape:
        raise ValueError(
            f"y_true, pred_a and pred_b must have one value per row, got the shapes "
            f"{truth.shape}, {first.shape} and {second.shape}"
        )
    right_a, right_b = first == truth, second == truth
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    if not only_a + only_b:
        return McNemar(0, 0, 1.0)
    p = stats.binomtest(only_a, only_a + only_b, alternative=alternative).pvalue
    return McNemar(only_a, only_b, float(p))


def _check(alternative: str) -> None:
    if alternative not in ALTERNATIVES:
        raise ValueError(
            f"alternative must be one of {', '.join(ALTERNATIVES)}; got {alternative!r}"
        )
