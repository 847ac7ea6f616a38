"""SphericalKMeans: laws, reductions, and the manners of an estimator."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_clusterer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize
from sklearn.utils.estimator_checks import check_estimator

from coem import MixtureClusterer, SphericalKMeans, Views
from coem.families import VonMisesFisher

RNG = np.random.default_rng(0)
TOPICS = np.repeat(np.arange(5), 40)
WORDS = sp.csr_matrix(
    np.array([RNG.multinomial(30, p) for p in RNG.dirichlet(np.full(60, 0.1), 5)[TOPICS]])
).astype(float)
LINKS = sp.csr_matrix(
    np.array([RNG.multinomial(8, p) for p in RNG.dirichlet(np.full(25, 0.2), 5)[TOPICS]])
).astype(float)
POINTS = RNG.normal(size=(5, 6))[TOPICS] + 0.4 * RNG.normal(size=(200, 6))
BOTH = {"words": WORDS, "links": LINKS}
FITTED = ("labels_", "view_labels_", "objective_")


def k_means(X, k=5, *, weight=None, **options):
    options = {"random_state": 0} | options
    return SphericalKMeans(k, **options).fit(X, sample_weight=weight)


def same(a, b, *, bits=True):
    np.testing.assert_array_equal(a.labels_, b.labels_)
    np.testing.assert_array_equal(a.view_labels_, b.view_labels_)
    for name, centres in a.cluster_centers_.items():
        if bits:
            np.testing.assert_array_equal(centres, b.cluster_centers_[name])
        else:
            np.testing.assert_allclose(centres, b.cluster_centers_[name], atol=2e-6)


# -- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("X", [WORDS, POINTS, BOTH, [WORDS, POINTS, LINKS]])
def test_it_finds_the_topics(X):
    model = k_means(X, n_init=5)
    assert normalized_mutual_info_score(TOPICS, model.labels_) > 0.9
    for centres in (*model.cluster_centers_.values(), *model.consensus_centers_.values()):
        np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 1.0, rtol=1e-5)


@pytest.mark.parametrize("X", [WORDS, POINTS])
def test_one_view_never_gets_worse(X):
    for seed in range(5):
        model = k_means(X, 9, random_state=seed, dtype=np.float64)
        objective = [record.objective for record in model.history_]
        assert (np.diff(objective) >= -1e-12 * objective[-1]).all()
        assert model.converged_


@pytest.mark.parametrize("X", [WORDS, POINTS, BOTH])
def test_same_bits_for_any_number_of_threads(X):
    one = k_means(X, n_init=3, n_jobs=1)
    for n_jobs in (2, 4):
        other = k_means(X, n_init=3, n_jobs=n_jobs)
        same(one, other)
        assert [run.objective for run in one.runs_] == [run.objective for run in other.runs_]


@pytest.mark.parametrize("X", [WORDS, POINTS, [WORDS, POINTS]])
@pytest.mark.parametrize("init", ["k-means++", "rows"])
def test_weights_count_rows(X, init):
    weight = np.random.default_rng(1).integers(0, 3, size=200)
    rows = np.repeat(np.arange(200), weight)
    whole = X if isinstance(X, list) else [X]
    options = {"init": init, "dtype": np.float64, "max_iter": 10, "patience": None}
    a = k_means(whole, weight=weight, **options)
    b = k_means([x[rows] for x in whole], **options)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-12)
    np.testing.assert_array_equal(a.labels_[rows], b.labels_)


@pytest.mark.parametrize("X", [WORDS, POINTS, [WORDS, POINTS]])
@pytest.mark.parametrize("init", ["k-means++", "rows"])
def test_the_order_of_rows_does_not_matter(X, init):
    order = np.random.default_rng(2).permutation(200)
    whole = X if isinstance(X, list) else [X]
    a = k_means(whole, init=init, dtype=np.float64)
    b = k_means([x[order] for x in whole], init=init, dtype=np.float64)
    np.testing.assert_array_equal(a.labels_[order], b.labels_)


@pytest.mark.parametrize("init", ["k-means++", "rows"])
def test_dense_and_sparse_are_the_same(init):
    a, b = (k_means(X, init=init, dtype=np.float64) for X in (WORDS, WORDS.toarray()))
    np.testing.assert_array_equal(a.labels_, b.labels_)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-12)


def test_length_does_not_matter():
    scale = sp.diags_array(np.random.default_rng(3).uniform(0.1, 10.0, size=200))
    same(k_means(WORDS), k_means(sp.csr_matrix(scale @ WORDS)), bits=False)
    same(k_means(WORDS), k_means(normalize(WORDS)), bits=False)


def test_a_cluster_takes_an_index_of_64_bits():
    wide = WORDS.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    same(k_means(WORDS), k_means(wide))


# -- reductions ------------------------------------------------------------------------------------


def test_one_view_is_classification_em_of_directions():
    first = k_means(WORDS, max_iter=1, patience=None, dtype=np.float64)
    for rounds in (1, 3, 6):
        model = k_means(WORDS, max_iter=rounds + 1, patience=None, dtype=np.float64)
        mixture = MixtureClusterer(
            5,
            family=VonMisesFisher(kappa=3.0),
            posterior="hard",
            weights="uniform",
            init=np.eye(5)[first.labels_],
            max_iter=rounds,
            tol=0,
            dtype=np.float64,
        ).fit(WORDS)
        np.testing.assert_array_equal(model.labels_, mixture.labels_)
        centres = mixture.theta_["view0"].directions
        np.testing.assert_allclose(model.cluster_centers_["view0"], centres, atol=1e-12)


def test_identical_views_are_one_view_twice_as_fast():
    one = k_means(WORDS, max_iter=8, patience=None, dtype=np.float64)
    two = k_means([WORDS, WORDS], max_iter=4, patience=None, dtype=np.float64)
    np.testing.assert_array_equal(two.view_labels_[:, 1], one.labels_)


def test_with_one_cluster_the_objective_is_the_length_of_the_sum():
    model = k_means(WORDS, 1)
    total = np.asarray(normalize(WORDS).sum(axis=0)).ravel()
    assert model.objective_ == pytest.approx(np.linalg.norm(total), rel=1e-6)


def test_as_many_clusters_as_rows():
    model = k_means(POINTS[:12], 12, init=POINTS[:12])
    assert sorted(model.labels_) == list(range(12))
    assert model.objective_ == pytest.approx(12.0)


# -- restarts, rounds and reports ------------------------------------------------------------------


def test_the_restart_with_the_largest_objective_is_kept():
    model = k_means(BOTH, 9, n_init=6)
    values = [run.objective for run in model.runs_]
    assert len(set(values)) > 1
    assert model.objective_ == max(values) == values[model.best_run_]
    assert model.n_iter_ == model.runs_[model.best_run_].n_iter == len(model.history_)


def test_given_concept_vectors_there_is_one_run():
    assert len(k_means(WORDS, init=WORDS[:5], n_init=7).runs_) == 1


def test_history():
    model = k_means(BOTH)
    record = model.history_[-1]
    assert record.objective == pytest.approx(sum(record.view_objective.values()))
    assert set(record.view_objective) == {"words", "links"}
    agree = (model.view_labels_[:, 0] == model.view_labels_[:, 1]).mean()
    rates = {round(r.agreement_rate, 12) for r in model.history_}
    assert round(float(agree), 12) in rates
    frame = model.history_.to_frame()
    assert len(frame) == model.n_iter_
    assert "view_objective_links" in frame


def test_progress_is_written(capsys):
    k_means(WORDS, verbose=10)
    assert "[SphericalKMeans] run 1 round 1: objective" in capsys.readouterr().err


def test_too_few_rounds_are_reported():
    with pytest.warns(ConvergenceWarning, match="no convergence after 1 rounds"):
        k_means(WORDS, 9, max_iter=1)


def test_fewer_directions_than_clusters_are_reported():
    X = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 3.0]])
    with pytest.warns(ConvergenceWarning, match=r"clusters \[.*\] of 3 have no rows"):
        model = k_means(X, 3)
    assert np.isfinite(model.cluster_centers_["view0"]).all()
    assert model.history_[0].reseeded


# -- rows without a view ---------------------------------------------------------------------------


def holes():
    words, links = WORDS.toarray(), LINKS.toarray()
    links[::3] = 0.0
    words[1::5] = 0.0
    links[1], words[1] = 0.0, 0.0
    return {"words": words, "links": links}


def test_empty_rows():
    views = holes()
    model = k_means(views, n_init=5)
    empty = np.stack([~X.any(axis=1) for X in views.values()], axis=1)
    np.testing.assert_array_equal(model.view_labels_ == -1, empty)
    assert (
        model.labels_[1]
        == np.bincount(np.delete(model.labels_, np.flatnonzero(empty.all(1)))).argmax()
    )
    assert normalized_mutual_info_score(TOPICS, model.labels_) > 0.85
    np.testing.assert_array_equal(model.predict(views), model.labels_)
    missing = {name: np.where(X.any(axis=1, keepdims=True), X, np.nan) for name, X in views.items()}
    same(model, k_means(missing, n_init=5))


def test_rows_that_are_empty_everywhere_change_nothing():
    views = {name: X.toarray() for name, X in BOTH.items()}
    more = {name: np.vstack([X, np.zeros((3, X.shape[1]))]) for name, X in views.items()}
    a, b = k_means(views), k_means(more)
    np.testing.assert_array_equal(a.labels_, b.labels_[:200])
    assert a.objective_ == pytest.approx(b.objective_)
    assert (b.transform(more)[-1] == np.pi / 2).all()


def test_a_view_that_a_cluster_has_no_rows_in():
    links = LINKS.toarray()
    links[6:] = 0.0
    model = k_means({"links": links, "words": WORDS})
    assert np.isfinite(model.cluster_centers_["links"]).all()
    assert normalized_mutual_info_score(TOPICS, model.labels_) > 0.6


# -- predict, transform, score ---------------------------------------------------------------------


@pytest.mark.parametrize("X", [WORDS, POINTS, BOTH])
def test_predict_transform_and_score(X):
    model = k_means(X, n_init=2)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    angles = model.transform(X)
    np.testing.assert_array_equal(angles.argmin(axis=1), model.labels_)
    assert ((angles >= 0) & (angles <= np.pi)).all()
    assert model.score(X) == pytest.approx(model.objective_, rel=1e-6)
    assert list(model.get_feature_names_out()) == [f"sphericalkmeans{j}" for j in range(5)]


def test_views_are_found_by_name():
    model = k_means(BOTH)
    swapped = {"links": LINKS, "words": WORDS}
    np.testing.assert_array_equal(model.predict(swapped), model.labels_)


def test_it_works_in_a_pipeline():
    assert is_clusterer(SphericalKMeans())
    line = make_pipeline(TfidfTransformer(sublinear_tf=True), SphericalKMeans(5, random_state=0))
    assert normalized_mutual_info_score(TOPICS, line.fit_predict(WORDS)) > 0.8
    assert clone(line).fit(WORDS)[-1].objective_ == line[-1].objective_


def test_rows_of_no_direction_go_to_the_heaviest_cluster():
    X = np.vstack([np.tile([1.0, 0.0], (3, 1)), np.tile([0.0, 1.0], (2, 1)), [[0.0, 0.0]]])
    weight = np.array([1, 1, 1, 5, 5, 1])
    model = SphericalKMeans(2, init=np.eye(2)).fit(X, sample_weight=weight)
    assert model.labels_[-1] == model.predict(X)[-1] == 1


def test_labels_are_those_of_predict_where_rounding_decides():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        X = 1 + 1e-3 * rng.standard_normal((int(rng.integers(8, 60)), int(rng.integers(1, 5))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = k_means(X, int(rng.integers(2, 8)), random_state=seed)
        np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-30, 1e30, 1e140])
@pytest.mark.parametrize("sparse", [True, False])
def test_scale_does_not_matter(scale, sparse):
    X = WORDS if sparse else POINTS
    model, scaled = k_means(X), k_means(X * scale)
    np.testing.assert_array_equal(model.labels_, scaled.labels_)
    assert scaled.objective_ == pytest.approx(model.objective_, rel=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weight", [1e-100, 1e-46, 1e-30, 1e25, 1e38, 1e100])
def test_a_factor_of_all_weights_does_not_matter(weight, dtype):
    plain = k_means(WORDS, dtype=dtype)
    heavy = k_means(WORDS, dtype=dtype, weight=np.full(WORDS.shape[0], weight))
    np.testing.assert_array_equal(heavy.labels_, plain.labels_)
    assert heavy.objective_ / weight == pytest.approx(plain.objective_, rel=1e-6)


def test_near_rows_are_told_apart_sparse_and_dense():
    angles = np.repeat(np.arange(5) * 4e-4, 6)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    for data in (X, sp.csr_matrix(X)):
        model = k_means(data, n_init=10, dtype=np.float64)
        assert len(set(zip(angles, model.labels_, strict=True))) == 5


def test_the_data_are_not_changed():
    views = Views(words=WORDS.copy(), points=POINTS.copy())
    k_means(views)
    np.testing.assert_array_equal(views["points"], POINTS)
    assert (views["words"] != WORDS).nnz == 0


@pytest.mark.filterwarnings("ignore")  # tiny sets, few rounds, skipped checks
@pytest.mark.parametrize(
    "model", [SphericalKMeans(), SphericalKMeans(3, init="rows", n_init=2, n_jobs=2)]
)
def test_scikit_learns_checks(model):
    results = check_estimator(model, on_skip=None, on_fail=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}
    assert sum(r["status"] == "passed" for r in results) > 40


# -- bad input -------------------------------------------------------------------------------------

BAD = [
    ({"n_clusters": 0}, WORDS, "n_clusters must be an integer of 1 or more, got 0"),
    (
        {"n_clusters": 201},
        WORDS,
        "n_samples=200 rows that are not empty and have a weight cannot fill",
    ),
    ({"n_init": 0}, WORDS, "n_init must be"),
    ({"max_iter": 0}, WORDS, "max_iter must be"),
    ({"patience": 0}, WORDS, "patience must be"),
    ({"dtype": "float16"}, WORDS, "dtype must be"),
    ({"n_jobs": 0}, WORDS, "n_jobs must be"),
    ({"init": "spherical"}, WORDS, "init must be one of 'k-means\\+\\+', 'rows'"),
    ({"init": 3}, WORDS, "init must be one of .* or an array of concept vectors, got 3"),
    (
        {"init": WORDS[:5]},
        BOTH,
        r"init must have shape \(5, 25\), clusters by features",
    ),
    ({"init": np.zeros((5, 60))}, WORDS, "init: row 0 has no direction"),
    ({"init": np.full((5, 60), np.nan)}, WORDS, "init: row 0 has no direction"),
    ({}, {"a": WORDS, "b": WORDS[:3]}, "rows"),
    ({}, {"a": WORDS, "b": np.where(POINTS > 2, np.inf, POINTS)}, "view 'b', row"),
    (
        {},
        {"a": WORDS, "b": np.eye(200, 4)},
        "in view 'b' cannot fill .* put another view",
    ),
]


@pytest.mark.parametrize(("options", "X", "message"), BAD, ids=[b[2][:40] for b in BAD])
def test_bad_input_is_refused_before_any_work(options, X, message):
    model = SphericalKMeans(**({"n_clusters": 5} | options))
    with pytest.raises(ValueError, match=message):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_failed_fit_leaves_the_old_model():
    model = k_means(WORDS)
    before = model.labels_
    model.set_params(n_clusters=-1)
    with pytest.raises(ValueError, match="n_clusters"):
        model.fit(WORDS)
    assert model.labels_ is before
    with pytest.raises(ValueError, match="features"):
        model.predict(LINKS)


def test_a_wrong_weight_is_refused():
    with pytest.raises(ValueError, match=r"sample_weight: row 7 has 1e\+200, which is too large"):
        k_means(WORDS, weight=np.where(np.arange(200) == 7, 1e200, 1.0))
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        k_means(WORDS, weight=np.zeros(200))
