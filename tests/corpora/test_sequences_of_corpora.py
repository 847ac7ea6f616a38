"""Hidden Markov models: a fit to a corpus is the fit to the same sequences in memory."""

import numpy as np
import pytest

import coem.estimators._corpora as corpora
import coem.latent.stored_sequences as stored_sequences
from coem import HiddenMarkovModel, MixtureClusterer
from coem.io import checkpoint
from coem.latent.stored import Encoding
from coem.latent.stored_sequences import SequenceRows
from coem.schedules import Linear
from coem.views import Views
from tests.corpora.stores import K, N, stored, views_of
from tests.corpora.test_out_of_core import Breaking, Stopped, agree

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Shards end within sequences, and one sequence is longer than a shard.
LENGTHS = [20, 30, 1, 44, 200, 3, 7, 15, 60, 40]
STATES = np.random.default_rng(3).integers(K, size=N)


@pytest.fixture
def views():
    return views_of("words", "gaps")


@pytest.fixture
def corpus(tmp_path, views):
    return stored(tmp_path / "corpus", views)


def known(share=0.2):
    return np.where(np.random.default_rng(4).random(N) < share, STATES, -1)


CASES = {
    "random": ({"init": "random"}, False, 0),
    "random, labels": ({"init": "random"}, True, 0),
    "spherical": ({}, False, 1),
    "spherical, labels": ({}, True, 1),
    "k-means++": ({"init": "k-means++"}, False, 1),
    "segments": ({"init": "segments"}, False, 1),
    "segments, labels": ({"init": "segments"}, True, 0),
    "left-right": ({"transmat": np.triu(np.full((K, K), 1.0))}, False, 1),
    "hard": ({"posterior": "hard", "init": "random"}, False, 0),
    "annealed": ({"beta": Linear(0.4, 1.0, 4), "init": "random"}, False, 0),
    "priors": ({"transmat_prior": 1 + 5 * np.eye(K), "init": "random"}, True, 0),
    "single": ({"dtype": np.float32, "init": "random"}, False, 0),
    "patience": ({"patience": 2, "init": "random", "max_iter": 30}, False, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_corpus_is_fitted_as_sequences_in_memory_are(views, corpus, name):
    params, labelled, late = CASES[name]
    params = {"max_iter": 5, "tol": 0, "random_state": 0} | params
    if "transmat" in params:
        params["transmat"] = params["transmat"] / params["transmat"].sum(axis=1, keepdims=True)
    y = known() if labelled else None
    weight = np.random.default_rng(0).gamma(2.0, size=len(LENGTHS))
    other = HiddenMarkovModel(K, **params).fit(corpus, y, LENGTHS, weight)
    params["max_iter"] += late  # the first M step of a corpus is done on the sample
    one = HiddenMarkovModel(K, **params).fit(views, y, LENGTHS, weight)
    rel = 1e-6 if name == "single" else 1e-9
    assert other.objective_ == pytest.approx(one.objective_, rel=rel)
    np.testing.assert_array_equal(other.labels_, one.labels_)
    np.testing.assert_allclose(other.transmat_, one.transmat_, atol=1e3 * rel)
    np.testing.assert_allclose(other.weights_, one.weights_, atol=1e3 * rel)
    assert other.n_start_rows_ == N


def test_a_start_may_be_an_array_or_a_model(views, corpus):
    resp = np.random.default_rng(0).dirichlet(np.ones(K), size=N)
    settings = {"max_iter": 4, "tol": 0}
    one, other = (
        HiddenMarkovModel(K, init=resp, **settings).fit(X, None, LENGTHS) for X in (views, corpus)
    )
    agree(one, other)
    mixture = MixtureClusterer(K, random_state=0, coupling="joint", dtype=np.float64).fit(views)
    for start in (one, mixture):
        fits = [
            HiddenMarkovModel(K, init=start, **settings).fit(X, None, LENGTHS)
            for X in (views, corpus)
        ]
        agree(*fits)


def test_one_sequence_may_fill_the_corpus(views, corpus):
    one, other = (
        HiddenMarkovModel(K, init="random", max_iter=4, tol=0, random_state=0).fit(X)
        for X in (views, corpus)
    )
    agree(one, other)


def test_what_a_model_says_of_a_corpus_is_what_it_says_of_its_rows(views, corpus, monkeypatch):
    model = HiddenMarkovModel(K, random_state=0, max_iter=5, tol=0).fit(views, None, LENGTHS)
    for method in ("predict", "predict_proba", "score_samples"):
        one, other = (getattr(model, method)(X, lengths=LENGTHS) for X in (views, corpus))
        np.testing.assert_allclose(one, other, rtol=1e-12)
    for method in ("score", "aic", "bic"):
        one, other = (getattr(model, method)(X, lengths=LENGTHS) for X in (views, corpus))
        assert one == pytest.approx(other, rel=1e-12)
    assert model.decode(corpus, LENGTHS)[0] == pytest.approx(model.decode(views, LENGTHS)[0])
    one, other = (model.explain(X, LENGTHS)[7] for X in (views, corpus))
    assert one.log_odds == pytest.approx(other.log_odds)
    monkeypatch.setattr(corpora, "MOST_IN_MEMORY", 100)
    with pytest.raises(ValueError, match="the result for 420 rows"):
        model.predict_proba(corpus, LENGTHS)


def test_mistakes_are_named_before_any_work(corpus):
    with pytest.raises(ValueError, match="lengths add up to 10, but X has 420 rows"):
        HiddenMarkovModel(K).fit(corpus, lengths=[10])
    y = np.full(N, -1)
    y[100] = 9
    with pytest.raises(ValueError, match="sequence 4, row 5"):
        HiddenMarkovModel(K).fit(corpus, y, lengths=LENGTHS)
    y[95:101] = 1, 0, -1, -1, -1, -1
    transmat = np.triu(np.ones((K, K)))
    transmat /= transmat.sum(axis=1, keepdims=True)
    with pytest.raises(ValueError, match="sequence 4: every path"):
        HiddenMarkovModel(K, transmat=transmat).fit(corpus, y, lengths=LENGTHS)
    with pytest.raises(ValueError, match=r"for shard in corpus.shards"):
        HiddenMarkovModel(K).partial_fit(corpus)
    path = corpus.path / "shard-000002" / "1.values.npy"
    values = np.load(path)
    values[30, 1] = np.inf
    np.save(path, values)
    with pytest.raises(ValueError, match=r"row 26 of sequence 4.*'gaps', row 121"):
        HiddenMarkovModel(K, family={"words": "multinomial", "gaps": "gaussian"}).fit(
            corpus, lengths=LENGTHS
        )


def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "THRIFT", 0)
    settings = {"max_iter": 6, "tol": 0, "random_state": 0}
    truth = HiddenMarkovModel(K, **settings).fit(corpus, None, LENGTHS)
    model = HiddenMarkovModel(K, checkpoint=tmp_path / "state", **settings)
    with pytest.raises(Stopped):
        model.set_params(engine=Breaking(5)).fit(corpus, None, LENGTHS)
    again = model.set_params(engine=None).fit(corpus, None, LENGTHS)
    assert [r.objective for r in again.history_] == [r.objective for r in truth.history_]
    np.testing.assert_array_equal(again.transmat_, truth.transmat_)


# -- partitions and samples --------------------------------------------------------------------


def rows_of(corpus, lengths, kinds=None):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    choices = np.vstack([np.eye(K, dtype=bool), np.ones((1, K), dtype=bool)])
    families = HiddenMarkovModel(K, max_iter=1, tol=0).fit(corpus.load()).families_
    encoding = Encoding(tuple(families.values()), np.zeros(2, dtype=bool), choices)
    return SequenceRows(corpus, encoding, None, kinds, offsets=offsets)


def test_partitions_have_whole_sequences_near_the_ends_of_shards(corpus, views):
    parts = rows_of(corpus, LENGTHS).parts()
    assert [part.shard.lo for part in parts] == [0, 95, 298]
    assert sum(part.n_rows for part in parts) == N
    for part in parts:
        loaded = part.load()
        assert loaded.n_rows == part.n_rows
        assert loaded.offsets[-1] == part.n_rows
        np.testing.assert_array_equal(loaded.views[1], views["gaps"][part.shard.lo : part.shard.hi])
    assert [part.first for part in parts] == [0, 4, 6]


def test_sequences_are_drawn_by_their_content(tmp_path, views, corpus, monkeypatch):
    monkeypatch.setattr(stored_sequences, "SAMPLE", 60)
    lengths = [12] * 35
    sample = rows_of(corpus, lengths).sample
    assert 60 <= sample.n_rows < 72
    order = np.random.default_rng(0).permutation(35)
    rows = (12 * order[:, np.newaxis] + np.arange(12)).ravel()
    mixed = stored(tmp_path / "mixed", Views(dict(views.items()))[rows], (0, 33, N))
    other = rows_of(mixed, lengths).sample
    assert sample.n_rows == other.n_rows
    one, two = (np.sort(part.views[1], axis=0) for part in (sample, other))
    np.testing.assert_array_equal(one, two)
    fits = []
    for X in (corpus, mixed):
        fits.append(HiddenMarkovModel(K, max_iter=4, tol=0, random_state=0).fit(X, None, lengths))
    assert fits[0].n_start_rows_ == sample.n_rows
    assert fits[0].objective_ == pytest.approx(fits[1].objective_, rel=1e-9)
    np.testing.assert_array_equal(fits[0].labels_[rows], fits[1].labels_)


def test_sequences_with_labels_are_always_in_the_sample(corpus, monkeypatch):
    monkeypatch.setattr(stored_sequences, "SAMPLE", 30)
    kinds = np.full(N, K)
    kinds[100] = 1
    sample = rows_of(corpus, [12] * 35, kinds).sample
    assert (~sample.allowed.all(axis=1)).sum() == 1
    assert sample.n_sequences == 1 + 3
