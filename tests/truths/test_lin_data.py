"""The data of Table 1 of Lin (2006): when components that are alike separate."""

import numpy as np
import pytest

from coem import AspectModel
from coem.experiments.lin_2006._setting import decomposable, starts


def second_correlation(P):
    """Return the largest correlation of a function of x with a function of y."""
    return np.linalg.svd(P / np.sqrt(np.outer(P.sum(axis=1), P.sum(axis=0))), compute_uv=False)[1]


def test_flat_data_have_little_information():
    P = decomposable("flat", 200, 25)
    product = np.outer(P.sum(axis=1), P.sum(axis=0))
    assert (P * np.log(P / product)).sum() == pytest.approx(0.0175, abs=5e-5)
    assert 1 / (1 + second_correlation(P)) == pytest.approx(0.947, abs=5e-4)


def test_components_stay_alike_below_the_threshold_and_separate_above():
    P = decomposable("flat", 40, 3)
    threshold = 1 / (1 + second_correlation(P))
    (weights, x, y), _ = starts(40, 3, 0)
    near = (weights, *(p.mean(axis=0) * (1 + 0.01 * (p > np.median(p))) for p in (x, y)))
    near = (weights, *(p / p.sum(axis=1, keepdims=True) for p in near[1:]))

    def spread(beta):
        fit = AspectModel(3, init=[near], beta=beta, max_iter=300, dtype=np.float64).fit(P)
        return np.abs(fit.x_given_h_ / P.sum(axis=1) - 1).max()

    assert spread(threshold - 0.02) < 1e-3
    assert spread(threshold + 0.02) > 0.1
