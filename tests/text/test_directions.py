"""Latent directions: an exact twin, laws, empty rows, tiny inputs, and what is refused."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import coem
from coem import MixtureClassifier, MixtureClusterer, Views
from coem.datasets import fetch_cluto
from coem.families.auto import has_unit_rows
from coem.families.named import choices_for
from coem.text import LatentDirections

RNG = np.random.default_rng(5)
TOPICS = np.repeat([0, 1, 2], 40)


def topical(rng, n_words=60):
    """Return counts of three topics that share some words; two rows are empty."""
    means = rng.gamma(0.3, 1.5, (3, n_words))
    counts = rng.poisson(means[TOPICS])
    counts[[7, 50]] = 0
    return counts


COUNTS = topical(RNG)
UNIT = RNG.standard_normal((len(COUNTS), 4))
UNIT /= np.linalg.norm(UNIT, axis=1, keepdims=True)


def tf_idf_twin(counts, new, min_df=3):
    """Return the TF-IDF rows of scikit-learn for the frequent words of `counts`."""
    words = (counts > 0).sum(axis=0) >= min_df
    weights = TfidfTransformer(sublinear_tf=True, smooth_idf=True).fit(counts[:, words])
    return weights.transform(new[:, words]).toarray()


def twin(counts, new, n_directions):
    """Return centred unit rows by an exact SVD, up to the signs of the directions."""
    rows = tf_idf_twin(counts, counts)
    _, values, directions = np.linalg.svd(rows, full_matrices=False)
    directions = directions[:n_directions]
    filled = rows.any(axis=1)
    mean = (rows[filled] @ directions.T).mean(axis=0)
    fresh = tf_idf_twin(counts, new)
    out = fresh @ directions.T - mean
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    out[~fresh.any(axis=1)] = np.nan
    return out, values[:n_directions], directions


def signed(rows, expected):
    """Return the rows with the signs of the expected columns."""
    return rows * np.sign(np.nansum(rows * expected, axis=0))


# The checks say that they skip some, which warns.
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([LatentDirections(), LatentDirections(3, min_df=1, n_passes=2)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csr_array, sp.csc_array])
def test_rows_are_those_of_an_exact_svd(make):
    new = topical(np.random.default_rng(6))
    model = LatentDirections(5).fit(make(COUNTS))
    # 155 directions are searched and there are 60 words: the search is exact but for rounding.
    for X in (COUNTS, new):
        expected, values, directions = twin(COUNTS, X, 5)
        got = model.transform(make(X))
        assert got.dtype == np.float32
        np.testing.assert_allclose(signed(got, expected), expected, atol=2e-5)
    np.testing.assert_allclose(model.singular_values_, values, rtol=1e-5)
    overlap = np.linalg.svd(directions @ model.components_.T, compute_uv=False)
    np.testing.assert_allclose(overlap, 1, atol=1e-5)
    n_filled = COUNTS[:, model.words_].any(axis=1).sum()
    assert model.explained_share_ == pytest.approx((values**2).sum() / n_filled, rel=1e-5)


def test_weights_are_those_of_scikit_learn():
    model = LatentDirections(2).fit(COUNTS)
    words = (COUNTS > 0).sum(axis=0) >= 3
    theirs = TfidfTransformer(sublinear_tf=True).fit(COUNTS[:, words])
    np.testing.assert_array_equal(model.words_, np.flatnonzero(words))
    np.testing.assert_allclose(model.idf_, theirs.idf_, rtol=1e-14)


def test_counts_below_one_never_become_negative():
    fractional = COUNTS * 0.01  # 1 + log(0.01) is negative
    model = LatentDirections(3).fit(fractional)
    plain = LatentDirections(3, sublinear=False).fit(COUNTS)
    np.testing.assert_allclose(
        model.transform(fractional), plain.transform(COUNTS), atol=1e-5, equal_nan=True
    )


def test_directions_are_orthonormal_and_their_signs_fixed():
    model = LatentDirections(20, n_passes=3, oversampling=1).fit(COUNTS)
    gram = model.components_ @ model.components_.T
    np.testing.assert_allclose(gram, np.eye(20), atol=1e-5)  # they are kept in single precision
    largest = np.abs(model.components_).argmax(axis=1)
    assert (model.components_[np.arange(20), largest] > 0).all()
    assert (np.diff(model.singular_values_) <= 0).all()


# -- laws -----------------------------------------------------------------------------------------


def wide(n_rows=5000, n_words=2000):
    """Return enough counts for several tasks of every kind."""
    rng = np.random.default_rng(0)
    density = 30 / n_words
    return sp.random_array(
        (n_rows, n_words),
        density=density,
        random_state=rng,
        format="csr",
        data_sampler=rng.exponential,
    )


def test_threads_change_no_bit():
    X = wide()
    one, two = (LatentDirections(10, n_passes=3, oversampling=20, n_jobs=n).fit(X) for n in (1, 2))
    for name in ("components_", "mean_", "singular_values_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.transform(X), two.transform(X))


def test_fit_transform_is_fit_and_transform():
    X = wide()
    model = LatentDirections(10, n_passes=2)
    expected = model.fit_transform(X)
    np.testing.assert_array_equal(clone(model).fit(X).transform(X), expected)
    np.testing.assert_array_equal(model.transform(X), expected)


def test_each_row_is_transformed_by_itself():
    X = wide()
    model = LatentDirections(10, n_passes=2).fit(X)
    rows = np.random.default_rng(1).permutation(X.shape[0])[:500]
    np.testing.assert_array_equal(model.transform(X[rows]), model.transform(X)[rows])
    np.testing.assert_array_equal(model.transform(X[[3, 3]]), model.transform(X)[[3, 3]])
    np.testing.assert_array_equal(model.transform(X[:9].toarray()), model.transform(X[:9]))


def test_the_order_of_the_rows_matters_to_rounding_alone():
    rows = np.random.default_rng(2).permutation(len(COUNTS))
    # Few passes and a narrow search: the directions are not exact, and still the same.
    model = LatentDirections(4, n_passes=2, oversampling=4)
    expected = clone(model).fit(COUNTS).transform(COUNTS)
    np.testing.assert_allclose(
        model.fit(COUNTS[rows]).transform(COUNTS), expected, atol=1e-4, equal_nan=True
    )


def test_duplicates_and_stored_zeros_are_one_count_and_none():
    X = sp.csr_matrix(([1.0, 3.0, 2.0, 0.0], [2, 0, 2, 1], [0, 3, 4]), shape=(2, 3))
    X = sp.vstack([X, sp.csr_matrix(COUNTS[:, :3])], format="csr")
    model = LatentDirections(2, min_df=1)
    np.testing.assert_array_equal(model.fit_transform(X), model.fit_transform(X.toarray()))
    assert np.isnan(model.transform(X)[1]).all()


def test_seeds_and_more_passes_come_to_the_same_directions():
    X = wide(1500, 500)
    shares = [
        LatentDirections(20, oversampling=20, n_passes=n, random_state=s).fit(X).explained_share_
        for n, s in ((1, 0), (4, 0), (4, 1))
    ]
    assert shares[0] < shares[1]
    assert shares[1] == pytest.approx(shares[2], rel=0.05)


# -- empty rows and small inputs ------------------------------------------------------------------


def test_rows_without_a_known_word_are_nan_and_empty_for_the_family():
    X = COUNTS.copy()
    X = np.hstack([X, np.zeros((len(X), 1), int)])
    X[7, -1] = 2  # only a word that is rare
    rows = LatentDirections(5).fit_transform(X)
    empty = np.isnan(rows)
    np.testing.assert_array_equal(empty.any(axis=1), empty.all(axis=1))
    assert np.flatnonzero(empty.all(axis=1)).tolist() == [7, 50]
    np.testing.assert_allclose(np.linalg.norm(rows[~empty[:, 0]], axis=1), 1, atol=1e-6)
    assert has_unit_rows(rows)
    ((family, _),) = choices_for("auto", Views(latent=rows)).values()
    assert type(family).__name__ == "VonMisesFisher"
    assert np.flatnonzero(family.empty(rows)).tolist() == [7, 50]
    model = MixtureClusterer(3, random_state=0, n_init=3).fit(rows)
    assert type(model.families_["view0"]).__name__ == "VonMisesFisher"
    there = ~empty[:, 0]
    assert coem.metrics.aligned_accuracy(TOPICS[there], model.labels_[there]) > 0.9


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (2, 2), (3, 7), (7, 3)])
def test_fewer_rows_or_columns_than_directions(shape):
    X = 1 + np.arange(np.prod(shape)).reshape(shape) ** 2
    model = LatentDirections(min_df=1).fit(X)
    assert 1 <= model.n_directions_ <= min(shape)
    rows = model.transform(X)
    assert rows.shape == (shape[0], model.n_directions_)
    lengths = np.linalg.norm(rows, axis=1)
    if 1 in shape:  # all rows are the mean
        assert np.isnan(lengths).all()
    else:
        np.testing.assert_allclose(lengths, 1, atol=1e-6)
    assert len(model.get_feature_names_out()) == model.n_directions_


def test_the_rank_limits_the_directions():
    X = np.repeat(np.eye(3, dtype=int), 6, axis=0)
    model = LatentDirections(10).fit(X)
    assert model.n_directions_ == 3
    assert model.explained_share_ == pytest.approx(1, rel=1e-6)
    np.testing.assert_array_equal(model.transform(X)[::6][[0]], model.transform(X)[[5]])


def test_one_direction_is_a_direction_too():
    rows = LatentDirections(1).fit_transform(COUNTS)
    assert np.unique(rows[~np.isnan(rows)]).tolist() == [-1, 1]
    assert has_unit_rows(rows)
    assert not has_unit_rows(np.abs(rows))  # counts may be so


def test_equal_rows_have_no_direction():
    rows = LatentDirections(2).fit_transform(np.tile([[3, 1, 2]], (9, 1)))
    assert np.isnan(rows).all()


# -- views ----------------------------------------------------------------------------------------


def test_several_views_get_one_more():
    views = Views(title=COUNTS[:, :20], meaning=UNIT, body=sp.csr_matrix(COUNTS[:, 20:]))
    model = LatentDirections(5, name="lsa").fit(views)
    out = model.transform(views)
    assert out.names == ("title", "meaning", "body", "lsa")
    for name in views.names:
        assert out[name] is views[name]
    assert model.count_views_ == ("title", "body")
    np.testing.assert_array_equal(out["lsa"], LatentDirections(5).fit_transform(COUNTS))
    np.testing.assert_array_equal(model.fit_transform(views)["lsa"], out["lsa"])
    np.testing.assert_array_equal(model.transform(views[[3]])["lsa"], out["lsa"][[3]])
    assert isinstance(LatentDirections(2).fit_transform([COUNTS]), Views)


def test_names_of_columns():
    model = LatentDirections(2).fit(COUNTS)
    assert model.get_feature_names_out().tolist() == ["latent0", "latent1"]
    frame = pd.DataFrame(COUNTS, columns=[f"w{i}" for i in range(60)])
    wrapped = LatentDirections(2).set_output(transform="pandas").fit_transform(frame)
    assert wrapped.columns.tolist() == ["latent0", "latent1"]
    model = LatentDirections(2).fit(Views(a=COUNTS, b=COUNTS[:, :2]))
    names = model.get_feature_names_out({"b": ["cat", "dog"]})
    assert list(names) == ["a", "b", "latent"]
    assert names["b"].tolist() == ["cat", "dog"]
    assert names["latent"].tolist() == ["latent0", "latent1"]


def test_pipelines_and_grids():
    y = np.where(np.arange(len(TOPICS)) % 4 == 0, TOPICS, -1)
    model = make_pipeline(LatentDirections(5), MixtureClassifier(random_state=0))
    assert (model.fit(Views(words=COUNTS), y).predict(Views(words=COUNTS)) == TOPICS).mean() > 0.9
    grid = GridSearchCV(model, {"latentdirections__n_directions": [1, 5]}, cv=2)
    grid.fit(Views(words=COUNTS), TOPICS)
    assert grid.best_params_ == {"latentdirections__n_directions": 5}


def test_a_sum_over_directions_is_divided_among_words():
    views = Views(title=COUNTS[:, :20], body=COUNTS[:, 20:])
    model = LatentDirections(5).fit(views)
    row, weights = views[[3]], RNG.standard_normal(5)
    shares = weights * model.transform(row)["latent"][0]
    words, contributions, rest = model.by_word(row, shares)
    np.testing.assert_array_equal(words, np.intersect1d(np.flatnonzero(COUNTS[3]), model.words_))
    assert contributions.sum() + rest == pytest.approx(shares.sum(), abs=1e-12)
    # The twin: the rest is what a row of nothing would have, at the length of this row.
    centred = tf_idf_twin(COUNTS, COUNTS)[3] @ model.components_.T - model.mean_
    length = np.linalg.norm(centred)
    assert rest == pytest.approx(-weights @ model.mean_ / length, rel=1e-4)
    by_twin = tf_idf_twin(COUNTS, COUNTS)[3] * (weights @ model.components_) / length
    np.testing.assert_allclose(contributions, by_twin[by_twin != 0], rtol=1e-3, atol=1e-5)


def test_a_model_file_gives_the_same_bits(tmp_path):
    views = Views(words=COUNTS, meaning=UNIT)
    model = LatentDirections(5).fit(views)
    coem.save(model, tmp_path / "model.coem")
    loaded = coem.load(tmp_path / "model.coem")
    expected = model.transform(views)["latent"]
    np.testing.assert_array_equal(loaded.transform(views)["latent"], expected)
    assert loaded.get_params() == model.get_params()
    model.words_ = model.words_[::-1].copy()
    coem.save(model, tmp_path / "bad.coem")
    with pytest.raises(ValueError, match="words_ does not fit"):
        coem.load(tmp_path / "bad.coem")


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_directions": 0}, "n_directions must be an integer of 1 or more"),
        ({"n_directions": 2.5}, "n_directions must be an integer"),
        ({"min_df": 0.1}, "min_df must be an integer"),
        ({"n_passes": 0}, "n_passes must be"),
        ({"oversampling": -1}, "oversampling must be"),
        ({"sublinear": "yes"}, "sublinear must be True or False"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"name": ""}, "name must be"),
        ({"min_df": 1000}, r"no word occurs in min_df=1000 rows or more.*lower min_df"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        LatentDirections(**parameters).fit(COUNTS)


def test_what_are_no_counts_is_refused():
    X = COUNTS.astype(float)
    X[3, 2] = -1
    with pytest.raises(ValueError, match=r"view 'b', row 3 has -1.0.*only views of counts"):
        LatentDirections().fit(Views(a=COUNTS, b=X))
    fitted = LatentDirections(2).fit(COUNTS)
    with pytest.raises(ValueError, match=r"row 3 has -1\.0"):
        fitted.transform(X)
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="row 3: the value nan is not finite"):
        LatentDirections().fit(X)
    with pytest.raises(ValueError, match="view 'view0': all rows have Euclidean length 1"):
        LatentDirections().fit(UNIT)
    with pytest.raises(ValueError, match="there is a view 'latent' already"):
        LatentDirections().fit(Views(latent=COUNTS))
    with pytest.raises(ValueError, match="no word occurs"):
        LatentDirections().fit(np.zeros((5, 4)))


def test_a_failed_fit_changes_nothing():
    model = LatentDirections(2).fit(COUNTS)
    before = model.transform(COUNTS)
    with pytest.raises(ValueError, match="no word"):
        model.fit(np.zeros((5, 4)))
    np.testing.assert_array_equal(model.transform(COUNTS), before)


# -- real data ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wap", "tr11"])
def test_the_share_of_real_data_is_within_one_percent_of_the_exact_one(name):
    own = os.environ.get("COEM_DATA")
    if not own or not Path(own, "cluto").is_dir():
        pytest.skip("needs the folder cluto in COEM_DATA")
    X = fetch_cluto(name).views["words"]
    model = LatentDirections(100).fit(X)
    frequent = np.bincount(X.indices, minlength=X.shape[1]) >= 3
    rows = TfidfTransformer(sublinear_tf=True).fit_transform(X[:, frequent])
    squares = np.linalg.eigvalsh((rows @ rows.T).toarray())[-100:]
    exact = squares.sum() / np.count_nonzero(np.diff(rows.indptr))
    assert 0.99 * exact < model.explained_share_ <= exact * (1 + 1e-6)
