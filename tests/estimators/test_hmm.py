"""Hidden Markov models: twins, reductions, laws, and what a user can give and ask."""

import re
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import coem
from coem import HiddenMarkovModel, MixtureClusterer, Views
from coem.families import Gaussian, MixtureOf, Multinomial
from coem.io import checkpoint
from coem.report import read, tell
from coem.schedules import Linear
from tests.engines import CutEngine
from tests.estimators.test_checkpoint import Breaking, Stopped
from tests.truths import chains

K, LENGTHS = 3, [17, 1, 30, 12]
N = sum(LENGTHS)
RNG = np.random.default_rng(5)
GROUPS = np.repeat(RNG.integers(K, size=N // 6), 6)
POINTS = 2 * RNG.standard_normal((K, 2))[GROUPS] + RNG.standard_normal((N, 2))
WORDS = RNG.poisson(np.exp(RNG.standard_normal((K, 9)))[GROUPS])
RESP = 0.3 * np.eye(K)[GROUPS] + 0.7 * RNG.dirichlet(np.ones(K), size=N)
DIAG = Gaussian("diag", reg=0)
FIXED = {"init": RESP, "tol": 0.0}
TOL = {"rtol": 1e-8, "atol": 1e-10}


def fitted(X=POINTS, *, family=DIAG, lengths=LENGTHS, max_iter=11, y=None, weight=None, **params):
    model = HiddenMarkovModel(K, family=family, max_iter=max_iter, **{**FIXED, **params})
    return model.fit(X, y, lengths=lengths, sequence_weight=weight)


def close(one, other, **tol):
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, theirs, **(tol or TOL))


# -- twins --------------------------------------------------------------------------------------


def twin_cases():
    labels = np.where(np.arange(N) % 4 == 0, GROUPS, -1)
    gaps = POINTS.copy()
    gaps[[0, 5, 6, 20, N - 1]] = np.nan
    sticky = 1 + 4 * np.eye(K)
    yield "plain", POINTS, {}, {}
    yield (
        "labels",
        POINTS,
        {"y": labels},
        {"allowed": (labels[:, np.newaxis] == -1) | (labels[:, np.newaxis] == np.arange(K))},
    )
    weight = np.array([0.5, 2.0, 1.0, 3.0])
    yield "weights", POINTS, {"weight": weight}, {"weight": weight}
    yield "missing rows", gaps, {}, {}
    yield (
        "priors",
        POINTS,
        {"startprob_prior": 2.0, "transmat_prior": sticky},
        {"prior": (2.0, sticky)},
    )
    yield (
        "annealed",
        POINTS,
        {"beta": Linear(0.2, 1.0, 4)},
        {"betas": [0.2, 0.4, 0.6, 0.8] + [1.0] * 7},
    )
    yield "hard", POINTS, {"posterior": "hard"}, {"hard": True}


@pytest.mark.parametrize("case", list(twin_cases()), ids=lambda case: case[0])
def test_it_equals_its_twin(case):
    _, X, params, of_twin = case
    model = fitted(X, **params)
    start, transition, means, variances, resp, objective = chains.fit(
        X, LENGTHS, RESP, 11, **of_twin
    )
    theta = model.theta_["view0"]
    close((model.startprob_, model.transmat_), (start, transition))
    close(theta[:2], (means, variances))
    assert model.objective_ == pytest.approx(objective, rel=1e-10)
    if not {"y", "posterior"} & params.keys():
        close([model.predict_proba(X, LENGTHS)], [resp])


@pytest.mark.parametrize("kind", ["diag", "full", "categorical", "multinomial"])
def test_it_equals_hmmlearn(kind):
    hmm = pytest.importorskip("hmmlearn.hmm")
    X, family = POINTS, Gaussian(kind if kind == "full" else "diag", reg=0)
    if kind == "categorical":
        X, family = WORDS[:, :1].clip(max=4), coem.families.Categorical(alpha=0)
    elif kind == "multinomial":
        X, family = WORDS + 1, Multinomial(alpha=0, dtype=np.float64)
    first, model = (fitted(X, family=family, max_iter=n) for n in (1, 11))
    options = {"n_iter": 10, "tol": -np.inf, "init_params": ""}
    if kind == "categorical":
        other, names = hmm.CategoricalHMM(K, **options), ("emissionprob_",)
        emissions = [first.families_["view0"].feature_probs(first.theta_["view0"])]
        other.n_features = emissions[0].shape[1]
    elif kind == "multinomial":
        other, names = hmm.MultinomialHMM(K, n_trials=X.sum(axis=1), **options), ("emissionprob_",)
        emissions = [first.families_["view0"].feature_probs(first.theta_["view0"])]
    else:
        # Its M step divides by the mass plus the weight of a prior, which can be switched off.
        other = hmm.GaussianHMM(K, kind, min_covar=0, covars_prior=0, covars_weight=1, **options)
        other.covars_weight = 2 if kind == "full" else 1
        names, emissions, other.n_features = ("means_", "covars_"), first.theta_["view0"][:2], 2
    other.startprob_, other.transmat_ = first.startprob_, first.transmat_
    for name, value in zip(names, emissions, strict=True):
        setattr(other, name, value)
    other.fit(X, LENGTHS)
    close((model.startprob_, model.transmat_), (other.startprob_, other.transmat_))
    if len(names) == 1:
        close(
            [model.families_["view0"].feature_probs(model.theta_["view0"])], [other.emissionprob_]
        )
    else:
        close([model.theta_["view0"][0]], [other.means_])
    if kind != "multinomial":  # it counts the orders of words, which coem does not
        assert model.score(X, lengths=LENGTHS) == pytest.approx(other.score(X, LENGTHS), rel=1e-8)
    assert (model.predict(X, LENGTHS) == other.predict(X, LENGTHS)).all()
    close([model.predict_proba(X, LENGTHS)], [other.predict_proba(X, LENGTHS)])


def test_a_mixture_as_emission():
    """Every state has two components. The M step of hmmlearn takes variances around old means."""
    hmm = pytest.importorskip("hmmlearn.hmm")
    model = fitted(family=MixtureOf(DIAG, 2), max_iter=30)
    objectives = [record.objective for record in model.history_]
    assert (np.diff(objectives) >= -1e-9 * np.abs(objectives[1:])).all()
    log_weights, means, variances = model.theta_["view0"][:3]
    other = hmm.GMMHMM(K, 2, covariance_type="diag")
    other.n_features, other.startprob_, other.transmat_ = 2, model.startprob_, model.transmat_
    other.weights_, other.means_, other.covars_ = np.exp(log_weights), means, variances
    assert model.score(POINTS, lengths=LENGTHS) == pytest.approx(other.score(POINTS, LENGTHS))
    close([model.predict_proba(POINTS, LENGTHS)], [other.predict_proba(POINTS, LENGTHS)])


def test_the_best_path_is_that_of_the_twin():
    model = fitted()
    ends = np.cumsum(LENGTHS)
    chain = np.log(model.startprob_), np.log(model.transmat_)
    logs = chains.diag_gaussian(POINTS, *model.theta_["view0"][:2])
    found = [chains.viterbi(logs[e - n : e], *chain) for n, e in zip(LENGTHS, ends, strict=True)]
    log_prob, states = model.decode(POINTS, LENGTHS)
    assert (states == np.concatenate([path for path, _ in found])).all()
    assert log_prob == pytest.approx(sum(value for _, value in found), rel=1e-12)
    assert (model.labels_ == states).all()


@pytest.mark.slow
def test_a_long_sequence_stays_finite_and_exact():
    rng, k = np.random.default_rng(0), 50
    chain = rng.dirichlet(np.full(k, 0.1)), rng.dirichlet(np.full(k, 0.1), size=k)
    logs = 30 * rng.standard_normal((100_000, k))
    logs -= 1e3
    resp = np.empty_like(logs)
    offsets = np.array([0, len(logs)])
    markov = [np.log(np.maximum(p, 1e-300)) for p in chain]
    head = chains.forward_backward(logs[:50], *markov)[2]
    got = coem.kernels.chain.evidence(logs[:50].copy(), np.array([0, 50]), *markov)[0]
    assert got == pytest.approx(head, rel=1e-12)
    found = coem.kernels.chain.forward_backward(logs, offsets, *markov, resp=resp)
    assert np.isfinite(found.evidence).all()
    np.testing.assert_allclose(resp.sum(axis=1), 1, atol=1e-9)


# -- reductions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("posterior", ["soft", "hard"])
def test_sequences_of_one_row_are_a_mixture(posterior):
    model = fitted(lengths=np.ones(N, dtype=int), posterior=posterior)
    mixture = MixtureClusterer(
        K, family=DIAG, init=RESP, max_iter=11, tol=0, posterior=posterior
    ).fit(POINTS)
    close((model.startprob_, *model.theta_["view0"]), (mixture.weights_, *mixture.theta_["view0"]))
    assert model.objective_ == pytest.approx(mixture.objective_, rel=1e-12)
    close([model.score_samples(POINTS, np.ones(N, dtype=int))], [mixture.score_samples(POINTS)])


def test_equal_rows_of_transitions_are_a_mixture():
    mixture = MixtureClusterer(K, family=DIAG, init=RESP, max_iter=5, tol=0).fit(POINTS)
    model = fitted()
    model.theta_ = mixture.theta_
    model.startprob_, model.transmat_ = mixture.weights_, np.tile(mixture.weights_, (K, 1))
    close([model.predict_proba(POINTS, LENGTHS)], [mixture.predict_proba(POINTS)])
    total = mixture.score_samples(POINTS).sum()
    assert model.score(POINTS, lengths=LENGTHS) == pytest.approx(total, rel=1e-12)
    assert (model.predict(POINTS, LENGTHS) == mixture.predict(POINTS)).all()


def test_a_fitted_mixture_as_start_is_that_chain():
    mixture = MixtureClusterer(K, family=DIAG, init=RESP, max_iter=5, tol=0).fit(POINTS)
    model = fitted(init=mixture, max_iter=1)
    first = fitted(init=RESP, max_iter=1)
    first.theta_ = mixture.theta_
    first.startprob_, first.transmat_ = mixture.weights_, np.tile(mixture.weights_, (K, 1))
    close([fitted(init=first, max_iter=1).transmat_], [model.transmat_])


def test_all_rows_labelled_is_counting():
    model = fitted(y=GROUPS, max_iter=3)
    starts, steps = chains.counts_of(
        np.eye(K)[GROUPS],
        list(zip(np.cumsum(LENGTHS) - LENGTHS, np.cumsum(LENGTHS), strict=True)),
        np.ones(len(LENGTHS)),
    )
    close(
        [model.startprob_, model.transmat_],
        [starts / starts.sum(), steps / steps.sum(axis=1, keepdims=True)],
    )
    close([model.theta_["view0"][0]], [[POINTS[j == GROUPS].mean(axis=0) for j in range(K)]])


def test_views_are_multiplied():
    """Two Gaussian views with diagonal covariances are one wide one."""
    wide = np.hstack([POINTS, WORDS[:, :2] * 1.0])
    parts = fitted(Views(a=wide[:, :2], b=wide[:, 2:]))
    close((parts.startprob_, parts.transmat_), (fitted(wide).startprob_, fitted(wide).transmat_))


# -- laws ---------------------------------------------------------------------------------------


def same(one, other):
    assert (one.transmat_ == other.transmat_).all()
    assert (one.theta_["view0"][0] == other.theta_["view0"][0]).all()


def test_lengths_and_lists_are_the_same():
    ends = np.cumsum(LENGTHS)[:-1]
    same(fitted(), fitted(np.split(POINTS, ends), lengths=None))
    counts = sp.csr_matrix(WORDS)
    cuts = [0, *ends, N]
    parts = [counts[a:b] for a, b in pairwise(cuts)]
    family = Multinomial()
    one = fitted(counts, family=family)
    two = fitted([{"w": part} for part in parts], family=family, lengths=None)
    assert (one.transmat_ == two.transmat_).all()
    states = one.predict(counts, LENGTHS)
    assert (states == two.predict([Views(w=part) for part in parts])).all()
    assert (fitted(parts, family=family, lengths=None).predict(parts) == states).all()
    labels = np.where(np.arange(N) % 3 == 0, GROUPS, -1)
    same(fitted(y=labels), fitted(y=np.split(labels, ends)))


def test_the_order_of_sequences_does_not_matter_and_a_weight_of_two_is_twice():
    order = [2, 0, 3, 1]
    rows = np.split(np.arange(N), np.cumsum(LENGTHS)[:-1])
    other = np.concatenate([rows[s] for s in order])
    one = fitted()
    two = fitted(POINTS[other], lengths=[LENGTHS[s] for s in order], init=RESP[other])
    close((one.transmat_, one.startprob_), (two.transmat_, two.startprob_))
    twice = np.concatenate([np.arange(N), rows[2]])
    three = fitted(POINTS[twice], lengths=[*LENGTHS, LENGTHS[2]], init=RESP[twice])
    four = fitted(weight=[1, 1, 2, 1])
    close((three.transmat_, three.startprob_), (four.transmat_, four.startprob_))
    assert three.objective_ == pytest.approx(four.objective_, rel=1e-12)


@pytest.mark.parametrize("posterior", ["soft", "hard"])
def test_the_objective_never_falls(posterior):
    model = fitted(posterior=posterior, max_iter=40, transmat_prior=1.5)
    objectives = [record.objective for record in model.history_]
    assert (np.diff(objectives) >= -1e-9 * np.abs(objectives[1:])).all()


@pytest.mark.parametrize("params", [{}, {"n_jobs": 2}, {"engine": CutEngine(3)}])
def test_threads_and_engines_do_not_change_the_result(params):
    long = [*LENGTHS, 5000]
    rng = np.random.default_rng(0)
    X = np.concatenate([POINTS, rng.standard_normal((5000, 2))])
    models = [
        HiddenMarkovModel(K, family=DIAG, random_state=0, max_iter=4, tol=0, **p).fit(
            X, lengths=long
        )
        for p in ({}, params)
    ]
    close((models[0].transmat_,), (models[1].transmat_,))
    if "engine" not in params:
        same(*models)


def test_zeros_stay_zero():
    follow = np.triu(np.ones((K, K)))
    model = fitted(
        init="auto",
        random_state=0,
        startprob=[1, 0, 0],
        transmat=follow / follow.sum(axis=1, keepdims=True),
        startprob_prior=2.0,
        transmat_prior=3.0,
    )
    assert (model.startprob_[1:] == 0).all()
    assert (model.transmat_[follow == 0] == 0).all()
    for n in (LENGTHS, [N]):
        parts = np.split(model.predict(POINTS, n), np.cumsum(n)[:-1])
        assert all(part[0] == 0 and (np.diff(part) >= 0).all() for part in parts)
    other = fitted(transmat=follow / follow.sum(axis=1, keepdims=True))  # from responsibilities
    assert (other.transmat_[follow == 0] == 0).all()


def test_left_right_models_start_from_parts_of_the_sequences():
    rng = np.random.default_rng(0)
    means = np.array([0.0, 5.0, 0.0, 5.0])  # clusters of rows could not tell the states apart
    sequences = [(means[np.repeat(range(4), 8)] + rng.standard_normal(32))[:, None] for _ in "abcd"]
    follow = np.eye(4) + np.eye(4, k=1)
    model = HiddenMarkovModel(
        4,
        family="gaussian",
        startprob=np.eye(4)[0],
        transmat=follow / follow.sum(axis=1, keepdims=True),
        n_init=3,
        random_state=0,
    ).fit(sequences)
    assert (model.predict(sequences[0]) == np.repeat(range(4), 8)).mean() > 0.95
    # The same by name, in a chain that could go back.
    free = HiddenMarkovModel(4, family="gaussian", init="segments", random_state=1).fit(sequences)
    assert len(np.unique(free.labels_)) == 4


def test_labels_give_the_clusters_of_the_start_their_numbers():
    labels = np.full(N, -1)
    known = [int(np.flatnonzero(j == GROUPS)[0]) for j in range(K)]
    labels[known] = [2, 0, 1]  # states as the user numbers them
    model = HiddenMarkovModel(K, family="gaussian", random_state=0, n_init=3)
    model.fit(POINTS, labels, lengths=LENGTHS)
    assert (model.labels_[known] == [2, 0, 1]).all()


# -- what a user can ask --------------------------------------------------------------------------


def test_samples_have_the_statistics_of_the_model():
    model = fitted()
    X, states = model.sample(3000, random_state=0, n_sequences=4)
    assert X.shape == (12000, 2)
    again = fitted(X, lengths=[3000] * 4, init=np.eye(K)[states], max_iter=1)
    assert np.abs(again.transmat_ - model.transmat_).max() < 0.05
    assert np.abs(again.theta_["view0"][0] - model.theta_["view0"][0]).max() < 0.2
    views, _ = fitted(Views(a=POINTS, b=POINTS)).sample(3)
    assert isinstance(views, Views)


def test_explanations_add_up_to_the_odds_of_the_posteriors():
    X = Views(place=POINTS, words=WORDS)
    model = fitted(X, family={"place": DIAG, "words": Multinomial()}, max_iter=3)
    proba = model.predict_proba(X, LENGTHS)
    for row, own in zip(model.explain(X, LENGTHS), proba, strict=True):
        parts = sum(part.contributions.sum() + part.rest for part in row.views.values())
        assert row.log_odds == pytest.approx(row.prior + parts, abs=1e-9)
        assert row.label == own.argmax()
        if own[row.against] > 1e-200:
            odds = np.log(own[row.label] / own[row.against])
            assert row.log_odds == pytest.approx(odds, abs=1e-6)


def test_criteria_count_the_parameters_that_are_free():
    model = fitted()
    total = model.score(POINTS, lengths=LENGTHS)
    n_free = 2 * 2 * K + (K - 1) + K * (K - 1)
    assert model.aic(POINTS, LENGTHS) == pytest.approx(-2 * total + 2 * n_free)
    assert model.bic(POINTS, LENGTHS) == pytest.approx(-2 * total + np.log(N) * n_free)
    left_right = fitted(transmat=[[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]])
    assert model._n_parameters() - left_right._n_parameters() == 4


def test_restarts_keep_the_best_run():
    model = HiddenMarkovModel(K, family="gaussian", init="random", n_init=4, random_state=0)
    model.fit(POINTS, lengths=LENGTHS)
    assert len(model.runs_) == 4
    assert model.objective_ == max(run.objective for run in model.runs_)


def test_top_features_and_report():
    model = fitted(WORDS, family=Multinomial())
    assert [len(top) for top in model.top_features(n=4)] == [4] * K
    story = tell(model, WORDS, lengths=LENGTHS)
    assert story.model["noun"] == "state"
    reading = read(model, np.split(WORDS, np.cumsum(LENGTHS)[:-1]))
    assert (reading.groups == model.predict(WORDS, LENGTHS)).all()
    with pytest.raises(ValueError, match="has no sequences"):
        read(MixtureClusterer(2, random_state=0).fit(WORDS), WORDS, LENGTHS)


def test_a_stopped_fit_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "THRIFT", 0)
    params = {"family": DIAG, "n_init": 2, "max_iter": 6, "tol": 0, "random_state": 0}
    truth = HiddenMarkovModel(K, **params).fit(POINTS, lengths=LENGTHS)
    for calls in (1, 5, 9, 14, 20):
        folder = tmp_path / str(calls)
        stopped = HiddenMarkovModel(K, **params, checkpoint=folder, engine=Breaking(calls))
        with pytest.raises(Stopped):
            stopped.fit(POINTS, lengths=LENGTHS)
        if calls == 9:
            other = HiddenMarkovModel(K, **params, checkpoint=folder)
            with pytest.raises(ValueError, match="belongs to another fit"):
                other.fit(POINTS, lengths=[N])
        model = HiddenMarkovModel(K, **params, checkpoint=folder)
        same(model.fit(POINTS, lengths=LENGTHS), truth)
        assert not folder.exists()


def test_a_start_from_a_fitted_model_goes_on():
    half = fitted(max_iter=5)
    close((fitted(init=half, max_iter=6).transmat_,), (fitted(max_iter=11).transmat_,))


class Bounded(Gaussian):
    """A family that cannot draw every row."""

    def log_prob(self, X, theta):
        logs = super().log_prob(X, theta)
        logs[X[:, 0] > 100] = -np.inf
        return logs


def test_a_sequence_without_a_path_has_no_likelihood():
    model = fitted(family=Bounded("diag"))
    rows = np.concatenate([POINTS[:4], [[101.0, 0.0]], POINTS[4:6]])
    scores = model.score_samples(rows, [4, 2, 1])
    assert (np.isneginf(scores) == [False, True, False]).all()
    close([scores[[0]]], [model.score_samples(rows[:4])])
    with pytest.raises(ValueError, match="sequence 1: every path"):
        model.predict(rows, [4, 2, 1])


# -- bad input ------------------------------------------------------------------------------------

UPPER = [[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0, 1]]
BAD = {
    "too long": ({"lengths": [10, N]}, {}, "add up to 70, but X has 60 rows: sequence 1 ends"),
    "too short": ({"lengths": [10, 20]}, {}, "30 rows come after sequence 1"),
    "length 0": ({"lengths": [N, 0]}, {}, "sequence 1 has length 0"),
    "halves": ({"lengths": [N - 0.5, 0.5]}, {}, "whole numbers"),
    "label": (
        {"y": np.r_[np.full(20, -1), 7, np.full(N - 21, -1)]},
        {},
        "sequence 2, row 2 (row 20 of y): the label 7 is not a state; states are 0 to 2",
    ),
    "labels": ({"y": [0, 1]}, {}, "one label per row"),
    "words": ({"y": ["a"] * N}, {}, "y must hold the numbers of states"),
    "ragged labels": ({"y": [[0], [1], [2], [0]]}, {}, "sequence 0: y has 1 labels for 17 rows"),
    "few labels": ({"y": [[0] * 17]}, {}, "y has 1 sequences, and X has 4"),
    "weights": ({"sequence_weight": [1.0]}, {}, "one number per sequence, shape (4,)"),
    "negative": ({"sequence_weight": [1, 1, -1, 1]}, {}, "sequence 2: the weight -1.0"),
    "no weight": ({"sequence_weight": [0] * 4}, {}, "is 0 for every sequence"),
    "no path": (
        {"y": np.r_[np.full(18, -1), 2, 0, np.full(N - 20, -1)]},
        {"transmat": UPPER},
        "sequence 2: every path through the states has probability zero",
    ),
    "start": ({}, {"startprob": [1, 1, 1]}, "startprob sums to 3"),
    "transitions": ({}, {"transmat": np.eye(K) * 0.5}, "transmat: row 0 sums to 0.5"),
    "shape": ({}, {"transmat": np.eye(2)}, "transmat must have shape (3, 3), got (2, 2)"),
    "below 0": ({}, {"startprob": [2, -1, 0]}, "0 or more"),
    "prior": ({}, {"transmat_prior": 0.5}, "transmat_prior must be 1 or more"),
    "numbers": ({}, {"startprob_prior": "x"}, "startprob_prior must hold numbers"),
    "nan": ({}, {"startprob_prior": np.nan}, "must hold finite numbers"),
    "beta": ({}, {"beta": 0.0}, "beta must be above 0"),
    "posterior": ({}, {"posterior": "best"}, "posterior must be one of"),
    "init": ({}, {"init": "k-means"}, "init must be one of"),
    "init shape": ({}, {"init": np.ones((4, 3))}, "init must have shape (60, 3)"),
    "states": ({}, {"n_components": N + 1}, "cannot fill n_components=61 states"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case):
    args, params, message = BAD[case]
    model = HiddenMarkovModel(**{"n_components": K, "family": "gaussian", **params})
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(POINTS, **{"lengths": LENGTHS, **args})
    assert not hasattr(model, "theta_")


def test_bad_lists_are_named():
    model = HiddenMarkovModel(2, family="gaussian")
    parts = np.split(POINTS, [20])
    with pytest.raises(ValueError, match="leave lengths out"):
        model.fit(parts, lengths=[20, 40])
    with pytest.raises(ValueError, match="sequence 1: it has 1 columns"):
        model.fit([parts[0], parts[1][:, :1]])
    with pytest.raises(ValueError, match="sequence 1: it must have rows and columns"):
        model.fit([parts[0], parts[1][:, 0]])
    with pytest.raises(ValueError, match="sequence 1: it is a ndarray"):
        model.fit([{"a": parts[0]}, parts[1]])
    with pytest.raises(ValueError, match="sequence 1 has length 0"):
        model.fit([parts[0], parts[1][:0]])
    with pytest.raises(ValueError, match="init: the fitted model has other views"):
        HiddenMarkovModel(2, family="gaussian", init=fitted()).fit(POINTS)
    with pytest.raises(ValueError, match="init: the fitted model has other families"):
        fitted(init=fitted(), family=Gaussian("full"))
