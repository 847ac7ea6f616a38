"""Inverse temperatures of views: how they are found, and where they count."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp
from sklearn.exceptions import ConvergenceWarning

import coem
from coem import MixtureClassifier, MixtureClusterer, Views
from coem.coupling import CoEM, Joint
from coem.em import em
from coem.engine.sessions import PartedSession, WholeSession
from coem.families import Gaussian, Multinomial, VonMisesFisher
from coem.initialise import starter
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.latent.weights import ViewWeights
from coem.schedules import Constant
from coem.view_betas import Calls, best_beta, find_betas
from tests.engines import CutEngine

N, K = 500, 4
RNG = np.random.default_rng(3)
GROUPS = np.arange(N) % K
PROB = RNG.dirichlet(np.full(30, 0.3), size=K)
# Bursts: every word of the text is there ten times, so that it is too sure of itself.
TEXT = 10 * RNG.poisson(4 * PROB[GROUPS])
POINTS = 1.5 * RNG.standard_normal((K, 3))[GROUPS] + RNG.standard_normal((N, 3))
VIEWS = Views(text=TEXT, points=POINTS)
FAMILY = {"text": Multinomial(), "points": Gaussian("tied")}


def fit(views=VIEWS, **params):
    return MixtureClusterer(K, **{"family": FAMILY, "tol": 1e-5, "random_state": 0} | params).fit(
        views
    )


def test_a_view_that_repeats_itself_speaks_more_softly():
    betas = fit().view_betas_
    assert betas["text"] < 0.7 < 1.4 < betas["points"]
    assert betas["text"] * betas["points"] == pytest.approx(1, rel=0.01)  # three digits
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a component may end without rows
        once = fit(Views(text=TEXT // 10, points=POINTS)).view_betas_
    assert once["text"] > 1.7 * betas["text"]


def slow_betas(model, part, eta):
    """Return what `find_betas` returns, row by row and by a bounded search."""
    start = starter(model, part, "spherical")(np.random.default_rng(0))
    given, theta = start.given, start.theta
    betas = np.ones(len(part.views))
    for _ in range(2):
        emissions = Emissions(model.emissions.families, tuple(betas))
        tempered = Mixture(emissions, K, CoEM(), dtype=np.float64)
        session = WholeSession(tempered, part.starting_from(given), theta)
        em(tempered, session, eta=Constant(eta), beta=Constant(1.0), max_iter=30, tol=1e-4)
        theta, given = tempered.from_params(session.theta.of_views), None
        theta = type(theta)(theta.params, session.theta.log_weights, theta.version)
        families = enumerate(model.emissions.families)
        raw = [f.log_prob(part.views[v], theta.of_view(v)) for v, f in families]
        new = betas.copy()
        for v in range(len(betas)):
            calls = []
            for n in range(part.n_rows):
                others = sum(betas[u] * raw[u][n] for u in range(len(betas)) if u != v)
                calls.append(int(np.argmax(theta.log_weights[v] + others)))

            def loss(t, v=v, calls=calls, raw=raw, theta=theta):
                logs = log_softmax(theta.log_weights[v] + np.exp(t) * raw[v], axis=1)
                return -sum(logs[n, call] for n, call in enumerate(calls))

            new[v] = np.exp(minimize_scalar(loss, bounds=(-9, 9), method="bounded").x)
        betas = new / np.prod(new) ** (1 / len(new))
    return np.sqrt(betas)


def test_they_are_those_of_a_slow_search():
    third = Views(text=TEXT, points=POINTS, more=RNG.poisson(3 * PROB[::-1][GROUPS]))
    model = MixtureClusterer(K, family=FAMILY | {"more": "multinomial"}, dtype=np.float64)
    part = model.set_params(evidence="fixed")._read_rows(third, None)
    mixture = model._mixture()
    found = find_betas(mixture, part, 0.8)
    np.testing.assert_allclose(found, slow_betas(mixture, part, 0.8), rtol=0.006)  # three digits


def test_the_best_inverse_temperature_has_no_slope():
    rng = np.random.default_rng(0)
    scores = 30 * rng.standard_normal((200, 3))
    calls = np.array([rng.choice(3, p=np.exp(s)) for s in log_softmax(0.1 * scores, axis=1)])
    weight = rng.gamma(1.0, size=200)
    beta = best_beta(Calls(scores, np.zeros(3), calls, weight))

    def loss(b):
        return -weight @ log_softmax(b * scores, axis=1)[np.arange(200), calls]

    assert 0.05 < beta < 0.2
    assert loss(beta) < min(loss(beta * 1.001), loss(beta / 1.001))


def test_calls_that_are_always_right_do_not_lead_to_infinity():
    scores = np.eye(3)[np.arange(30) % 3]
    assert 10 < best_beta(Calls(scores, np.zeros(3), np.arange(30) % 3, np.ones(30))) <= 100
    assert best_beta(Calls(scores, np.zeros(3), np.arange(1, 31) % 3, np.ones(30))) == 0.01
    twice = Views(one=TEXT, two=TEXT)
    betas = fit(twice, family="multinomial").view_betas_
    assert betas == pytest.approx({"one": 1.0, "two": 1.0}, rel=0.1)


# -- where they count -----------------------------------------------------------------------------


def test_predict_explain_and_view_proba_use_them():
    model = fit()
    raw = {
        name: family.log_prob(family.encode(family.check(VIEWS[name], name)), model.theta_[name])
        for name, family in model.families_.items()
    }
    tempered = {name: model.view_betas_[name] * raw[name] for name in raw}
    log_joint = np.log(model.weights_) + sum(tempered.values())
    np.testing.assert_allclose(
        model.predict_proba(VIEWS), np.exp(log_softmax(log_joint, axis=1)), atol=1e-5
    )
    own = log_softmax(np.log(model.view_weights_[0]) + tempered["text"], axis=1)
    np.testing.assert_allclose(model.view_proba(VIEWS)[:, 0], np.exp(own), atol=1e-5)
    for row, told in enumerate(model.explain(VIEWS[:20])):
        total = told.prior + sum(v.contributions.sum() + v.rest for v in told.views.values())
        assert total == pytest.approx(told.log_odds)
        expected = log_joint[row, told.label] - log_joint[row, told.against]
        assert told.log_odds == pytest.approx(expected, rel=1e-4, abs=1e-3)


def test_scores_are_densities_all_the_same():
    model = fit()
    parts = [
        family.log_prob(family.encode(family.check(VIEWS[name], name)), model.theta_[name])
        for name, family in model.families_.items()
    ]
    density = logsumexp(np.log(model.weights_) + sum(parts), axis=1)
    np.testing.assert_allclose(model.score_samples(VIEWS), density, rtol=1e-5)
    reading = model.read(VIEWS)
    np.testing.assert_allclose(reading.log_likelihood, model.score_samples(VIEWS), rtol=1e-12)
    np.testing.assert_array_equal(reading.proba, model.predict_proba(VIEWS))


def test_they_are_saved_and_carried_on(tmp_path):
    model = fit()
    model.save(tmp_path / "m.coem")
    loaded = coem.load(tmp_path / "m.coem")
    assert loaded.view_betas_ == model.view_betas_
    np.testing.assert_array_equal(loaded.predict_proba(VIEWS), model.predict_proba(VIEWS))
    assert fit(init=model).view_betas_ == model.view_betas_
    assert fit(init=model, coupling="joint").view_betas_ == model.view_betas_
    batches = MixtureClusterer(K, family=FAMILY, random_state=0).partial_fit(VIEWS[:400])
    first = dict(batches.view_betas_)
    assert batches.partial_fit(VIEWS[400:]).view_betas_ == first


@pytest.mark.parametrize(
    "params",
    [
        {"evidence": "fixed"},
        {"coupling": "joint"},
        {"eta": 0.0},
        {"posterior": "hard"},
    ],
)
def test_they_are_1_where_there_is_nothing_to_compare(params):
    model = fit(**params)
    assert model.view_betas_ == {"text": 1.0, "points": 1.0}
    fixed = fit(**params | {"evidence": "fixed"})
    np.testing.assert_array_equal(model.labels_, fixed.labels_)
    assert model.objective_ == fixed.objective_


def test_one_view_few_rows_and_classifiers_have_1():
    assert fit(TEXT, family="multinomial").view_betas_ == {"view0": 1.0}
    assert set(fit(VIEWS[:150]).view_betas_.values()) == {1.0}
    labels = np.where(np.arange(N) < 40, GROUPS, -1)
    model = MixtureClassifier(family=FAMILY).fit(VIEWS, labels)
    assert set(model.view_betas_.values()) == {1.0}


def test_a_view_without_rows_keeps_1():
    noise = np.random.default_rng(5).random((N, 1))
    with pytest.warns(UserWarning, match="'noise' is left out"):
        model = fit(
            Views(text=TEXT, points=POINTS, noise=noise), family=FAMILY | {"noise": "gaussian"}
        )
    assert model.view_betas_ == fit().view_betas_ | {"noise": 1.0}


# -- laws -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_order_weights_engines_and_storage_do_not_change_them():
    betas = fit().view_betas_
    rows = np.random.default_rng(1).permutation(N)
    assert fit(VIEWS[rows]).view_betas_ == betas
    assert fit(Views(text=sp.csr_matrix(TEXT), points=POINTS)).view_betas_ == betas
    assert fit(engine=CutEngine(5)).view_betas_ == betas
    assert fit(n_jobs=2, random_state=9, n_init=2).view_betas_ == betas
    weight = np.where(np.arange(N) < 50, 2.0, 1.0)
    model = MixtureClusterer(K, family=FAMILY, tol=1e-5, random_state=0)
    weighted = model.fit(VIEWS, sample_weight=weight).view_betas_
    twice = np.concatenate([np.arange(N), np.arange(50)])
    repeated = fit(VIEWS[twice]).view_betas_
    assert weighted == pytest.approx(repeated, rel=0.02)


@pytest.mark.parametrize("engine", [WholeSession, PartedSession])
@pytest.mark.parametrize("coupling", ["joint", "eta 0"])
def test_the_free_energy_never_falls_once_they_are_found(coupling, engine):
    """Log priors have the factor too, so that the M step of a family stays exact."""
    rng = np.random.default_rng(0)
    unit = rng.standard_normal((N, 5)) + 2 * rng.standard_normal((K, 5))[GROUPS]
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    families = Multinomial(alpha=3.0), VonMisesFisher("fit", alpha=2.0)
    families = families[0].bind(TEXT, np.float64), families[1].bind(unit, np.float64)
    views = families[0].encode(families[0].check(TEXT, "text")), families[1].encode(unit)
    joint = coupling == "joint"
    mixture = Mixture(
        Emissions(families, (0.2, 3.0)),
        K,
        Joint() if joint else CoEM(),
        prior=ViewWeights(),
        dtype=np.float64,
    )
    part = Partition(views, given=rng.dirichlet(np.ones(K), size=N))
    parts = part if engine is WholeSession else part.cut((100, 130))
    session = engine(mixture, parts, mixture.unknown())
    eta = Constant(1.0 if joint else 0.0)
    result = em(mixture, session, eta=eta, beta=Constant(1.0), max_iter=25, tol=0.0)
    trace = np.array([record.free_energy for record in result.history])
    assert result.fell <= 1e-9
    assert np.diff(trace).min() >= -1e-9 * np.abs(trace).max()
    assert trace[-1] > trace[0]
