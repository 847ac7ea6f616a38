"""Mixtures and classifiers: a fit to a corpus is the fit to the same rows in memory."""

import warnings
from functools import partial

import numpy as np
import pytest

import coem.engine.corpus as engine_corpus
import coem.estimators._corpora as corpora
import coem.estimators._labels_of_corpora as labels_of_corpora
import coem.estimators._unlabelled as unlabelled
import coem.latent.stored as latent_stored
from coem import MixtureClassifier, MixtureClusterer, Not, PooledClassifier
from coem.engine import LocalEngine
from coem.families import Bernoulli, Categorical, Gaussian, MixtureOf, Multinomial, VonMisesFisher
from coem.io import checkpoint, kept
from coem.records import watch
from coem.run_coupling import RunCoupling
from coem.schedules import Linear
from tests.corpora.stores import K, N, groups, stored, views_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def both(tmp_path):
    """Return a function from the names of views to the rows in memory and in a corpus."""

    def make(*names):
        views = views_of(*names)
        return views, stored(tmp_path / "-".join(names), views)

    return make


def agree(one, other, *, rel=1e-9):
    """Assert that two fits ended alike."""
    assert other.objective_ == pytest.approx(one.objective_, rel=rel)
    assert other.n_iter_ == one.n_iter_
    np.testing.assert_array_equal(other.labels_, one.labels_)
    np.testing.assert_allclose(other.weights_, one.weights_, atol=1e3 * rel)


MODELS = {
    "counts": ("words", {}),
    "points": ("points", {"family": Gaussian("full")}),
    "tied": ("points", {"family": Gaussian("tied")}),
    "missing values": ("gaps", {"family": Gaussian("diag")}),
    "missing values, full": ("gaps", {"family": Gaussian("full")}),
    "directions": ("unit", {"family": VonMisesFisher("fit")}),
    "categories": ("kinds", {"family": Categorical()}),
    "marks": ("marks", {"family": Bernoulli()}),
    "mixtures within": ("words", {"family": MixtureOf(Multinomial(), 2)}),
    "joint": ("words gaps", {"coupling": "joint"}),
    "co-em": ("words gaps", {}),
    "three views": ("words gaps unit", {"eta": 0.6, "weights": "per_view"}),
    "uniform weights": ("words unit", {"weights": "uniform", "assign": "average"}),
    "hard": ("words", {"posterior": "hard"}),
    "hard co-em": ("words unit", {"posterior": "hard"}),
    "schedules": ("words unit", {"beta": Linear(0.4, 1.0, 4), "eta": Linear(1.0, 0.2, 3)}),
    "patience": ("words unit", {"patience": 2, "tol": 0, "max_iter": 40}),
    "evidence": ("words gaps marks", {"evidence": "auto"}),
}


@pytest.mark.parametrize("dtype", [None, np.float64], ids=["default", "double"])
@pytest.mark.parametrize("name", MODELS)
def test_a_corpus_is_fitted_as_rows_in_memory_are(both, name, dtype):
    names, params = MODELS[name]
    views, corpus = both(*names.split())
    settings = {"evidence": "fixed", "tol": 0, "max_iter": 6, "init": "random"} | params
    one, other = (
        MixtureClusterer(K, dtype=dtype, random_state=1, **settings).fit(X) for X in (views, corpus)
    )
    agree(one, other, rel=1e-9 if dtype else 1e-6)
    assert other.silent_views_ == one.silent_views_
    assert other.n_start_rows_ == N
    for record, same in zip(one.history_, other.history_, strict=True):
        assert same.dissent == pytest.approx(record.dissent, rel=1e-5, abs=1e-7)
        assert same.agreement_rate == pytest.approx(record.agreement_rate, abs=0.01)


@pytest.mark.parametrize("room", [0, 10_000, 1 << 28])
def test_states_that_are_kept_change_nothing(both, monkeypatch, room):
    views, corpus = both("words", "unit")
    model = MixtureClusterer(
        K, init="random", random_state=0, max_iter=4, tol=0, evidence="fixed", dtype=np.float64
    )
    truth = model.fit(views).objective_
    session = partial(engine_corpus.StreamedSession, room=room)
    monkeypatch.setattr("coem.engine.local.StreamedSession", session)
    assert model.fit(corpus).objective_ == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("init", ["spherical", "k-means++", "rows"])
@pytest.mark.parametrize("names", ["words", "words unit"])
def test_a_start_from_rows_takes_its_first_m_step_on_the_sample(both, init, names):
    """In memory that step is the first round, which a corpus has before its rounds."""
    views, corpus = both(*names.split())
    settings = {"init": init, "evidence": "fixed", "tol": 0, "random_state": 3, "dtype": float}
    one = MixtureClusterer(K, max_iter=6, **settings).fit(views)
    other = MixtureClusterer(K, max_iter=5, **settings).fit(corpus)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-9)
    np.testing.assert_array_equal(other.labels_, one.labels_)


def test_a_start_may_be_an_array_or_a_model(both):
    views, corpus = both("words", "gaps")
    resp = np.random.default_rng(0).dirichlet(np.ones(K), size=N)
    settings = {"evidence": "fixed", "tol": 0, "max_iter": 4, "dtype": np.float64}
    one, other = (MixtureClusterer(K, init=resp, **settings).fit(X) for X in (views, corpus))
    agree(one, other)
    again, more = (MixtureClusterer(K, init=one, **settings).fit(X) for X in (views, corpus))
    agree(again, more)


def test_threads_and_restarts_give_the_same_bits(both):
    _, corpus = both("words", "unit")
    settings = {"n_init": 3, "max_iter": 4, "tol": 0, "random_state": 0}
    one, two = (MixtureClusterer(K, n_jobs=n, **settings).fit(corpus) for n in (1, 2))
    assert one.objective_ == two.objective_
    assert [run.objective for run in one.runs_] == [run.objective for run in two.runs_]
    np.testing.assert_array_equal(one.theta_["words"], two.theta_["words"])


def test_shards_change_no_more_than_rounding(tmp_path):
    views = views_of("words", "gaps")
    settings = {"max_iter": 5, "tol": 0, "random_state": 0, "dtype": np.float64}
    fits = []
    for cuts in ((0, N), (0, 10, 200, N), (0, *range(50, N, 50), N)):
        corpus = stored(tmp_path / str(len(cuts)), views, cuts)
        fits.append(MixtureClusterer(K, **settings).fit(corpus))
    agree(fits[0], fits[1])
    agree(fits[0], fits[2])


def test_a_weight_of_two_is_the_row_twice(tmp_path):
    views = views_of("words", "gaps")
    twice = np.random.default_rng(0).random(N) < 0.3
    rows = np.sort(np.concatenate([np.arange(N), np.flatnonzero(twice)]))
    settings = {"max_iter": 5, "tol": 0, "random_state": 0, "dtype": np.float64}
    weighted = MixtureClusterer(K, **settings).fit(
        stored(tmp_path / "one", views), sample_weight=1.0 + twice
    )
    repeated = MixtureClusterer(K, **settings).fit(
        stored(tmp_path / "two", views[rows], (0, 100, len(rows)))
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    np.testing.assert_array_equal(weighted.labels_[rows], repeated.labels_)


def test_the_order_of_rows_does_not_matter(tmp_path, monkeypatch):
    monkeypatch.setattr(latent_stored, "SAMPLE", 150)
    views = views_of("points", "unit")
    order = np.random.default_rng(5).permutation(N)
    settings = {"max_iter": 5, "tol": 0, "random_state": 0, "dtype": np.float64}
    one = MixtureClusterer(K, **settings).fit(stored(tmp_path / "one", views))
    other = MixtureClusterer(K, **settings).fit(stored(tmp_path / "two", views[order]))
    assert one.n_start_rows_ == other.n_start_rows_ == 150
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)
    np.testing.assert_array_equal(one.labels_[order], other.labels_)


def test_a_sample_for_the_start_is_said(both, monkeypatch, capsys):
    monkeypatch.setattr(latent_stored, "SAMPLE", 100)
    _, corpus = both("words")
    model = MixtureClusterer(K, max_iter=2, tol=0, random_state=0, verbose=1).fit(corpus)
    assert model.n_start_rows_ == 100
    assert "starts are drawn from 100 of 420 rows" in capsys.readouterr().err
    assert MixtureClusterer(K, init="random", max_iter=2, tol=0).fit(corpus).n_start_rows_ == N


def test_what_a_model_says_of_a_corpus_is_what_it_says_of_its_rows(both):
    views, corpus = both("words", "unit")
    model = MixtureClusterer(K, random_state=0, max_iter=5, tol=0).fit(views)
    for method in ("predict", "predict_proba", "predict_log_proba", "score_samples"):
        expected = getattr(model, method)(views)
        np.testing.assert_allclose(getattr(model, method)(corpus), expected, rtol=1e-12)
    for method in ("score", "aic", "bic", "icl"):
        assert getattr(model, method)(corpus) == pytest.approx(getattr(model, method)(views))
    np.testing.assert_allclose(model.view_proba(corpus), model.view_proba(views))
    np.testing.assert_allclose(model.disagreement(corpus), model.disagreement(views))
    for mine, theirs in zip(model.read(corpus), model.read(views), strict=True):
        np.testing.assert_allclose(mine, theirs)
    limit = model.calibrate(views, [groups()]).calibration_.limit
    assert model.calibrate(corpus, [groups()]).calibration_.limit == limit
    one, other = model.explain(corpus)[:5], model.explain(views)[:5]
    assert [row.log_odds for row in one] == pytest.approx([row.log_odds for row in other])


def test_results_that_do_not_fit_in_memory_are_refused(both, monkeypatch):
    views, corpus = both("words")
    model = MixtureClusterer(K, random_state=0, max_iter=2, tol=0).fit(views)
    monkeypatch.setattr(corpora, "MOST_IN_MEMORY", 8 * N)
    assert len(model.predict(corpus)) == N
    with pytest.raises(ValueError, match=r"the result for 420 rows would take.*a part"):
        model.predict_proba(corpus)
    with pytest.raises(ValueError, match="the result for 420 rows would take"):
        model.read(corpus)


def test_coupled_runs_and_batches_do_not_take_a_corpus(both):
    _, corpus = both("words")
    with pytest.raises(ValueError, match=r"coupling_of_runs .* does not take a corpus"):
        MixtureClusterer(K, n_init=2, coupling_of_runs=RunCoupling("rows")).fit(corpus)
    with pytest.raises(ValueError, match=r"for shard in corpus.shards: model.partial_fit"):
        MixtureClusterer(K).partial_fit(corpus)
    model = MixtureClusterer(K, random_state=0)
    for shard in corpus.shards:
        if shard.n_rows > K:
            model.partial_fit(shard.read())
    assert model.predict(corpus).shape == (N,)


def test_a_bad_value_is_named_by_its_row_in_the_corpus(both):
    _, corpus = both("words", "points")
    path = corpus.path / "shard-000002" / "0.data.npy"
    data = np.load(path)
    data[0] = -1
    np.save(path, data)
    row = int(np.flatnonzero(np.diff(np.load(path.with_name("0.indptr.npy"))))[0]) + 91
    with pytest.raises(ValueError, match=f"'words', row {row}"):
        MixtureClusterer(K, family={"words": "multinomial", "points": "gaussian"}).fit(corpus)


def test_a_fit_that_gathers_in_one_component_starts_again(both, monkeypatch):
    _, corpus = both("words")
    monkeypatch.setattr(unlabelled, "GATHERED", 0.0)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        MixtureClusterer(K, random_state=0, max_iter=2, tol=0).fit(corpus)
    assert any("of the rows are in one of" in str(w.message) for w in said)


# -- checkpoints -------------------------------------------------------------------------------


class Stopped(Exception):
    pass


class Breaking(LocalEngine):
    """An engine that fails in the middle of a round."""

    def __init__(self, calls):
        super().__init__(1)
        self.calls = calls

    def open_parts(self, latent, parts, theta):
        session = super().open_parts(latent, parts, theta)
        for name in ("e_step", "m_step"):
            setattr(session, name, partial(self.count, getattr(session, name)))
        return session

    def count(self, step, *args):
        self.calls -= 1
        if self.calls < 0:
            raise Stopped
        return step(*args)


@pytest.mark.parametrize("calls", [1, 4, 8, 13])
def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(both, tmp_path, monkeypatch, calls):
    monkeypatch.setattr(checkpoint, "THRIFT", 0)
    _, corpus = both("words", "gaps")
    settings = {"max_iter": 6, "tol": 0, "random_state": 0}
    truth = MixtureClusterer(K, **settings).fit(corpus)
    model = MixtureClusterer(K, checkpoint=tmp_path / "state", **settings)
    with pytest.raises(Stopped):
        model.set_params(engine=Breaking(calls)).fit(corpus)
    again = model.set_params(engine=None).fit(corpus)
    assert [r.objective for r in again.history_] == [r.objective for r in truth.history_]
    np.testing.assert_array_equal(again.theta_["words"], truth.theta_["words"])


def test_a_checkpoint_of_another_corpus_is_refused(both, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "THRIFT", 0)
    _, corpus = both("words", "gaps")
    other = stored(tmp_path / "other", views_of("words", "gaps", seed=1))
    model = MixtureClusterer(K, checkpoint=tmp_path / "state", max_iter=6, tol=0, random_state=0)
    with pytest.raises(Stopped):
        model.set_params(engine=Breaking(8)).fit(corpus)
    with pytest.raises(ValueError, match="other data"):
        model.set_params(engine=None).fit(other)


# -- labels ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "n_rounds"),
    [
        ({}, 2),
        ({"unlabeled_weight": "auto", "cv": 2}, 7),
        ({"calibrate": True, "cv": 2}, 7),
        ({"components_per_class": [1, 2], "cv": 2}, 9),
    ],
    ids=str,
)
def test_a_classifier_that_was_stopped_goes_on_to_the_same_bits(
    both, tmp_path, monkeypatch, params, n_rounds
):
    monkeypatch.setattr(checkpoint, "THRIFT", 0)
    _, corpus = both("words", "gaps")
    settings = {"max_iter": 3, "tol": 0, "random_state": 0} | params
    truth = MixtureClassifier(**settings).fit(corpus, labels("plain"))
    model = MixtureClassifier(checkpoint=tmp_path / "state", **settings)
    rounds = []

    def look(record):
        rounds.append(record)
        if len(rounds) == n_rounds:
            raise Stopped

    with watch(look), pytest.raises(Stopped):
        model.fit(corpus, labels("plain"))
    assert kept.has_state(tmp_path / "state")
    rounds.append(None)  # it does not stop again
    with watch(look):
        again = model.fit(corpus, labels("plain"))
    assert [r.objective for r in again.history_] == [r.objective for r in truth.history_]
    np.testing.assert_array_equal(again.theta_["words"], truth.theta_["words"])
    np.testing.assert_array_equal(again.labels_, truth.labels_)
    assert not (tmp_path / "state").exists()


def labels(kind, seed=0):
    rng, group = np.random.default_rng(seed), groups()
    y = np.full(N, None, dtype=object)
    for row in np.flatnonzero(rng.random(N) < 0.2):
        y[row] = int(group[row])
        if kind == "sets" and row % 3 == 0:
            y[row] = {int(group[row]), (int(group[row]) + 1) % K}
        elif kind == "sets" and row % 3 == 1:
            y[row] = Not((int(group[row]) + 1) % K)
    return y


@pytest.mark.parametrize("kind", ["plain", "sets"])
@pytest.mark.parametrize(
    "params",
    [
        {},
        {"components_per_class": 2},
        {"unlabeled_weight": 0.3},
        {"unlabeled_weight": "auto"},
        {"beta": Linear(0.5, 1.0, 3)},
        {"beta": Linear(0.5, 1.0, 3), "correspondence": "em"},
        {"calibrate": True, "cv": 3},
        {"components_per_class": [1, 2], "cv": 3},
    ],
    ids=str,
)
def test_classifiers_learn_from_a_corpus_as_from_rows_in_memory(both, kind, params):
    views, corpus = both("words", "gaps")
    settings = {"max_iter": 5, "tol": 0, "random_state": 0, "dtype": np.float64} | params
    y, weight = labels(kind), np.random.default_rng(2).gamma(2.0, size=N)
    one, other = (
        MixtureClassifier(**settings).fit(X, y, sample_weight=weight) for X in (views, corpus)
    )
    agree(one, other)
    np.testing.assert_array_equal(other.component_classes_, one.component_classes_)
    np.testing.assert_allclose(other.predict_proba(corpus), one.predict_proba(views), atol=1e-9)
    assert other.score(corpus, groups()) == one.score(views, groups())
    assert other.unlabeled_weight_ == one.unlabeled_weight_


@pytest.mark.parametrize("weighted", [False, True])
def test_a_pool_learns_from_a_corpus_as_from_rows_in_memory(both, weighted):
    views, corpus = both("words", "points")
    y = labels("plain")
    weight = np.random.default_rng(2).gamma(2.0, size=N) if weighted else None
    one, other = (PooledClassifier().fit(X, y, sample_weight=weight) for X in (views, corpus))
    np.testing.assert_array_equal(other.labels_, one.labels_)
    np.testing.assert_allclose(other.predict_proba(corpus), one.predict_proba(views), atol=1e-6)
    np.testing.assert_array_equal(other.predict(corpus), one.predict(views))
    assert other.pool_.mixture == pytest.approx(one.pool_.mixture, rel=1e-5)
    assert other.score(corpus, groups()) == one.score(views, groups())


def test_choices_on_a_large_corpus_are_made_on_a_sample_with_every_class(both, monkeypatch):
    monkeypatch.setattr(labels_of_corpora, "SAMPLE", 60)
    monkeypatch.setattr(labels_of_corpora, "LEAST", 4)
    _, corpus = both("words", "points")
    y = labels("plain")
    y[[row for row in range(N) if y[row] == 2][4:]] = None
    model = PooledClassifier().fit(corpus, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(corpus, groups()) > 0.6
    with pytest.raises(ValueError, match="cv: labelled rows of a corpus"):
        PooledClassifier(cv=[(np.arange(300), np.arange(300, N))]).fit(corpus, y)
    resp = np.full((N, 3), 1 / 3)
    with pytest.raises(ValueError, match="init: responsibilities of all rows of a corpus"):
        MixtureClassifier(init=resp, calibrate=True).fit(corpus, y)
