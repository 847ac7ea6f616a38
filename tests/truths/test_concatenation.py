"""Why trees do not gain from two views: Eq. 18-23 of Bickel & Scheffer (2004).

The paper writes the exponent of a von Mises-Fisher density as cosine / kappa, coem as kappa times
cosine: the kappa of the paper is one over that of `VonMisesFisher`, and what halves there doubles
here. In double precision, sums of a few dozen terms round to about 1e-14.
"""

import numpy as np
import pytest

from coem import MixtureClusterer
from coem.families import VonMisesFisher
from coem.families.von_mises_fisher import VonMisesFisherTheta

DOUBLE = {"rtol": 0.0, "atol": 1e-11}
KAPPA, D, K, N = 30.0, 40, 3, 60


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def directions(rng, n, d=D):
    return unit(rng.standard_normal((n, d)))


def family(kappa):
    return VonMisesFisher(kappa, dtype=np.float64)


def theta(means, kappa):
    return VonMisesFisherTheta(means, np.full(len(means), kappa))


def draw(rng, means, labels, kappa=KAPPA):
    return family(kappa).sample(theta(means, kappa), labels, rng)


def test_the_cosine_of_two_views_is_the_mean_of_theirs(rng):
    """Eq. 19: both views of a row are equally long, though rows are not."""
    one, two = directions(rng, N), directions(rng, N)
    lengths = rng.uniform(0.1, 9.0, size=(N, 1))
    whole = unit(np.hstack([one, two]) * lengths)
    np.testing.assert_allclose(whole @ whole.T, (one @ one.T + two @ two.T) / 2, **DOUBLE)


def test_views_of_unequal_length_have_another_cosine(rng):
    """The assumption of Eq. 19 is needed."""
    one, two = directions(rng, N), directions(rng, N)
    whole = unit(np.hstack([one, 2 * two]))
    assert np.abs(whole @ whole.T - (one @ one.T + two @ two.T) / 2).max() > 0.05


def test_concatenated_views_double_the_concentration(rng):
    """Eq. 21-23: the product of the densities has the exponent of twice the concentration."""
    views = [directions(rng, N) for _ in range(2)]
    means = [directions(rng, K) for _ in range(2)]
    pairs = zip(views, means, strict=True)
    product = sum(family(KAPPA).log_prob(X, theta(m, KAPPA)) for X, m in pairs)
    whole, mean = unit(np.hstack(views)), unit(np.hstack(means))
    doubled = family(2 * KAPPA).log_prob(whole, theta(mean, 2 * KAPPA))
    constant = product - doubled
    np.testing.assert_allclose(constant, constant[0, 0], rtol=1e-12)
    # c(kappa) squared is no constant of one sphere: rows lie where two spheres of views meet.
    assert abs(constant[0, 0]) > 1.0
    same = family(KAPPA).log_prob(whole, theta(mean, KAPPA))
    assert np.ptp(product - same) > 1.0


def test_the_joint_posterior_of_two_views_is_that_of_their_concatenation(rng):
    """The same for estimators: joint coupling of two views, and one view of twice the kappa."""
    labels = rng.integers(K, size=N)
    views = [draw(rng, directions(rng, K), labels) for _ in range(2)]
    resp = rng.dirichlet(np.ones(K), N)
    options = {"weights": "uniform", "evidence": "fixed", "init": resp, "max_iter": 1, "tol": 0}
    joint = MixtureClusterer(K, family=family(KAPPA), coupling="joint", **options).fit(views)
    means = [joint.theta_[name].directions for name in joint.view_names_]
    logs = family(2 * KAPPA).log_prob(
        unit(np.hstack(views)), theta(unit(np.hstack(means)), 2 * KAPPA)
    )
    expected = np.exp(logs - np.logaddexp.reduce(logs, axis=1, keepdims=True))
    assert (expected.max(axis=1) < 0.9).any()  # or the posteriors would tell nothing
    np.testing.assert_allclose(joint.predict_proba(views), expected, atol=1e-9)


@pytest.mark.parametrize("kappa", [20.0, 60.0])
def test_a_fit_finds_twice_the_concentration(rng, kappa):
    """With many columns, c(kappa) squared is nearly the constant of the concatenated sphere."""
    d, n = 200, 4000
    labels = np.zeros(n, dtype=int)
    views = [draw(rng, directions(rng, 1, d), labels, kappa) for _ in range(2)]
    fitted = VonMisesFisher("fit", alpha=0.0, dtype=np.float64)
    resp = np.ones((n, 1))
    alone = [fitted.estimate(fitted.stats(X, resp)).kappas[0] for X in views]
    whole = unit(np.hstack(views))
    both = fitted.estimate(fitted.stats(whole, resp)).kappas[0]
    np.testing.assert_allclose(alone, kappa, rtol=0.05)
    assert both == pytest.approx(2 * kappa, rel=0.05)


def test_components_overlap_less_when_views_are_concatenated(rng):
    """The argument of Sec. 5.3: fewer rows are nearer to the mean of the other component."""
    n = 4000
    labels = rng.integers(2, size=n)
    means = [directions(rng, 2, 10) for _ in range(2)]
    views = [draw(rng, m, labels, 3.0) for m in means]
    sides = [*zip(views, means, strict=True), (np.hstack(views), np.hstack(means))]
    one, two, both = (np.mean((X @ m.T).argmax(axis=1) != labels) for X, m in sides)
    assert both < min(one, two) - 0.01
    # The means do not come nearer: their cosine is the mean of the cosines.
    cosines = [m[0] @ m[1] for m in means]
    whole = unit(np.hstack(means))
    assert whole[0] @ whole[1] == pytest.approx(np.mean(cosines), abs=1e-12)
