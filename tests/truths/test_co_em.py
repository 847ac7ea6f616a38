"""Co-EM, EM and the joint coupling against slow transcriptions of the paper, from the same start.

In double precision fast and slow code differ by the order of their sums, about 1e-13 in a
posterior, which twenty rounds may amplify; 1e-9 leaves room for that and for nothing else. In the
default precision a log probability has an error of some 3e-7, times the length of a row in its
log odds: 1e-4 in a posterior after a few rounds (later ones may drift along flat directions, where
the objective, to 1e-5, is the thing to compare).
"""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from coem import MixtureClusterer, Views
from coem.families import Multinomial
from coem.schedules import Linear
from tests.truths import twins

K = 3
ROUNDS = (1, 5, 20)
DOUBLE = {"rtol": 0.0, "atol": 1e-9}
SINGLE = {"rtol": 0.0, "atol": 1e-4}

ETAS = {
    "0": (0.0, twins.constant(0.0)),
    "0.3": (0.3, twins.constant(0.3)),
    "1": (1.0, twins.constant(1.0)),
    "annealed": (Linear(1, 0, 10), twins.linear(1.0, 0.0, 10)),
}
BETAS = {
    "0.5": (0.5, twins.constant(0.5)),
    "rising": (Linear(0.2, 1, 5), twins.linear(0.2, 1.0, 5)),
}
LENGTHS = {"short": (12, 7, 5), "long": (420, 300, 250)}

every_eta = pytest.mark.parametrize("eta", ETAS)
every_beta = pytest.mark.parametrize("beta", BETAS)
every_weights = pytest.mark.parametrize("weights", ["global", "per_view", "uniform"])
every_assign = pytest.mark.parametrize("assign", ["joint", "average"])
every_corpus = pytest.mark.parametrize("corpus", LENGTHS)
every_dtype = pytest.mark.parametrize("dtype", [np.float64, None], ids=["double", "default"])


# -- data -----------------------------------------------------------------------------------------


@cache
def make_corpus(name):
    """Return three count views of 120 rows with overlapping topics, and responsibilities."""
    rng = np.random.default_rng(20050807)
    n, topics = 120, rng.integers(K, size=120)
    views = []
    for width, length in zip((30, 20, 12), LENGTHS[name], strict=True):
        words = rng.dirichlet(np.full(width, 0.6), size=K)
        # Long rows separate any topics: theirs are mixed until some rows stay in doubt.
        words = words if name == "short" else 0.12 * words + 0.88 * words.mean(axis=0)
        lengths = 1 + rng.poisson(length, size=n)
        rows = [rng.multinomial(m, words[j]) for m, j in zip(lengths, topics, strict=True)]
        views.append(np.array(rows, dtype=float))
    for v in range(3):
        views[v][10 * v : 10 * v + 8] = 0  # empty in one view
    views[0][40:44] = views[1][40:44] = 0  # in two
    views[1][44:48] = views[2][44:48] = 0
    for X in views:
        X[60] = 0  # in all
    resp = 0.3 * np.eye(K)[topics] + 0.7 * rng.dirichlet(np.ones(K), size=n)
    return views, resp


@cache
def row_weights():
    """Return weights between 0 and 3, some of them 0."""
    rng = np.random.default_rng(7)
    weight = rng.gamma(1.0, size=120)
    weight[::17] = 0.0
    return weight


@cache
def co_em_states(corpus, eta, weights, **options):
    views, resp = make_corpus(corpus)
    return twins.co_em(views, resp, ROUNDS[-1], eta=ETAS[eta][1], weights=weights, **options)


@cache
def em_states(corpus, n_views, weights, **options):
    views, resp = make_corpus(corpus)
    return twins.em(views[:n_views], resp, ROUNDS[-1], weights=weights, **options)


def as_input(views):
    """Return what an estimator takes: a matrix for one view, else `Views` of CSR and dense."""
    if len(views) == 1:
        return sp.csr_matrix(views[0])
    return Views(a=sp.csr_matrix(views[0]), b=views[1], c=sp.csr_matrix(views[2]))


def fit(corpus, rounds, *, n_views=3, dtype=np.float64, sample_weight=None, **options):
    """Return the model after so many rounds, and its input."""
    views, resp = make_corpus(corpus)
    X = as_input(views[:n_views])
    model = MixtureClusterer(K, init=resp, max_iter=rounds, tol=0, dtype=dtype, **options)
    return model.fit(X, sample_weight=sample_weight), X


# -- comparisons ----------------------------------------------------------------------------------


def check_posteriors(model, X, views, state, tol):
    """Compare posteriors, together and view by view, and the labels."""
    proba = twins.average_proba if model.assign == "average" else twins.joint_proba
    expected = proba(views, state)
    np.testing.assert_allclose(model.predict_proba(X), expected, **tol)
    np.testing.assert_allclose(model.view_proba(X), twins.view_proba(views, state), **tol)
    gap = expected.max(axis=1, keepdims=True) - expected
    clear = ~((gap > 0) & (gap < 2 * tol["atol"])).any(axis=1)
    assert clear.mean() > 0.95
    np.testing.assert_array_equal(model.labels_[clear], expected.argmax(axis=1)[clear])


def check_parameters(model, state):
    """Compare word probabilities and mixture weights in double precision."""
    for table, expected in zip(model.theta_.values(), state.theta, strict=True):
        np.testing.assert_allclose(table, expected, **DOUBLE)
    np.testing.assert_allclose(model.weights_, state.weights, **DOUBLE)
    np.testing.assert_allclose(model.view_weights_, state.view_weights, **DOUBLE)


def check_history(model, states, *, rtol, dissent_rtol):
    """Compare what was recorded of every round, and the objective."""
    assert len(model.history_) == model.n_iter_ == len(states)
    for record, state in zip(model.history_, states, strict=True):
        assert record.objective == pytest.approx(state.objective, rel=rtol)
        assert record.free_energy == pytest.approx(state.free_energy, rel=rtol)
        likelihood = list(record.log_likelihood.values())
        np.testing.assert_allclose(likelihood, state.log_likelihood, rtol=rtol)
        assert record.dissent == pytest.approx(state.dissent, rel=dissent_rtol, abs=1e-9)
        # A row in doubt may tip over in single precision; it is one of about a hundred.
        slack = 1e-12 if rtol < 1e-8 else 0.02
        assert record.agreement_rate == pytest.approx(state.agreement_rate, abs=slack)
        assert record.beta == state.beta
    assert model.objective_ == model.history_[-1].objective


def check_all(model, X, views, states):
    """Compare everything in double precision."""
    check_posteriors(model, X, views, states[-1], DOUBLE)
    check_parameters(model, states[-1])
    check_history(model, states, rtol=1e-11, dissent_rtol=1e-8)


def check_double(corpus, states, assigns=("joint", "average", "joint"), **options):
    """Compare a model after 1, 5 and 20 rounds with the states of a twin."""
    views = make_corpus(corpus)[0][: options.get("n_views", 3)]
    for rounds, assign in zip(ROUNDS, assigns, strict=True):
        model, X = fit(corpus, rounds, assign=assign, **options)
        check_all(model, X, views, states[:rounds])


def check_default(corpus, states, **options):
    """Compare posteriors after 1 and 5 rounds, and the objective up to 20."""
    views = make_corpus(corpus)[0][: options.get("n_views", 3)]
    for rounds in ROUNDS[:-1]:
        for assign in ("joint", "average"):
            model, X = fit(corpus, rounds, dtype=None, assign=assign, **options)
            check_posteriors(model, X, views, states[rounds - 1], SINGLE)
            check_history(model, states[:rounds], rtol=1e-5, dissent_rtol=1e-3)
    model, _ = fit(corpus, ROUNDS[-1], dtype=None, **options)
    assert model.objective_ == pytest.approx(states[-1].objective, rel=1e-5)


# -- the twin itself ------------------------------------------------------------------------------


def test_corpus_has_what_the_tests_need():
    for name in LENGTHS:
        views, resp = make_corpus(name)
        n_empty = (~np.stack([X.any(axis=1) for X in views], axis=1)).sum(axis=1)
        assert np.bincount(n_empty).tolist() == [120 - 33, 24, 8, 1]
        proba = twins.view_proba(views, co_em_states(name, "1", "global")[-1])
        in_doubt = proba.max(axis=2) < 0.99
        assert in_doubt.mean() > 0.05  # or else the comparison of posteriors would be idle
        np.testing.assert_allclose(resp.sum(axis=1), 1.0)


def test_twin_criterion_is_likelihood_less_dissent():
    """Theorem 1: Q^MV is the sum of the views' Q less eta times the dissent (Eq. 7, 10).

    At the parameters of the posteriors Q^SV is the log likelihood less the entropy of the
    posteriors. True of rows without empty views, so those are left out here.
    """
    views, resp = make_corpus("short")
    full = np.all([X.any(axis=1) for X in views], axis=0)
    views, eta = [X[full] for X in views], 0.3
    state = twins.co_em(views, resp[full], 1, eta=twins.constant(eta), weights="per_view")[0]
    entropy = 0.0
    for v, X in enumerate(views):
        logs = twins.log_probs(X, state.theta[v]) + np.log(state.view_weights[v])
        p = twins.posterior(logs)
        entropy -= np.sum(p * np.log(p))
    penalty = sum(table.sum() for table in state.theta)
    expected = sum(state.log_likelihood) - entropy - eta * state.dissent + penalty
    assert state.objective == pytest.approx(expected, rel=1e-12)


# -- three views ----------------------------------------------------------------------------------


@every_corpus
@every_eta
@every_weights
@every_assign
def test_co_em_double(corpus, eta, weights, assign):
    states = co_em_states(corpus, eta, weights)
    check_double(corpus, states, [assign] * 3, eta=ETAS[eta][0], weights=weights)


@every_corpus
@every_eta
@every_weights
def test_co_em_default(corpus, eta, weights):
    states = co_em_states(corpus, eta, weights)
    check_default(corpus, states, eta=ETAS[eta][0], weights=weights)


@every_corpus
@every_weights
@every_assign
@pytest.mark.parametrize("n_views", [1, 3], ids=["one", "joint"])
def test_em_double(corpus, weights, assign, n_views):
    states = em_states(corpus, n_views, weights)
    options = {"n_views": n_views, "coupling": "joint", "weights": weights}
    check_double(corpus, states, [assign] * 3, **options)


@every_corpus
@every_weights
@pytest.mark.parametrize("n_views", [1, 3], ids=["one", "joint"])
def test_em_default(corpus, weights, n_views):
    states = em_states(corpus, n_views, weights)
    check_default(corpus, states, n_views=n_views, coupling="joint", weights=weights)


@every_eta
@every_weights
def test_one_view_needs_no_coupling(eta, weights):
    """With one view co-EM is EM, whatever eta is."""
    states = em_states("short", 1, weights)
    check_double("short", states, n_views=1, eta=ETAS[eta][0], weights=weights)


@pytest.mark.parametrize("k", [1, 7, 8, 9, 17, 70])
@every_dtype
@pytest.mark.filterwarnings("ignore:components:sklearn.exceptions.ConvergenceWarning")
def test_any_number_of_components(k, dtype):
    """Kernels work on eight components at a time, and on 64 in one pass. Some of many may die."""
    views, _ = make_corpus("short")
    resp = 0.9 * np.eye(k)[np.arange(120) % k] + 0.1 / k
    family, rtol = Multinomial(alpha=0.01), 1e-11 if dtype else 1e-5
    options = {"init": resp, "max_iter": 2, "tol": 0, "dtype": dtype, "family": family}
    model, X = MixtureClusterer(k, **options), as_input(views)
    states = twins.co_em(views, resp, 2, eta=twins.constant(1.0), alpha=0.01)
    check_posteriors(model.fit(X), X, views, states[-1], DOUBLE if dtype else SINGLE)
    assert model.objective_ == pytest.approx(states[-1].objective, rel=rtol)
    states = twins.em(views[:1], resp, 2, alpha=0.01)
    check_posteriors(
        model.fit(views[0]), views[0], views[:1], states[-1], DOUBLE if dtype else SINGLE
    )
    assert model.objective_ == pytest.approx(states[-1].objective, rel=rtol)


# -- temperature ----------------------------------------------------------------------------------


@every_corpus
@every_beta
@pytest.mark.parametrize("n_views", [1, 3], ids=["one", "joint"])
def test_tempered_em(corpus, beta, n_views):
    value, schedule = BETAS[beta]
    states = em_states(corpus, n_views, "global", beta=schedule)
    check_double(corpus, states, n_views=n_views, coupling="joint", beta=value)


@every_beta
@every_weights
def test_tempered_co_em(beta, weights):
    value, schedule = BETAS[beta]
    states = co_em_states("short", "0.3", weights, beta=schedule)
    check_double("short", states, eta=0.3, weights=weights, beta=value)


# -- hard posteriors ------------------------------------------------------------------------------


@every_corpus
@every_weights
@pytest.mark.parametrize("n_views", [1, 3], ids=["one", "joint"])
def test_hard_em(corpus, weights, n_views):
    states = em_states(corpus, n_views, weights, hard=True)
    options = {"n_views": n_views, "coupling": "joint", "weights": weights}
    check_double(corpus, states, posterior="hard", **options)


@every_corpus
@every_eta
def test_hard_co_em(corpus, eta):
    states = co_em_states(corpus, eta, "global", hard=True)
    check_double(corpus, states, posterior="hard", eta=ETAS[eta][0])


# -- row weights ----------------------------------------------------------------------------------


@every_eta
@every_weights
def test_weighted_co_em(eta, weights):
    views, resp = make_corpus("short")
    options = {"eta": ETAS[eta][1], "weights": weights, "row_weight": row_weights()}
    states = twins.co_em(views, resp, ROUNDS[-1], **options)
    options = {"eta": ETAS[eta][0], "weights": weights}
    check_double("short", states, sample_weight=row_weights(), **options)


@every_weights
@pytest.mark.parametrize("n_views", [1, 3], ids=["one", "joint"])
def test_weighted_em(weights, n_views):
    views, resp = make_corpus("short")
    options = {"weights": weights, "row_weight": row_weights()}
    states = twins.em(views[:n_views], resp, ROUNDS[-1], **options)
    options = {"n_views": n_views, "coupling": "joint", "weights": weights}
    check_double("short", states, sample_weight=row_weights(), **options)


def test_weighted_default_precision():
    views, resp = make_corpus("short")
    states = twins.co_em(
        views, resp, ROUNDS[-1], eta=ETAS["1"][1], weights="global", row_weight=row_weights()
    )
    check_default("short", states, sample_weight=row_weights())


# -- patience -------------------------------------------------------------------------------------


@cache
def conflicting_views():
    """Return two views of different topics, whose likelihoods fall when they must agree."""
    rng = np.random.default_rng(48)
    topics, views = [rng.integers(K, size=60) for _ in range(2)], []
    for width, length, mine in zip((30, 20), (12, 8), topics, strict=True):
        words = rng.dirichlet(np.full(width, 0.5), size=K)
        rows = [rng.multinomial(1 + rng.poisson(length), words[j]) for j in mine]
        views.append(np.array(rows, dtype=float))
    resp = 0.25 * np.eye(K)[topics[0]] + 0.75 * rng.dirichlet(np.ones(K), size=60)
    return views, resp


@every_weights
@pytest.mark.parametrize("patience", [1, 2, 3])
def test_patience(weights, patience):
    """Stop when no view reaches a new maximum; return the parameters of the best round."""
    views, resp = conflicting_views()
    states = twins.co_em(views, resp, 20, eta=twins.constant(1.0), weights=weights)
    last, best = twins.stop_after(states, patience)
    steps = np.diff([state.log_likelihood for state in states[:last]], axis=0)
    assert best is not states[last - 1]  # or else the last parameters would do as well
    assert np.abs(steps).min() > 1e-3  # or else rounding would decide when to stop
    options = {"tol": 0, "patience": patience, "dtype": np.float64, "weights": weights}
    model = MixtureClusterer(K, init=resp, **options).fit(views)
    assert model.n_iter_ == last
    assert model.converged_
    check_posteriors(model, views, views, best, DOUBLE)
    check_parameters(model, best)
    assert model.objective_ == pytest.approx(best.objective, rel=1e-11)
    traces = [r.objective for r in model.history_], [state.objective for state in states[:last]]
    np.testing.assert_allclose(*traces, rtol=1e-11)


# -- tolerance ------------------------------------------------------------------------------------


@every_eta
@pytest.mark.parametrize("tol", [1e-3, 1e-4])
def test_tol_is_the_relative_change_over_a_round(eta, tol):
    """And an annealed eta has settled before it counts, after ten rounds here."""
    trace = [state.objective for state in co_em_states("short", eta, "global")]
    settled = 10 if eta == "annealed" else 1
    changes = np.abs(np.diff(trace)) / np.abs(trace[1:])
    last = next(t for t in range(2, 21) if t > settled and changes[t - 2] < tol)
    views, resp = make_corpus("short")
    options = {"init": resp, "tol": tol, "dtype": np.float64, "eta": ETAS[eta][0]}
    model = MixtureClusterer(K, **options).fit(views)
    assert model.converged_
    assert model.n_iter_ == last


def test_schedules_settle_before_tol_counts():
    """A schedule of ten steps has its last value from round eleven on, whatever its values."""
    views, resp = make_corpus("short")
    options = {"init": resp, "tol": 0.1, "dtype": np.float64}
    assert MixtureClusterer(K, **options).fit(views).n_iter_ == 2
    assert MixtureClusterer(K, eta=Linear(1, 1, 10), **options).fit(views).n_iter_ == 11
    assert MixtureClusterer(K, beta=Linear(1, 1, 10), **options).fit(views).n_iter_ == 11
