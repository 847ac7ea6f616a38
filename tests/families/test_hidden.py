"""A family with hidden variables of its own gets the current parameters in every M step."""

from dataclasses import dataclass

import numpy as np
import pytest

from coem import MixtureClassifier, MixtureClusterer
from coem.families import Bernoulli, Gaussian, MixtureOf, Multinomial
from tests.engines import ENGINES

X = np.random.default_rng(0).standard_normal((90, 3)) + np.repeat([[0.0], [4.0], [8.0]], 30, axis=0)
SEEN = []


@dataclass(frozen=True)
class Watched(Gaussian):
    """A Gaussian that notes the parameters that its statistics are gathered under."""

    hidden = True

    def stats_under(self, X, resp, theta):
        SEEN.append(theta)
        return self.stats(X, resp)


@dataclass(frozen=True)
class WatchedWide(Watched):
    wide = True


@pytest.fixture(autouse=True)
def nothing_seen():
    SEEN.clear()


def test_a_family_says_by_its_methods_whether_it_has_hidden_variables():
    assert MixtureOf(Multinomial()).hidden
    assert Gaussian("full").hidden  # an entry tells about another that is missing
    assert not any(family.hidden for family in (Gaussian("diag"), Multinomial(), Bernoulli()))


@pytest.mark.parametrize("family", [Watched(), WatchedWide()], ids=["blocks", "wide"])
def test_every_m_step_gets_the_parameters_of_the_one_before(family):
    resp = np.eye(3)[np.arange(90) % 3]
    model = MixtureClusterer(3, family=family, init=resp, max_iter=3, tol=0).fit(X)
    assert SEEN[0] is None
    assert len(SEEN) == 3
    assert not np.array_equal(SEEN[1].means, SEEN[2].means)
    last = SEEN[2]
    shorter = MixtureClusterer(3, family=Gaussian(), init=resp, max_iter=2, tol=0).fit(X)
    np.testing.assert_allclose(last.means, shorter.theta_["view0"].means, rtol=1e-12)
    plain = MixtureClusterer(3, family=Gaussian(), init=resp, max_iter=3, tol=0).fit(X)
    np.testing.assert_array_equal(model.theta_["view0"].means, plain.theta_["view0"].means)


@pytest.mark.parametrize("coupling", ["co-em", "joint"])
@pytest.mark.parametrize("engine", ENGINES)
def test_so_does_every_view_under_every_engine(engine, coupling):
    resp = np.eye(3)[np.arange(90) % 3]
    model = MixtureClusterer(
        3,
        family=Watched(),
        init=resp,
        coupling=coupling,
        max_iter=3,
        tol=0,
        engine=ENGINES[engine](),
    )
    model.fit([X, X[:, :2]])
    first = sum(theta is None for theta in SEEN)
    if engine.startswith("stores"):  # their last E step gathers what another round would need
        assert 0 < first < len(SEEN) / 3
    else:
        assert first == len(SEEN) // 3 > 0


def test_a_warm_start_a_batch_and_leave_one_out_have_parameters_too(tmp_path):
    model = MixtureClassifier(family=Watched(), max_iter=2, tol=0).fit(X, np.arange(90) // 30)
    SEEN.clear()
    model.leave_one_out(X, np.arange(90) // 30)
    assert len(SEEN) == 91
    SEEN.append(model.theta_["view0"])
    model.partial_fit(X[:10], np.arange(10) // 5)
    again = MixtureClusterer(
        3, family=Watched(), init=model, max_iter=2, tol=0, checkpoint=tmp_path
    )
    again.fit(X)
    assert len(SEEN) > 93
    assert all(theta is not None for theta in SEEN)
