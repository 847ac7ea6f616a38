"""SphericalKMeans against a transcription of Sec. 4.3 of Bickel & Scheffer (2004)."""

import numpy as np
import pytest
import scipy.sparse as sp

from coem import SphericalKMeans
from tests.truths import spherical as truth

K = 4


def make_views(n_views, *, n=60, sparse=True, holes=False, seed=0):
    rng = np.random.default_rng(seed)
    topic = rng.integers(K, size=n)
    views = []
    for v in range(n_views):
        mix = rng.dirichlet(np.full(12 + v, 0.5), size=K)
        X = np.array([rng.multinomial(rng.integers(3, 12), mix[t]) for t in topic]).astype(float)
        X *= rng.uniform(0.5, 2.0, size=X.shape)  # no ties
        if not sparse:
            X -= 0.3
        if holes:
            X[rng.random(n) < 0.25] = 0.0
        views.append(X)
    return views


def given(views):
    return np.array([views[-1][i] for i in np.flatnonzero(views[-1].any(axis=1))[:K]])


def fit(views, start, **options):
    options = {"patience": None, "dtype": np.float64} | options
    views = [sp.csr_matrix(X) if (X >= 0).all() else X for X in views]
    return SphericalKMeans(K, init=start, **options).fit(views if len(views) > 1 else views[0])


CASES = pytest.mark.parametrize("holes", [False, True])
VIEWS = pytest.mark.parametrize("n_views", [1, 2, 3])


@CASES
@VIEWS
@pytest.mark.parametrize("sparse", [True, False])
def test_partitions_round_by_round(n_views, sparse, holes):
    views = make_views(n_views, sparse=sparse, holes=holes)
    start = given(views)
    rounds = truth.spherical_k_means(views, start, 8)
    for t in (1, 2, 3, 5, 8):
        model, state = fit(views, start, max_iter=t), rounds[t - 1]
        for v, name in enumerate(model.view_names_):
            wanted = [-1 if label is None else label for label in state.partitions[v]]
            np.testing.assert_array_equal(model.view_labels_[:, v], wanted)
            np.testing.assert_allclose(model.cluster_centers_[name], state.concepts[v], atol=1e-12)
            assert model.history_[-1].view_objective[name] == pytest.approx(state.objective[v])
        assert model.objective_ == pytest.approx(sum(state.objective), rel=1e-12)


@CASES
@VIEWS
def test_consensus_and_assignment(n_views, holes):
    views = make_views(n_views, holes=holes, seed=1)
    views[0][0] = 0.0
    start = given(views)
    for t in (1, 4):
        model = fit(views, start, max_iter=t)
        state = truth.spherical_k_means(views, start, t)[-1]
        centres = truth.consensus(views, state, K)
        for v, name in enumerate(model.view_names_):
            np.testing.assert_allclose(model.consensus_centers_[name], centres[v], atol=1e-12)
        largest = np.bincount(
            [label for label in truth.assign(views, centres) if label is not None], minlength=K
        ).argmax()
        wanted = [largest if label is None else label for label in truth.assign(views, centres)]
        np.testing.assert_array_equal(model.labels_, wanted)
        inputs = views if n_views > 1 else views[0]
        np.testing.assert_array_equal(model.predict(inputs), wanted)
        new = make_views(n_views, holes=holes, seed=7)
        wanted = [largest if label is None else label for label in truth.assign(new, centres)]
        np.testing.assert_array_equal(model.predict(new if n_views > 1 else new[0]), wanted)


@VIEWS
@pytest.mark.parametrize("patience", [1, 2, 4])
def test_patience_and_the_best_state(n_views, patience):
    views = make_views(n_views, seed=2)
    start = given(views)
    rounds = truth.spherical_k_means(views, start, 60)
    # One view stops with the first round that is no better: none can follow.
    done, best = truth.stop(rounds, 1 if n_views == 1 else patience)
    model = fit(views, start, patience=patience, max_iter=60)
    assert model.converged_
    assert model.n_iter_ == done
    assert model.objective_ == pytest.approx(sum(rounds[best].objective), rel=1e-12)
    for v, name in enumerate(model.view_names_):
        np.testing.assert_allclose(
            model.cluster_centers_[name], rounds[best].concepts[v], atol=1e-12
        )


@VIEWS
def test_an_emptied_cluster_gets_the_row_that_fits_worst(n_views):
    views = make_views(n_views, seed=3)
    start = given(views)
    start[2] = -1.0  # farther from every row than any other
    start[3] = start[0]  # equal cosines: the first wins, and this one is empty
    rounds = truth.spherical_k_means(views, start, 4)
    model = fit(views, start, max_iter=4)
    assert len(rounds[0].moves) >= 2
    for record, state in zip(model.history_, rounds, strict=True):
        wanted = [(model.view_names_[v], j, i) for v, j, i in state.moves]
        assert record.reseeded == wanted
        assert record.objective == pytest.approx(sum(state.objective), rel=1e-12)


def test_row_weights():
    views = make_views(2, seed=4, holes=True)
    start = given(views)
    weight = np.random.default_rng(0).integers(0, 4, size=len(views[0])).astype(float)
    state = truth.spherical_k_means(views, start, 3, weight)[-1]
    model = SphericalKMeans(K, init=start, max_iter=3, patience=None, dtype=np.float64)
    model.fit(views, sample_weight=weight)
    assert model.objective_ == pytest.approx(sum(state.objective), rel=1e-12)
    for v, name in enumerate(model.view_names_):
        np.testing.assert_allclose(model.cluster_centers_[name], state.concepts[v], atol=1e-12)
    centres = truth.consensus(views, state, K, weight)
    for v, name in enumerate(model.view_names_):
        np.testing.assert_allclose(model.consensus_centers_[name], centres[v], atol=1e-12)


@VIEWS
def test_single_precision_finds_the_same(n_views):
    views = make_views(n_views, seed=5)
    start = given(views)
    exact = fit(views, start, max_iter=6)
    quick = fit(views, start, max_iter=6, dtype=None)
    np.testing.assert_array_equal(exact.labels_, quick.labels_)
    assert quick.objective_ == pytest.approx(exact.objective_, rel=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_view_with_fewer_rows_than_clusters(weighted):
    """Clusters come and go there: what is left of a sum when all its rows have gone is nothing."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        few, full = rng.random((30, 4)), rng.random((30, 5))
        few[3:] = 0.0
        weight = rng.uniform(0.1, 2.0, size=30) if weighted else None
        rounds = truth.spherical_k_means([few, full], full[:6], 7, weight)
        model = SphericalKMeans(6, init=full[:6], max_iter=7, patience=None, dtype=np.float64)
        model.fit([few, full], sample_weight=weight)
        for v, name in enumerate(model.view_names_):
            np.testing.assert_allclose(
                model.cluster_centers_[name], rounds[-1].concepts[v], atol=1e-9
            )


def test_a_row_that_never_settles():
    """Sec. 4.5: a row is concept vector 1 in view 1 and 2 in view 2, so the two never agree on it.

    It changes its cluster twice in every round. Nothing else changes, so patience ends the run.
    """
    first, second = np.eye(2)
    views = [np.array([first] * 5 + [second] * 5 + [last]) for last in (first, second)]
    for state in truth.spherical_k_means(views, np.eye(2), 30):
        assert [labels[-1] for labels in state.partitions] == [0, 1]
    options = {"init": np.eye(2), "dtype": np.float64}
    endless = SphericalKMeans(2, patience=None, max_iter=30, **options).fit(views)
    assert not endless.converged_
    assert [record.agreement_rate for record in endless.history_] == pytest.approx([10 / 11] * 30)
    np.testing.assert_array_equal(endless.view_labels_[-1], [0, 1])
    patient = SphericalKMeans(2, patience=3, max_iter=30, **options).fit(views)
    assert patient.converged_
    assert patient.n_iter_ == 4
    np.testing.assert_array_equal(patient.view_labels_[-1], [0, 1])
