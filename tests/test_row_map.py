"""The map of rows: a slow twin of its forces, and what it must not depend on."""

import numpy as np
import pytest
from sklearn.manifold import trustworthiness
from threadpoolctl import threadpool_limits

from coem.row_map import Grid, RowMap


@pytest.fixture(scope="module")
def rows():
    """Return rows around six directions, and the direction of each."""
    rng = np.random.default_rng(0)
    centre = np.arange(150) % 6
    return np.eye(8)[centre] + 0.15 * rng.normal(size=(150, 8)), centre


def test_repulsion_on_the_grid_is_that_of_all_pairs():
    places = np.random.default_rng(1).normal(scale=6.0, size=(200, 2))
    way = places[:, None] - places
    close = 1 / (1 + np.square(way).sum(axis=2))
    push = (way * close[:, :, None] ** 2).sum(axis=1)
    total, found = Grid().repulsion(places)
    assert total == pytest.approx(close.sum() - 200, rel=0.03)
    assert np.abs(found - push).max() < 0.15 * np.abs(push).max()
    assert np.corrcoef(found.ravel(), push.ravel())[0, 1] > 0.99


def test_neighbours_stay_neighbours(rows):
    X, centre = rows
    places = RowMap().fit_transform(X)
    near = np.argsort(np.square(places[:, None] - places).sum(axis=2), axis=1)[:, 1:6]
    assert (centre[near] == centre[:, None]).mean() > 0.97
    assert trustworthiness(X, places, n_neighbors=10, metric="cosine") > 0.93


@pytest.mark.parametrize("n_landmarks", [60, 4000])
def test_the_order_of_the_rows_has_no_effect(rows, n_landmarks):
    order = np.random.default_rng(2).permutation(len(rows[0]))
    places = RowMap(n_landmarks).fit_transform(rows[0])
    assert np.array_equal(RowMap(n_landmarks).fit_transform(rows[0][order]), places[order])


def test_threads_and_lengths_of_rows_have_no_effect(rows):
    places = RowMap().fit_transform(rows[0])
    with threadpool_limits(2):
        assert np.array_equal(RowMap().fit_transform(rows[0]), places)
    assert np.array_equal(RowMap().fit_transform(4 * rows[0]), places)


@pytest.mark.parametrize("n_landmarks", [60, 4000])
def test_a_row_of_fit_gets_its_place_again(rows, n_landmarks):
    chart = RowMap(n_landmarks).fit(rows[0])
    assert len(chart.landmarks_) == min(n_landmarks, 150)
    width = np.ptp(chart.embedding_)
    for row in (0, 77, 149):
        again = chart.transform(rows[0][[row]])
        assert np.abs(again - chart.embedding_[row]).max() < 1e-3 * width


def test_a_new_row_goes_to_its_like(rows):
    X, centre = rows
    chart = RowMap().fit(X)
    place = chart.transform(np.eye(8)[[3]])[0]
    far = np.linalg.norm(chart.embedding_ - place, axis=1)
    assert (centre[np.argsort(far)[:10]] == 3).all()


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_a_few_rows_have_finite_places(n):
    X = np.random.default_rng(n).random((n, 3))
    assert np.isfinite(RowMap().fit_transform(X)).all()
    assert np.isfinite(RowMap().fit_transform(np.ones((n, 1)))).all()
    assert np.isfinite(RowMap().fit_transform(np.zeros((n, 2)))).all()


@pytest.mark.parametrize("wrong", [{"n_landmarks": 0}, {"n_neighbors": 0}, {"perplexity": 0.5}])
def test_wrong_parameters_are_refused(rows, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RowMap(**wrong).fit(rows[0])


def test_rows_with_gaps_are_refused_and_names_are_given(rows):
    with pytest.raises(ValueError, match="NaN"):
        RowMap().fit([[np.nan, 1.0], [1.0, 2.0]])
    assert RowMap().fit(rows[0]).get_feature_names_out().tolist() == ["rowmap0", "rowmap1"]
