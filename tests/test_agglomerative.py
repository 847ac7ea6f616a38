"""MultiViewAgglomerative: the algorithm of Table 2 (2004), and the manners of an estimator."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.cluster.hierarchy import cut_tree, dendrogram, is_valid_linkage
from scipy.cluster.hierarchy import linkage as scipy_linkage
from scipy.spatial.distance import pdist, squareform
from sklearn.base import clone, is_clusterer
from sklearn.cluster import AgglomerativeClustering
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.utils.estimator_checks import check_estimator

from coem import MultiViewAgglomerative, Views
from coem.kernels.agglomerate import LINKAGES

RNG = np.random.default_rng(0)
POINTS = RNG.normal(size=(60, 5))
WORDS = sp.csr_matrix(RNG.poisson(0.6, size=(60, 30)))
OTHER = RNG.normal(size=(60, 3))
FITTED = ("children_", "distances_", "merge_view_", "linkage_matrix_", "labels_")

every_linkage = pytest.mark.parametrize("linkage", LINKAGES)
every_metric = pytest.mark.parametrize("metric", ["cosine", "euclidean"])


def cluster(X, n_clusters=2, **options):
    return MultiViewAgglomerative(n_clusters, **options).fit(X)


def table_2(distances, linkage):
    """Return the merges of Table 2 as sets of rows: clusters are lists, nothing is updated."""
    reduce = {"single": np.min, "complete": np.max, "average": np.mean}[linkage]
    clusters = [[i] for i in range(len(distances[0]))]
    merged = []
    while len(clusters) > 1:
        D = distances[len(merged) % len(distances)]
        pairs = [(i, j) for j in range(len(clusters)) for i in range(j)]
        i, j = min(pairs, key=lambda p: reduce(D[np.ix_(clusters[p[0]], clusters[p[1]])]))
        union = clusters[i] + clusters[j]
        clusters = [c for at, c in enumerate(clusters) if at not in (i, j)] + [union]
        merged.append(frozenset(union))
    return merged


def merged_rows(model):
    """Return the rows of every merge, in order."""
    rows = [frozenset([i]) for i in range(len(model.labels_))]
    for a, b in model.children_:
        rows.append(rows[a] | rows[b])
    return rows[len(model.labels_) :]


# -- what it computes ------------------------------------------------------------------------------


@every_linkage
@pytest.mark.parametrize("n_views", [1, 2, 3])
def test_transcription_of_table_2(n_views, linkage):
    views = [POINTS[:25], WORDS[:25], OTHER[:25]][:n_views]
    distances = [pairwise_distances(X, metric="cosine") for X in views]
    if n_views == 2:  # counts have ties, which the transcription breaks in its own way
        views, distances = [POINTS[:25], OTHER[:25]], [distances[0], cosine(OTHER[:25])]
    if n_views == 3:
        views[1], distances[1] = POINTS[25:50], cosine(POINTS[25:50])
    model = cluster(views, linkage=linkage)
    assert merged_rows(model) == table_2(distances, linkage)


def cosine(X):
    return pairwise_distances(X, metric="cosine")


def test_views_take_turns():
    model = cluster({"b": POINTS, "a": WORDS, "c": OTHER})
    assert model.view_names_ == ("b", "a", "c")
    np.testing.assert_array_equal(model.merge_view_, np.arange(59) % 3)
    assert model.distances_[0] == pytest.approx(pdist(POINTS, "cosine").min())


@every_linkage
@every_metric
def test_one_view_is_scipys_linkage(metric, linkage):
    X = np.random.default_rng(1).normal(size=(500, 8))
    model = cluster(X, metric=metric, linkage=linkage)
    expected = scipy_linkage(pdist(X, metric), linkage)
    np.testing.assert_array_equal(model.children_, expected[:, :2])
    np.testing.assert_allclose(model.distances_, expected[:, 2], rtol=1e-9)
    np.testing.assert_allclose(model.linkage_matrix_, expected, rtol=1e-9)
    assert not model.merge_view_.any()


@every_linkage
@every_metric
@pytest.mark.parametrize("k", [1, 2, 7, 60])
def test_one_view_has_scikit_learns_labels(k, metric, linkage):
    theirs = AgglomerativeClustering(k, metric=metric, linkage=linkage).fit(POINTS)
    ours = cluster(POINTS, k, metric=metric, linkage=linkage)
    assert adjusted_rand_score(theirs.labels_, ours.labels_) == 1
    np.testing.assert_array_equal(np.sort(ours.children_), np.sort(theirs.children_))


@every_linkage
@every_metric
def test_equal_views_are_one_view(metric, linkage):
    one = cluster(POINTS, metric=metric, linkage=linkage)
    two = cluster([POINTS, POINTS], metric=metric, linkage=linkage)
    np.testing.assert_array_equal(one.linkage_matrix_, two.linkage_matrix_)


@every_linkage
@every_metric
def test_order_of_rows_does_not_matter(metric, linkage):
    views = Views(a=POINTS, b=OTHER)
    order = np.random.default_rng(5).permutation(60)
    straight = cluster(views, 7, metric=metric, linkage=linkage)
    mixed = cluster(views[order], 7, metric=metric, linkage=linkage)
    back = [frozenset(order[list(rows)].tolist()) for rows in merged_rows(mixed)]
    assert back == merged_rows(straight)
    np.testing.assert_allclose(mixed.distances_, straight.distances_, rtol=1e-12)
    assert adjusted_rand_score(mixed.labels_, straight.labels_[order]) == 1


@every_linkage
@every_metric
def test_sparse_is_dense(metric, linkage):
    X = sp.random(80, 40, density=0.3, format="csr", random_state=0)
    dense = cluster([X.toarray(), POINTS[:1].repeat(80, 0)], metric=metric, linkage=linkage)
    for kind in (sp.csr_matrix, sp.csr_array, sp.coo_array, sp.csc_matrix):
        sparse = cluster([kind(X), POINTS[:1].repeat(80, 0)], metric=metric, linkage=linkage)
        np.testing.assert_array_equal(sparse.children_, dense.children_)
        np.testing.assert_allclose(sparse.distances_, dense.distances_, rtol=1e-9, atol=1e-14)


@every_linkage
@every_metric
def test_precomputed_distances(metric, linkage):
    given = [squareform(pdist(X, metric)) for X in (POINTS, OTHER)]
    before = [D.copy() for D in given]
    model = cluster(given, 4, metric="precomputed", linkage=linkage)
    expected = cluster([POINTS, OTHER], 4, metric=metric, linkage=linkage)
    np.testing.assert_array_equal(model.children_, expected.children_)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_allclose(model.distances_, expected.distances_, rtol=1e-12)
    np.testing.assert_array_equal(given, before)


def test_the_data_are_not_changed():
    dense, messy = POINTS.copy(), sp.csr_matrix(([1.0, 2, 3, 1], [2, 0, 0, 1], [0, 2, 3, 4]))
    messy.has_sorted_indices = False
    parts = messy.data.copy(), messy.indices.copy()
    for metric in ("cosine", "euclidean"):
        cluster(dense, metric=metric)
        cluster(messy, metric=metric)
    np.testing.assert_array_equal(dense, POINTS)
    np.testing.assert_array_equal(messy.data, parts[0])
    np.testing.assert_array_equal(messy.indices, parts[1])


@every_metric
def test_single_precision(metric):
    views = [POINTS.astype(np.float32), OTHER.astype(np.float32)]
    single = cluster(views, metric=metric)
    double = cluster([X.astype(np.float64) for X in views], metric=metric)
    np.testing.assert_array_equal(single.children_, double.children_)
    np.testing.assert_allclose(single.distances_, double.distances_, rtol=1e-6)
    assert (single.distances_ == single.distances_.astype(np.float32)).all()
    assert (double.distances_ != double.distances_.astype(np.float32)).any()


def test_ties_go_to_the_smallest_pair():
    D = np.array([[0, 2, 1, 2], [2, 0, 2, 1], [1, 2, 0, 2], [2, 1, 2, 0]])
    np.testing.assert_array_equal(
        cluster(D, metric="precomputed").children_, [[0, 2], [1, 3], [4, 5]]
    )
    np.testing.assert_array_equal(
        cluster(1 - np.eye(4), metric="precomputed").children_, [[0, 1], [2, 4], [3, 5]]
    )


# -- rows without content, and other trouble -------------------------------------------------------


def test_rows_of_zeros_are_far_from_everything():
    X = np.array([[1.0, 0.1], [0, 0], [1, 0.2], [0, 0]])
    for given in (X, sp.csr_matrix(X)):
        model = cluster(given, 3)
        np.testing.assert_array_equal(model.labels_, [0, 1, 0, 2])
        np.testing.assert_array_equal(model.distances_[1:], [1, 1])


def test_another_view_decides_on_rows_that_are_empty_in_one():
    angle = np.array([0, 0.1, 0.25, 0.26, 1.4, 1.41, 1.6, 1.75])
    bodies = np.column_stack([np.cos(angle), np.sin(angle)])
    titles = bodies * np.array([1, 1, 1, 0, 0, 1, 1, 1])[:, None]
    model = cluster({"title": titles, "body": bodies}, 2)
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, 0, 1, 1, 1, 1])


@every_linkage
@every_metric
def test_never_a_nan(metric, linkage):
    hard = {
        "zeros": np.zeros((6, 3)),
        "huge": np.array([[1e149, 0], [0, 1e149], [1, 1], [-1e149, 1e100]]),
        "tiny": np.array([[1e-300, 0], [1e-310, 1e-300], [0, 0], [5e-324, 0]]),
        "constant": np.full((5, 2), 1e8),
        "opposite": np.array([[1.0, 2], [-1, -2], [2, 4], [-2, -4]]),
        "booleans": np.eye(4, dtype=bool),
        "small integers": np.array([[200, 3], [255, 0], [0, 255]], dtype=np.uint8),
        "half precision": RNG.normal(size=(5, 2)).astype(np.float16),
        "two rows": np.eye(2),
    }
    for name, X in hard.items():
        for given in (X, sp.csr_matrix(X) if X.dtype != np.float16 else [X, X]):
            model = cluster(given, metric=metric, linkage=linkage)
            assert np.isfinite(model.linkage_matrix_).all(), name
            assert (model.distances_ >= 0).all(), name
            assert is_valid_linkage(model.linkage_matrix_), name


@every_metric
def test_equal_rows_have_no_distance(metric):
    rows = np.random.default_rng(2).normal(size=(20, 300))
    for X in (rows.repeat(3, axis=0), sp.csr_array(rows.repeat(3, axis=0))):
        model = cluster(X, 20, metric=metric)
        np.testing.assert_array_equal(model.distances_[:40], 0)
        np.testing.assert_array_equal(model.labels_, np.arange(20).repeat(3))


# -- the tree --------------------------------------------------------------------------------------


@every_linkage
def test_dendrogram_draws_several_views(linkage):
    model = cluster([POINTS, 1e3 * OTHER], metric="euclidean", linkage=linkage)
    assert (np.diff(model.distances_) < 0).any()  # the scales of the views alternate
    Z = model.linkage_matrix_
    assert is_valid_linkage(Z, throw=True)
    assert sorted(dendrogram(Z, no_plot=True)["leaves"]) == list(range(60))
    np.testing.assert_array_equal(Z[:, :2], model.children_)
    np.testing.assert_array_equal(Z[:, 2], model.distances_)
    np.testing.assert_array_equal(Z[:, 3], [len(rows) for rows in merged_rows(model)])


def test_cutting_undoes_the_last_merges():
    model = cluster([POINTS, 1e3 * OTHER], 3, metric="euclidean")
    rows = merged_rows(model)
    by_order = model.linkage_matrix_.copy()
    by_order[:, 2] = np.arange(1, 60)  # as the docstring says: scipy goes by the heights
    for k in range(1, 61):
        labels = model.cut(k)
        left = {frozenset([i]) for i in range(60)} | set(rows[: 60 - k])
        outermost = {a for a in left if not any(a < b for b in left)}
        assert {frozenset(np.flatnonzero(labels == j).tolist()) for j in range(k)} == outermost
        np.testing.assert_array_equal(np.unique(labels, return_index=True)[0], np.arange(k))
        assert (np.diff(np.unique(labels, return_index=True)[1]) > 0).all()
        assert adjusted_rand_score(cut_tree(by_order, k).ravel(), labels) == 1
    np.testing.assert_array_equal(model.cut(3), model.labels_)
    assert model.n_clusters_ == 3


def test_clusters_are_found_through_two_views():
    target = np.repeat(np.arange(4), 25)
    rng = np.random.default_rng(3)
    views = [rng.normal(size=(4, 6))[target] * 6 + rng.normal(size=(100, 6)) for _ in range(2)]
    for metric in ("cosine", "euclidean"):
        assert adjusted_rand_score(cluster(views, 4, metric=metric).labels_, target) == 1


# -- manners ---------------------------------------------------------------------------------------

D = squareform(pdist(POINTS[:6]))
CROOKED, NEGATIVE, WITHIN = D.copy(), D.copy(), D.copy()
CROOKED[4, 2] += 1
NEGATIVE[3, 1] = NEGATIVE[1, 3] = -2
WITHIN[5, 5] = 3
HOLE = POINTS[:6].copy()
HOLE[2, 1] = np.nan

BAD = {
    "no clusters": (POINTS, {"n_clusters": 0}, "n_clusters must be an integer of 1 or more, got 0"),
    "half a cluster": (POINTS, {"n_clusters": 2.5}, "n_clusters must be an integer"),
    "too many": (POINTS, {"n_clusters": 61}, "n_samples=60 rows cannot fill n_clusters=61"),
    "one row": (POINTS[:1], {"n_clusters": 1}, "n_samples=1 row cannot be merged"),
    "linkage": (POINTS, {"linkage": "ward"}, "linkage must be one of 'single', 'complete'"),
    "metric": (POINTS, {"metric": "l7"}, "metric must be one of 'cosine', 'euclidean'"),
    "NaN": ([POINTS[:6], HOLE], {}, "view 'view1', row 2: the value nan is not finite"),
    "infinite": (np.array([[1.0], [np.inf]]), {}, "view 'view0', row 1: the value inf"),
    "huge": (
        np.array([[1.0], [1e200]]),
        {"metric": "euclidean"},
        "view 'view0', row 1: .* too large; scale the view down",
    ),
    "huge for its precision": (
        np.array([[1.0], [-3e38], [3e38]], dtype=np.float32),
        {"metric": "euclidean"},
        "view 'view0', row 1: a distance of 6e.38 is too large for float32; scale the view down",
    ),
    "not square": (POINTS, {"metric": "precomputed"}, r"must be a square .* got shape \(60, 5\)"),
    "not symmetric": (
        {"a": D, "b": CROOKED},
        {"metric": "precomputed"},
        r"view 'b', row 2: .* column 4 differs from its mirror image; .* pass \(D \+ D.T\) / 2",
    ),
    "negative": (
        [D, NEGATIVE],
        {"metric": "precomputed"},
        "Negative values in data: view 'view1', row 1: the distance -2 in column 3 is negative",
    ),
    "within": (
        WITHIN,
        {"metric": "precomputed"},
        "row 5: the distance 3 in column 5 is the distance of the row from itself .* pass 1 - S",
    ),
    "NaN distance": (np.full((3, 3), np.nan), {"metric": "precomputed"}, "row 0: .* not finite"),
    "views of different rows": ([POINTS, OTHER[:5]], {}, "all views must describe the same rows"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    X, options, words = BAD[case]
    model = MultiViewAgglomerative(**options)
    with pytest.raises(ValueError, match=words):
        model.fit(X)
    assert not any(hasattr(model, name) for name in (*FITTED, "view_names_", "n_features_in_"))


def test_sparse_distances_are_refused():
    with pytest.raises(TypeError, match=r"must be dense, not sparse; call X.toarray\(\)"):
        cluster(sp.csr_matrix(D), metric="precomputed")


def test_almost_symmetric_is_symmetric():
    noise = 1 + 1e-8 * np.random.default_rng(0).normal(size=D.shape)
    got = cluster(D * noise, metric="precomputed")
    np.testing.assert_array_equal(got.labels_, cluster(D, metric="precomputed").labels_)


def test_bad_cuts():
    with pytest.raises(NotFittedError):
        MultiViewAgglomerative().cut(2)
    model = cluster(POINTS)
    with pytest.raises(ValueError, match="60 rows cannot be cut into 61 clusters"):
        model.cut(61)
    with pytest.raises(ValueError, match="n_clusters must be an integer of 1 or more, got 0"):
        model.cut(0)


def test_a_failed_fit_leaves_the_old_model():
    model = cluster(POINTS)
    labels = model.labels_
    with pytest.raises(ValueError, match="not finite"):
        model.fit(HOLE)
    assert model.labels_ is labels
    assert model.n_features_in_ == 5


def test_shapes_and_tags():
    model = MultiViewAgglomerative(4)
    assert is_clusterer(model)
    assert repr(clone(model)) == "MultiViewAgglomerative(n_clusters=4)"
    labels = model.fit_predict(Views(a=POINTS, b=WORDS))
    assert labels is model.labels_
    assert set(labels) == {0, 1, 2, 3}
    assert [getattr(model, name).shape for name in FITTED] == [
        (59, 2),
        (59,),
        (59,),
        (59, 4),
        (60,),
    ]
    assert model.n_features_in_ == 35
    for metric in ("cosine", "euclidean", "precomputed"):
        tags = MultiViewAgglomerative(metric=metric).__sklearn_tags__().input_tags
        assert tags.pairwise == (metric == "precomputed") != tags.sparse


CASES = [
    (MultiViewAgglomerative(), set()),
    *((MultiViewAgglomerative(3, linkage=name, metric="euclidean"), set()) for name in LINKAGES),
    # It fits every clusterer to points, whatever the tags say of distances.
    (MultiViewAgglomerative(metric="precomputed"), {"check_clustering"}),
]


@pytest.mark.filterwarnings("ignore")  # scikit-learn says which checks it skips
@pytest.mark.parametrize(("estimator", "expected"), CASES, ids=[repr(case[0]) for case in CASES])
def test_scikit_learns_checks(estimator, expected):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed.keys() == expected, failed
    assert sum(r["status"] == "passed" for r in results) > 40
