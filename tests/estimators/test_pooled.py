"""A mixture and a regression together: twins, laws, and what follows from few labels."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import coem
from coem import MixtureClassifier, Not, PooledClassifier, Views
from coem.calibration import bounded, pool, pool_settings
from coem.estimators import _linear
from coem.estimators._pool import NEW, OWN, PRIOR, TRUST_IN_LABELS
from coem.report import read, tell

N, K = 300, 3
RNG = np.random.default_rng(5)
TRUTH = RNG.choice(K, size=N, p=[0.6, 0.3, 0.1])
WORDS = RNG.poisson(15 * RNG.dirichlet(np.full(60, 0.4), size=K)[TRUTH]).astype(float)
UNIT = RNG.standard_normal((K, 4))[TRUTH] + RNG.standard_normal((N, 4))
UNIT /= np.linalg.norm(UNIT, axis=1, keepdims=True)
POINTS = 2 * RNG.standard_normal((K, 2))[TRUTH] + RNG.standard_normal((N, 2))
VIEWS = {"words": sp.csr_array(WORDS), "unit": UNIT, "points": POINTS}
FAMILIES = {"words": "multinomial", "unit": "von_mises_fisher", "points": "gaussian"}


def some(n_per_class, seed=0):
    """Return labels, with -1 for all rows but a few of each class."""
    rng, y = np.random.default_rng(seed), np.full(N, -1)
    for c in range(K):
        rows = rng.choice(np.flatnonzero(c == TRUTH), n_per_class, replace=False)
        y[rows] = c
    return y


ONE, TEN = some(1), some(10)
MIXTURE = MixtureClassifier(family=FAMILIES, tol=1e-5, random_state=0, unlabeled_weight=0.1)


def fitted(y=TEN, **params):
    mixture = params.pop("mixture", MIXTURE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PooledClassifier(mixture, **params).fit(Views(VIEWS), y)


def slow_features():
    """Return what the regression sees, cell by cell."""
    roots = np.zeros_like(WORDS)
    for j in range(WORDS.shape[1]):
        present = sum(WORDS[i, j] > 0 for i in range(N))
        for i in range(N):
            roots[i, j] = np.sqrt(WORDS[i, j]) * (1 + np.log((1 + N) / (1 + present)))
    roots /= np.linalg.norm(roots, axis=1, keepdims=True)
    numbers = (POINTS - POINTS.mean(axis=0)) / POINTS.std(axis=0) / np.sqrt(2)
    return np.hstack([roots, UNIT, numbers])


def slow_regression(rows, labels):
    model = LogisticRegression(C=10, max_iter=10_000, tol=1e-10)
    X = slow_features()
    return model.fit(X[rows], labels[rows]).predict_log_proba(X)


def test_a_pool_without_held_out_labels_is_that_of_a_twin():
    model = fitted(ONE)
    assert tuple(model.pool_[name] for name in NEW) == PRIOR
    assert not len(model.held_out_.rows)
    mixture = clone(MIXTURE).fit(Views(VIEWS), ONE)
    votes = mixture.predict_log_proba(Views(VIEWS)), slow_regression(ONE >= 0, ONE)
    wanted = slow_pool(votes, PRIOR)
    np.testing.assert_allclose(model.predict_log_proba(Views(VIEWS)), wanted, atol=2e-3)
    assert (model.labels_ == wanted.argmax(axis=1)).mean() > 0.99


@pytest.mark.slow
def test_held_out_rows_stay_in_the_fit_without_their_labels():
    """Hold out the same folds by hand."""
    model = fitted(class_shares="labels")
    rows, folds = model.held_out_.rows, model.held_out_.folds
    assert sorted(rows.tolist()) == np.flatnonzero(TEN >= 0).tolist()
    mixtures, regressions = np.empty((len(rows), K)), np.empty((len(rows), K))
    for fold in range(5):
        test = rows[folds == fold]
        hidden = TEN.copy()
        hidden[test] = -1
        one = clone(MIXTURE).fit(Views(VIEWS), hidden)
        mixtures[folds == fold] = one.predict_log_proba(Views(VIEWS)[test])
        regressions[folds == fold] = slow_regression(hidden >= 0, hidden)[test]
    settings = slow_settings([mixtures, regressions], TEN[rows])
    np.testing.assert_allclose([model.pool_[name] for name in OWN], settings, rtol=0.01)
    for fold in range(5):
        others = folds != fold
        settings = slow_settings([mixtures[others], regressions[others]], TEN[rows[others]])
        proba = np.exp(slow_pool([mixtures[~others], regressions[~others]], settings))
        np.testing.assert_allclose(model.held_out_.proba[~others], proba, atol=5e-3)
    right = model.held_out_.proba.argmax(axis=1) == TEN[rows]
    assert model.pool_.accuracy == pytest.approx(right.mean())


@pytest.mark.slow
def test_new_rows_are_judged_by_fits_without_the_held_out_rows():
    model = fitted(class_shares="labels")
    rows, folds = model.held_out_.rows, model.held_out_.folds
    mixtures, regressions = np.empty((len(rows), K)), np.empty((len(rows), K))
    for fold in range(5):
        test = rows[folds == fold]
        train = np.setdiff1d(np.arange(N), test)
        one = clone(MIXTURE).fit(Views(VIEWS)[train], TEN[train])
        mixtures[folds == fold] = one.predict_log_proba(Views(VIEWS)[test])
        known = np.setdiff1d(np.flatnonzero(TEN >= 0), test)
        regressions[folds == fold] = slow_regression(known, TEN)[test]
    settings = slow_settings([mixtures, regressions], TEN[rows])
    np.testing.assert_allclose([model.pool_[name] for name in NEW], settings, rtol=0.01)
    views = {name: np.asarray(X.todense()) if sp.issparse(X) else X for name, X in VIEWS.items()}
    new = Views({name: X + (name == "points") * 1e-9 for name, X in views.items()})
    votes = model.mixture_.predict_log_proba(new), slow_regression(TEN >= 0, TEN)
    wanted = np.exp(slow_pool(votes, settings))
    np.testing.assert_allclose(model.predict_proba(new), wanted, atol=0.01)
    np.testing.assert_array_equal(  # own rows are known, dense or sparse
        model.predict_proba(Views(views)).argmax(axis=1), model.labels_
    )


def slow_pool(votes, settings):
    """Return log P(class | row) of a pool, row by row."""
    *weights, limit = settings
    rows = []
    for parts in zip(*votes, strict=True):
        total = sum(w * part for w, part in zip(weights, parts, strict=True))
        evidence = sum(total.max() - value for value in total) / len(total)
        total = total * limit / (limit + evidence)
        rows.append(total - logsumexp(total))
    return np.array(rows)


def slow_settings(votes, truth, prior=PRIOR):
    """Return weights and limit by a search without derivatives."""

    def loss(off):
        log_proba = slow_pool(votes, prior * np.exp(off))
        return -sum(row[c] for row, c in zip(log_proba, truth, strict=True)) + (off**2).sum()

    options = {"xatol": 1e-6, "fatol": 1e-9, "maxiter": 2000}
    found = minimize(loss, np.zeros(len(prior)), method="Nelder-Mead", options=options)
    return prior * np.exp(found.x)


def random_votes(n=80, seed=1):
    rng = np.random.default_rng(seed)
    truth = rng.integers(K, size=n)
    good = log_softmax(2 * np.eye(K)[truth] + rng.standard_normal((n, K)), axis=1)
    bad = log_softmax(9 * rng.standard_normal((n, K)), axis=1)
    return [good, bad], truth


@pytest.mark.slow
def test_settings_are_those_of_a_twin_and_a_model_that_guesses_loses_its_vote():
    votes, truth = random_votes()
    prior = 1.0, 1.0, 5.0
    found = pool_settings(votes, truth, prior)
    np.testing.assert_allclose(found, slow_settings(votes, truth, prior), rtol=1e-4)
    assert found[1] < 0.2 < found[0]
    np.testing.assert_allclose(pool(votes, found), slow_pool(votes, found), atol=1e-12)


def test_the_limit_falls_if_sure_rows_are_as_often_wrong_as_others():
    """Rows of all lengths are right in three of four cases, however sure the models are."""
    rng = np.random.default_rng(0)
    said, truth = rng.integers(K, size=400), rng.integers(K, size=400)
    truth = np.where(rng.random(400) < 0.75, said, truth)
    votes = [log_softmax(rng.uniform(2, 200, size=(400, 1)) * np.eye(K)[said], axis=1)]
    weight, limit = pool_settings(votes, truth, (1.0, 10.0))
    assert limit < 3
    sure = np.exp(pool(votes, np.array([weight, limit]))).max(axis=1)
    right = (said == truth).mean()
    for part in np.array_split(np.argsort(votes[0].max(axis=1)), 3):
        assert abs(sure[part].mean() - right) < 0.12


def test_a_pool_of_one_model_is_bounded_by_its_limit():
    (vote, _), _ = random_votes()
    wanted = bounded(2 * vote, np.full(K, 1 / K), 3.0)
    np.testing.assert_allclose(pool([vote], np.array([2.0, 3.0])), wanted, atol=1e-12)


def test_a_row_of_weight_two_counts_as_two_rows():
    votes, truth = random_votes()
    weight = np.ones(len(truth))
    weight[::3] = 2
    twice = np.repeat(np.arange(len(truth)), weight.astype(int))
    one = pool_settings(votes, truth, PRIOR, weight)
    other = pool_settings([vote[twice] for vote in votes], truth[twice], PRIOR)
    np.testing.assert_allclose(one, other, rtol=1e-5)


def test_without_rows_the_settings_are_the_prior():
    votes, truth = random_votes(0)
    np.testing.assert_allclose(pool_settings(votes, truth, PRIOR), PRIOR)


def test_no_model_alone_can_rule_out_a_class():
    sure = np.log([[1.0, 1e-300]]) * [[1, np.inf]]
    both = pool([sure, np.log([[0.4, 0.6]])], np.array([0.001, 1.0, 10.0]))
    assert np.isfinite(both).all()


@pytest.mark.parametrize("n_rows", [5, 40, 200])
def test_coordinates_in_the_span_of_the_rows_give_the_same_regression(n_rows, monkeypatch):
    rng = np.random.default_rng(n_rows)
    X = sp.csr_array(sp.random_array((n_rows, 90), density=0.2, random_state=rng))
    codes = np.arange(n_rows) % 3
    monkeypatch.setattr(_linear, "MAX_ITER", 20_000)
    long = LogisticRegression(C=5, tol=1e-10, max_iter=20_000).fit(sp.csr_matrix(X), codes)
    coef, intercept = _linear._solve(X, codes, None, 5)
    wanted = long.predict_log_proba(sp.csr_matrix(X))
    np.testing.assert_allclose(log_softmax(X @ coef.T + intercept, axis=1), wanted, atol=2e-3)


def slow_shares(proba, start, pseudo_rows):
    shares = start.copy()
    for _ in range(500):
        total = np.zeros(K)
        for row in proba:
            new = [row[c] * shares[c] / start[c] for c in range(K)]
            total += np.array(new) / sum(new)
        total += start * pseudo_rows
        shares = total / total.sum()
    return shares


@pytest.mark.slow
def test_the_shares_of_the_classes_are_those_of_a_twin():
    plain, model = fitted(class_shares="labels"), fitted()
    start, loose = np.full(K, 1 / K), TEN < 0
    pseudo_rows = TRUST_IN_LABELS * loose.sum() + (~loose).sum()
    shares = slow_shares(plain.predict_proba(Views(VIEWS)[loose]), start, pseudo_rows)
    np.testing.assert_allclose(model.pool_.log_change, np.log(shares / start), atol=1e-6)
    votes = plain.predict_log_proba(Views(VIEWS)) + np.log(shares / start)
    wanted = log_softmax(votes, axis=1)
    np.testing.assert_allclose(model.predict_log_proba(Views(VIEWS)), wanted, atol=1e-6)


def test_the_shares_come_nearer_to_those_of_the_rows():
    """The labels have equal shares, and the rows have not."""
    model = fitted()
    true = np.bincount(TRUTH) / N
    found = np.exp(model.pool_.log_change) / K
    assert found.sum() == pytest.approx(1)
    assert np.abs(found - true).sum() < 0.5 * np.abs(1 / K - true).sum()


def test_without_unlabelled_rows_the_shares_are_those_of_the_labels():
    model = fitted(TRUTH, mixture=clone(MIXTURE).set_params(unlabeled_weight="auto"))
    np.testing.assert_array_equal(model.pool_.log_change, 0)
    assert model.unlabeled_weight_ == 1.0
    assert not model.cv_results_
    assert model.score(Views(VIEWS), TRUTH) > 0.95


def test_the_weight_of_unlabelled_rows_is_found_on_the_same_folds():
    model = fitted(mixture=clone(MIXTURE).set_params(unlabeled_weight="auto"))
    tried = {record.unlabeled_weight: record.log_loss for record in model.cv_results_}
    assert list(tried) == [0.01, 0.1, 1.0]
    assert model.unlabeled_weight_ == min(tried, key=tried.get) == model.mixture_.unlabeled_weight_
    again = fitted(mixture=clone(MIXTURE).set_params(unlabeled_weight=model.unlabeled_weight_))
    np.testing.assert_array_equal(model.held_out_.proba, again.held_out_.proba)
    np.testing.assert_array_equal(
        model.predict_proba(Views(VIEWS)), again.predict_proba(Views(VIEWS))
    )


def test_explanations_add_up_to_the_log_odds_of_the_pool():
    model = fitted()
    rows = Views(VIEWS)[:20]
    log_proba = np.sort(model.predict_log_proba(rows), axis=1)
    for told, logs, label in zip(model.explain(rows), log_proba, model.predict(rows), strict=True):
        parts = [float(np.sum(p.contributions)) + p.rest for p in told.views.values()]
        assert told.log_odds == pytest.approx(told.prior + sum(parts))
        assert told.log_odds == pytest.approx(logs[-1] - logs[-2], rel=1e-3, abs=1e-3)
        assert told.label == label
        assert set(told.views["words"].features) <= set(range(60))


def test_explanations_of_long_rows_add_up_though_votes_have_a_floor():
    """A text of a million words is sure beyond the least log probability of a vote."""
    model = fitted()
    long = Views({**VIEWS, "words": VIEWS["words"] * 1e4})[:5]
    votes = model.mixture_.predict_log_proba(long)
    assert votes.min() < -1e4
    log_proba = np.sort(model.predict_log_proba(long), axis=1)
    for told, logs in zip(model.explain(long), log_proba, strict=True):
        assert told.log_odds == pytest.approx(logs[-1] - logs[-2], rel=1e-3, abs=1e-3)


def test_a_view_that_is_left_out_of_the_mixture_is_left_out_of_the_regression():
    noise = np.random.default_rng(0).random((N, 1))
    views = Views({"words": WORDS, "points": POINTS, "noise": noise})
    family = {"words": "multinomial", "points": "gaussian", "noise": "gaussian"}
    with pytest.warns(Warning, match="'noise' is left out") as caught:
        model = PooledClassifier(clone(MIXTURE).set_params(family=family)).fit(views, TEN)
    assert len([w for w in caught if "left out" in str(w.message)]) == 1
    assert model.silent_views_ == ("noise",)
    assert set(model.linear_.weights) == {"words", "points"}


def test_a_small_weight_of_unlabelled_rows_silences_no_view():
    views = Views({"words": WORDS, "points": POINTS})
    mixture = MixtureClassifier(
        family={"words": "multinomial", "points": "gaussian"}, unlabeled_weight=0.01
    )
    assert mixture.fit(views, TEN).silent_views_ == ()


def test_copies_of_a_row_are_held_out_together():
    views = {name: X[np.repeat(np.arange(N), 2)] for name, X in VIEWS.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PooledClassifier(MIXTURE).fit(Views(views), np.repeat(TEN, 2))
    rows, folds = model.held_out_.rows, model.held_out_.folds
    place = dict(zip(rows.tolist(), folds.tolist(), strict=True))
    assert len(place) == 2 * (TEN >= 0).sum()
    assert all(place[row] == place[row ^ 1] for row in place)
    once = fitted()
    assert sorted(once.held_out_.rows.tolist()) == sorted({row // 2 for row in place})
    assert all(place[2 * row] == fold for row, fold in zip(*folds_of(once), strict=True))


def folds_of(model):
    return model.held_out_.rows.tolist(), model.held_out_.folds.tolist()


def test_the_order_of_the_rows_does_not_matter():
    order = np.random.default_rng(3).permutation(N)
    views = {name: X[order] for name, X in VIEWS.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = PooledClassifier(MIXTURE).fit(Views(views), TEN[order])
    model = fitted()
    proba = model.predict_proba(Views(VIEWS))[order]
    np.testing.assert_allclose(other.predict_proba(Views(views)), proba, atol=1e-4)


def test_threads_and_repeats_change_no_bit():
    one = fitted().predict_proba(Views(VIEWS))
    for n_jobs in (1, 2):
        other = fitted(mixture=clone(MIXTURE).set_params(n_jobs=n_jobs))
        np.testing.assert_array_equal(other.predict_proba(Views(VIEWS)), one)


@pytest.mark.parametrize("y", [ONE, TEN, np.array(["a", "b", "c", ""])[TEN]])
def test_a_saved_pool_says_the_same(y, tmp_path):
    model = fitted(y)
    model.save(tmp_path / "pool.coem")
    again = coem.load(tmp_path / "pool.coem")
    np.testing.assert_array_equal(
        again.predict_log_proba(Views(VIEWS)), model.predict_log_proba(Views(VIEWS))
    )
    assert again.classes_.tolist() == model.classes_.tolist()
    assert (
        again.explain(Views(VIEWS)[:1])[0].log_odds == model.explain(Views(VIEWS)[:1])[0].log_odds
    )


def test_a_report_has_the_probabilities_of_the_pool():
    model = fitted()
    reading = read(model, Views(VIEWS))
    np.testing.assert_array_equal(reading.proba, model.predict_proba(Views(VIEWS)))
    story = tell(model, Views(VIEWS), labels=TEN)
    assert [group.label for group in story.groups] == [0, 1, 2]
    assert story.trace["objective"]


def test_empty_rows_and_missing_numbers_are_taken():
    words, points = WORDS.copy(), POINTS.copy()
    words[7], points[9] = 0, np.nan
    views = Views({"words": sp.csr_array(words), "points": points})
    family = {"words": "multinomial", "points": "gaussian"}
    model = PooledClassifier(clone(MIXTURE).set_params(family=family)).fit(views, TEN)
    assert np.isfinite(model.predict_log_proba(views)).all()


def test_loose_labels_teach_the_mixture_alone():
    y = [None if c < 0 else int(c) for c in TEN]
    free = [i for i, c in enumerate(y) if c is None]
    y[free[0]], y[free[1]] = {0, 1}, Not(2)
    model = fitted(y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert sorted(model.held_out_.rows.tolist()) == np.flatnonzero(TEN >= 0).tolist()


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"C": 0}, "C must be above 0"),
        ({"C": "much"}, "C must be a number"),
        ({"cv": 1}, "cv must be an integer of 2 or more"),
        ({"class_shares": "both"}, "class_shares must be one of"),
        ({"mixture": LogisticRegression()}, "mixture must be None or a MixtureClassifier"),
        ({"mixture": MixtureClassifier(calibrate=True)}, "calibrate=True cannot be used"),
        ({"mixture": MixtureClassifier(components_per_class="cv")}, "components_per_class='cv'"),
        ({"mixture": MixtureClassifier(checkpoint="x")}, "random_state to be a number"),
    ],
)
def test_wrong_parameters_are_named(params, match):
    with pytest.raises(ValueError, match=match):
        PooledClassifier(**params).fit(WORDS, TEN)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (np.full(N, -1), "no labelled row"),
        ([{"a", "b"}, "a", *[None] * (N - 2)], "class 'b' has no row with exactly this label"),
    ],
)
def test_labels_that_cannot_teach_are_named(y, match):
    with pytest.raises(ValueError, match=match):
        PooledClassifier().fit(WORDS, y)


def test_copies_of_an_entry_are_one_entry():
    once = sp.csr_array(2 * WORDS)
    halves = np.repeat(once.data / 2, 2)
    twice = sp.csr_array((halves, np.repeat(once.indices, 2), 2 * once.indptr), shape=once.shape)
    model = PooledClassifier(MixtureClassifier(family="multinomial", unlabeled_weight=0.1))
    one, other = (clone(model).fit(X, TEN).predict_proba(once) for X in (once, twice))
    np.testing.assert_allclose(one, other, atol=1e-5)
    np.testing.assert_allclose(model.fit(once, TEN).predict_proba(twice), one, atol=1e-5)


@pytest.mark.parametrize("n_labels", [2, 3, 10])
def test_an_estimator_takes_a_weight_of_two_as_two_rows(n_labels):
    y = some(n_labels)
    model = PooledClassifier(MixtureClassifier(family="multinomial", unlabeled_weight="auto"))
    weighted = clone(model).fit(WORDS, y, sample_weight=np.full(N, 2.0))
    twice = clone(model).fit(np.repeat(WORDS, 2, axis=0), np.repeat(y, 2))
    assert weighted.unlabeled_weight_ == twice.unlabeled_weight_
    np.testing.assert_allclose(weighted.predict_proba(WORDS), twice.predict_proba(WORDS), atol=1e-4)


def test_rows_of_weight_zero_are_as_if_they_were_absent():
    known = TEN >= 0
    model = PooledClassifier(MixtureClassifier(family="multinomial"))
    with_them = clone(model).fit(WORDS, TEN, sample_weight=known.astype(float))
    without = clone(model).fit(WORDS[known], TEN[known])
    new = WORDS + 1
    np.testing.assert_allclose(with_them.predict_proba(new), without.predict_proba(new), atol=1e-4)


def test_a_dataframe_is_taken_without_a_warning():
    frame = pd.DataFrame(WORDS, columns=[f"w{j}" for j in range(60)])
    model = PooledClassifier(MixtureClassifier(family="multinomial")).fit(frame, TEN)
    assert model.predict(frame).tolist() == model.labels_.tolist()


def test_own_splits_are_those_of_both_models(monkeypatch):
    seen = []
    fit = _linear.fit_linear
    watched = lambda *given: seen.append(given[1]["words"].shape[0]) or fit(*given)  # noqa: E731
    monkeypatch.setattr("coem.estimators._pool.fit_linear", watched)
    rows = np.flatnonzero(TEN >= 0)
    rows = np.concatenate([rows[TEN[rows] == c][i : i + 1] for i in range(10) for c in range(K)])
    cv = [(rows[:9], rows[9:18]), (rows[:18], rows[18:])]
    model = fitted(cv=cv)
    assert seen == [30, 9, 18]
    assert len(model.held_out_.rows) == 21


def test_a_fold_without_a_class_is_named():
    y = [None if c < 0 else int(c) for c in TEN]
    y[y.index(None)] = {0, 2}
    rows = [i for i, c in enumerate(y) if c in (0, 1)]
    twos = [i for i, c in enumerate(y) if c == 2]
    train = np.setdiff1d(np.arange(N), twos)
    with pytest.raises(ValueError, match="cv, fold 0: class 2 has no"):
        fitted(y, cv=[(train, np.array(twos)), (np.arange(N), np.array(rows[:3]))])


def test_names_of_classes_do_not_matter():
    renamed = np.where(TEN < 0, -1, 2 - TEN)
    one, other = fitted(), fitted(renamed)
    np.testing.assert_allclose(
        other.predict_proba(Views(VIEWS))[:, ::-1], one.predict_proba(Views(VIEWS)), atol=1e-4
    )


@pytest.mark.slow
def test_a_damaged_regression_is_refused(tmp_path):
    for damage in (
        lambda m: m.linear_.scales.clear() or m.linear_.weights.clear(),
        lambda m: m.linear_.intercept.__setitem__(0, np.nan),
        lambda m: m.pool_.log_change.__setitem__(0, np.nan),
        lambda m: m.linear_.scales.__setitem__("words", m.linear_.scales["unit"]),
        lambda m: m.pool_.__setitem__("own_linear", -1.0),
    ):
        model = fitted()
        damage(model)
        model.save(tmp_path / "pool.coem")
        with pytest.raises(coem.ModelFileError):
            coem.load(tmp_path / "pool.coem")
