"""init="spherical": a few rounds of spherical k-means before the first round."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from coem import MixtureClassifier, MixtureClusterer, Views
from coem.families import Gaussian, Multinomial, VonMisesFisher
from coem.initialise import SPHERICAL_ROUNDS, _directions, _nearest, _spherical
from coem.latent.block import Partition
from coem.latent.mixture import Mixture
from coem.metrics import cluster_entropy


def corpus(n_rows=150, k=4, words=80, length=30, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(words, 0.1), size=k)
    topic = rng.integers(k, size=n_rows)
    X = np.stack([rng.multinomial(length, prob[t]) for t in topic])
    return sp.csr_matrix(X, dtype=np.float32), topic


def test_counts_are_weighted_by_how_rare_words_are():
    X, _ = corpus()
    logs = X.copy()
    logs.data = np.log1p(logs.data)
    expected = TfidfTransformer(smooth_idf=True).fit(X).transform(logs)
    np.testing.assert_allclose(
        _directions(Multinomial(), X, None).toarray(), expected.toarray(), atol=1e-6
    )


def test_a_weight_of_two_is_a_row_given_twice():
    X, _ = corpus(20)
    twice = sp.vstack([X, X[:5]]).tocsr()
    weight = np.where(np.arange(20) < 5, 2.0, 1.0)
    ours = _directions(Multinomial(), X, weight).toarray()
    np.testing.assert_allclose(ours, _directions(Multinomial(), twice, None).toarray()[:20])


def test_directions_stay_and_other_rows_are_centred():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3)) + 5
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    np.testing.assert_allclose(_directions(VonMisesFisher(), X, None), unit)
    centred = (X - X.mean(axis=0)) / X.std(axis=0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(_directions(Gaussian(), X, None), centred)
    X[3] = np.nan
    assert not _directions(Gaussian(), X, None)[3].any()


def test_rounds_are_those_of_spherical_k_means():
    """A slow twin: assign to the nearest direction, take the mean of the rows, normalise."""
    X, _ = corpus()
    model = Mixture((Multinomial(),), 4)
    ours = _spherical(model, Partition((X,)), np.random.default_rng(3))
    rows = _directions(Multinomial(), X, None)
    sphere = Mixture((VonMisesFisher(),), 4)
    first = _nearest(sphere, Partition((rows,)), np.random.default_rng(3), spread_out=True)
    dense, labels = rows.toarray().astype(float), first.argmax(axis=1)
    for _ in range(SPHERICAL_ROUNDS):
        means = np.stack([dense[labels == j].sum(axis=0) for j in range(4)])
        means /= np.linalg.norm(means, axis=1, keepdims=True)
        labels = (dense @ means.T).argmax(axis=1)
    np.testing.assert_array_equal(ours.argmax(axis=1), labels)
    assert set(np.unique(ours)) == {0.0, 1.0}


def test_groups_are_found():
    X, topic = corpus()
    model = MixtureClusterer(4, init="spherical", random_state=0).fit(X)
    assert cluster_entropy(topic, model.labels_) < 0.2


def test_several_views_of_several_kinds():
    X, topic = corpus()
    rng = np.random.default_rng(1)
    meaning = np.eye(4)[topic] + 0.2 * rng.standard_normal((150, 4))
    meaning /= np.linalg.norm(meaning, axis=1, keepdims=True)
    views = Views(words=X, meaning=meaning, place=3.0 * np.eye(4)[topic])
    family = {"words": "multinomial", "meaning": "von_mises_fisher", "place": Gaussian("diag")}
    models = [
        MixtureClusterer(4, family=family, init="spherical", random_state=0, n_jobs=n).fit(views)
        for n in (1, 2)
    ]
    assert cluster_entropy(topic, models[0].labels_) < 0.1
    assert models[0].objective_ == models[1].objective_


def test_restarts_differ():
    X, _ = corpus(k=8, seed=2)
    model = MixtureClusterer(4, init="spherical", n_init=6, random_state=0).fit(X)
    assert len({run.objective for run in model.runs_}) > 1


def test_a_classifier_starts_from_its_labels():
    X, topic = corpus()
    with pytest.raises(ValueError, match="init must be one of 'random', 'rows', 'k-means\\+\\+'"):
        MixtureClassifier(init="spherical").fit(X, topic)
