"""The two-view EM of Bickel & Scheffer (2004), and what Section 4.5 asks of its result.

In double precision fast and slow code differ by the order of their sums; 1e-9 leaves room for
what a few dozen passes make of that, and for nothing else.
"""

from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp

from coem import MixtureClusterer, Views
from coem.analysis import entropy_trace
from tests.truths import two_views as paper

K = 3
TABLE_1 = {"eta": 1.0, "weights": "uniform", "assign": "average", "tol": 0}
PRIORS = {"uniform": True, "per_view": False}  # constant, or Eq. 5
DOUBLE = {"rtol": 0.0, "atol": 1e-9}

every_priors = pytest.mark.parametrize("weights", PRIORS)
every_patience = pytest.mark.parametrize("patience", [1, 2, 4])


@cache
def corpus():
    """Return two views that contradict each other, the classes, and parameters of view 2.

    The seed was searched for: `test_the_corpus_can_tell_mistakes` says what few have.
    """
    rng = np.random.default_rng(117)
    truth = rng.integers(K, size=48)
    other = np.where(rng.random(48) < 0.5, rng.integers(K, size=48), truth)
    views = []
    for width, length, topics in zip((16, 12), (9, 6), (truth, other), strict=True):
        chances = rng.dirichlet(np.full(width, 0.7), size=K)
        rows = [rng.multinomial(1 + rng.poisson(length), chances[j]) for j in topics]
        views.append(np.array(rows, dtype=float))
    begin = paper.Theta(rng.dirichlet(np.full(12, 3.0), size=K), np.full(K, 1 / K))
    return views, truth, begin


@cache
def passes(patience, weights):
    views, _, begin = corpus()
    return paper.table_1(views, begin, patience, PRIORS[weights])


def as_input():
    first, second = corpus()[0]
    return Views(first=sp.csr_matrix(first), second=second)


def fit(patience, weights="uniform", **options):
    """Return the model of Table 1, which begins with the E step of view 2."""
    views, _, begin = corpus()
    options = TABLE_1 | {"weights": weights, "dtype": np.float64} | options
    init = paper.first_posteriors(views[1], begin)
    return MixtureClusterer(K, init=init, patience=patience, **options).fit(as_input())


def check_state(model, state, tol):
    """Compare parameters, posteriors and the partition."""
    X = as_input()
    for table, theta in zip(model.theta_.values(), state.theta, strict=True):
        np.testing.assert_allclose(np.exp(table), theta.words, **tol)
    priors = [theta.priors for theta in state.theta]
    np.testing.assert_allclose(model.view_weights_, priors, **tol)
    found = model.view_proba(X).transpose(1, 0, 2)
    np.testing.assert_allclose(found, state.posteriors, **tol)
    np.testing.assert_allclose(model.predict_proba(X), np.mean(state.posteriors, axis=0), **tol)
    np.testing.assert_array_equal(model.labels_, paper.partition(state))
    np.testing.assert_array_equal(model.predict(X), paper.partition(state))


# -- Table 1 --------------------------------------------------------------------------------------


@pytest.mark.slow
@every_priors
@every_patience
def test_table_1_is_a_line_of_configuration(patience, weights):
    states = passes(patience, weights)
    best = max(states, key=lambda state: sum(state.log_likelihood))
    model = fit(patience, weights)
    assert model.n_iter_ == len(states)
    assert model.converged_
    check_state(model, best, DOUBLE)
    for record, state in zip(model.history_, states, strict=True):
        values = list(record.log_likelihood.values())
        np.testing.assert_allclose(values, state.log_likelihood, rtol=1e-11)
        assert record.agreement_rate == pytest.approx(paper.agreement(state), abs=1e-12)


@every_priors
def test_default_precision_takes_the_same_course(weights):
    states = passes(2, weights)
    model = fit(2, weights, dtype=None)
    assert model.n_iter_ == len(states)
    best = max(states, key=lambda state: sum(state.log_likelihood))
    check_state(model, best, {"rtol": 0.0, "atol": 1e-4})


def test_the_corpus_can_tell_mistakes():
    """The best pass is not the last, views differ in their maxima, rounding decides nothing."""
    for weights in PRIORS:
        runs = [passes(patience, weights) for patience in (1, 2, 4)]
        for states in runs:
            values = np.array([state.log_likelihood for state in states])
            assert values.sum(axis=1).argmax() < len(values) - 1
            assert np.abs(np.diff(values, axis=0)).min() > 1e-5
        assert values[:, 0].argmax() != values[:, 1].argmax()
        halves = [state.posteriors for state in runs[0]][-1]
        assert (halves[0].argmax(axis=1) != halves[1].argmax(axis=1)).any()  # Eq. 7 has a choice
    # A wait that a new maximum cuts short: patience is more than some rounds added at the end.
    assert [len(passes(patience, "per_view")) for patience in (1, 2, 4)] == [6, 7, 40]


def test_the_first_views_own_start_is_never_used():
    """A fitted model as start stands for the parameters of both; Table 1 asks for view 2's."""
    options = {"init": "random", "random_state": 1, "max_iter": 1, "dtype": np.float64}
    first = MixtureClusterer(K, **TABLE_1 | options).fit(as_input())
    begin = paper.Theta(np.exp(first.theta_["second"]), np.full(K, 1 / K))
    states = paper.table_1(corpus()[0], begin, 2)
    warm = MixtureClusterer(K, init=first, patience=2, dtype=np.float64, **TABLE_1)
    warm.fit(as_input())
    assert warm.n_iter_ == len(states)
    check_state(warm, max(states, key=lambda state: sum(state.log_likelihood)), DOUBLE)


# -- Figure 5 -------------------------------------------------------------------------------------


def test_trace_is_the_entropy_and_agreement_of_every_pass():
    views, truth, begin = corpus()
    states = passes(4, "uniform")
    model = MixtureClusterer(K, init=paper.first_posteriors(views[1], begin), patience=4, **TABLE_1)
    trace = entropy_trace(model.set_params(dtype=np.float64), as_input(), truth)
    expected = [paper.entropy(truth.tolist(), paper.partition(state).tolist()) for state in states]
    assert len(set(expected)) > 3
    np.testing.assert_allclose([record.entropy for record in trace], expected, atol=1e-12)
    rates = [record.agreement_rate for record in trace]
    np.testing.assert_allclose(rates, [paper.agreement(state) for state in states], atol=1e-12)


# -- Equation 17 and Figure 6 ---------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["uniform", "per_view", "global"])
def test_score_samples_adds_up_to_equation_17(weights):
    """The priors are those of both views together; for priors of each view their mean."""
    model = fit(2, weights)
    tables = [np.exp(table) for table in model.theta_.values()]
    expected = paper.equation_17(corpus()[0], tables, model.weights_)
    assert model.score_samples(as_input()).sum() == pytest.approx(expected, rel=1e-12)
    if weights == "per_view":
        assert np.ptp(model.view_weights_, axis=0).max() > 1e-3
        np.testing.assert_allclose(model.weights_, model.view_weights_.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_scale_between_concatenated_vectors_is_a_constant(share):
    """Two vectors that sum to one are scaled to sum to one together: no posterior knows how."""
    views, _, _ = corpus()
    model = fit(2)
    shares = share, 1 - share
    words = paper.concatenated([np.exp(table) for table in model.theta_.values()], shares)
    np.testing.assert_allclose(words.sum(axis=1), 1.0)
    logs = paper.log_likelihood_of_rows(np.hstack(views), words)
    posteriors, value = paper.e_step(logs, model.weights_)
    joint = model.set_params(assign="joint").predict_proba(as_input())
    np.testing.assert_allclose(joint, posteriors, **DOUBLE)
    constant = sum(X.sum() * np.log(part) for X, part in zip(views, shares, strict=True))
    assert model.score_samples(as_input()).sum() + constant == pytest.approx(value, rel=1e-12)


@every_priors
def test_single_view_em_goes_on_from_concatenated_vectors(weights):
    """Figure 6: the responsibilities of the joint posterior stand for the vectors."""
    model = fit(2, weights).set_params(assign="joint")
    words = paper.concatenated([np.exp(table) for table in model.theta_.values()], (0.5, 0.5))
    begin, X = paper.Theta(words, model.weights_), np.hstack(corpus()[0])
    theta, posteriors, value = paper.single_view(X, begin, 6, PRIORS[weights])
    options = {"weights": weights, "max_iter": 6, "tol": 0, "dtype": np.float64}
    single = MixtureClusterer(K, init=model.predict_proba(as_input()), **options)
    single.fit(as_input().concat())
    np.testing.assert_allclose(np.exp(single.theta_["view0"]), theta.words, **DOUBLE)
    np.testing.assert_allclose(single.weights_, theta.priors, **DOUBLE)
    np.testing.assert_allclose(single.predict_proba(X), posteriors, **DOUBLE)
    assert single.score_samples(X).sum() == pytest.approx(value, rel=1e-12)


def test_joint_coupling_goes_on_with_equation_17():
    """Each view keeps a distribution of its own, and Eq. 17 is what EM then maximises."""
    model = fit(2)
    tables = [np.exp(table) for table in model.theta_.values()]
    words, posteriors, value = paper.product_of_views(corpus()[0], tables, model.weights_, 6)
    options = {"coupling": "joint", "weights": "uniform", "max_iter": 6, "tol": 0}
    joint = MixtureClusterer(K, init=model, dtype=np.float64, **options).fit(as_input())
    for table, expected in zip(joint.theta_.values(), words, strict=True):
        np.testing.assert_allclose(np.exp(table), expected, **DOUBLE)
    np.testing.assert_allclose(joint.predict_proba(as_input()), posteriors, **DOUBLE)
    assert joint.history_[-1].log_likelihood["joint"] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("weights", ["uniform", "per_view", "global"])
def test_a_joint_warm_start_has_the_posterior_of_the_model(weights):
    """Weights of each view would give it another one than `predict_proba` and Eq. 17 have."""
    model = fit(2, weights, assign="joint")
    options = {"coupling": "joint", "max_iter": 1, "tol": 0, "dtype": np.float64}
    warm = MixtureClusterer(K, init=model, **options).fit(as_input())
    given = MixtureClusterer(K, init=model.predict_proba(as_input()), **options).fit(as_input())
    np.testing.assert_allclose(warm.predict_proba(as_input()), given.predict_proba(as_input()))
    assert warm.objective_ == pytest.approx(given.objective_, rel=1e-13)
