"""init="spherical": a few rounds of k-means before the first round."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer

from coem import MixtureClassifier, MixtureClusterer, Views
from coem.coupling import as_coupling
from coem.families import Bernoulli, Gaussian, Multinomial, VonMisesFisher
from coem.initialise.seeds import by_content
from coem.initialise.spherical import (
    BEGINNINGS,
    FIRST_ROUNDS,
    MORE_ROUNDS,
    Directions,
    Means,
    fill_gaps,
    rescaled,
    spherical,
)
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.latent.sphere import Sphere
from coem.latent.weights import UniformWeights
from coem.metrics import cluster_entropy
from coem.posterior import Hard


def corpus(n_rows=150, k=4, words=80, length=30, seed=0):
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(words, 0.1), size=k)
    topic = rng.integers(k, size=n_rows)
    X = np.stack([rng.multinomial(length, prob[t]) for t in topic])
    return sp.csr_matrix(X, dtype=np.float32), topic


# -- how a view is seen --------------------------------------------------------------------------


@pytest.mark.parametrize("family", [Multinomial(), Bernoulli()])
def test_counts_are_weighted_by_how_rare_words_are(family):
    X, _ = corpus()
    logs = X.copy()
    logs.data = np.log1p(logs.data)
    expected = TfidfTransformer(smooth_idf=True).fit(X).transform(logs)
    ruler, rows = rescaled(family, X, None)
    np.testing.assert_allclose(rows.toarray(), expected.toarray(), atol=1e-6)
    assert ruler == VonMisesFisher(1.0)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_directions_stay(kind):
    rng = np.random.default_rng(0)
    X = kind(VonMisesFisher().encode(rng.standard_normal((30, 3))))
    ruler, rows = rescaled(VonMisesFisher(50.0), X, None)
    assert rows is X
    assert ruler.kappa == 1.0


def test_other_rows_are_measured_in_standard_deviations():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4)) * [1.0, 100.0, 0.0, 0.01] + 5
    ruler, rows = rescaled(Gaussian(), X, None)
    varied = [0, 1, 3]
    expected = (X[:, varied] - X[:, varied].mean(axis=0)) / X[:, varied].std(axis=0) / np.sqrt(3)
    np.testing.assert_allclose(rows[:, varied], expected)
    assert not rows[:, 2].any()
    assert (rows**2).sum(axis=1).mean() == pytest.approx(1.0)
    _, sparse = rescaled(Gaussian(), sp.csr_matrix(X), None)
    apart = sparse.toarray() - rows  # not centred, which distances do not see
    np.testing.assert_allclose(apart, np.broadcast_to(apart[0], apart.shape), atol=1e-9)
    assert ruler == Gaussian("unit")


@pytest.mark.parametrize("family", [Multinomial(), Gaussian()])
def test_a_weight_of_two_is_a_row_given_twice(family):
    X = corpus(20)[0]
    X = X if isinstance(family, Multinomial) else X.toarray().astype(float)
    twice = np.r_[np.arange(20), np.arange(5)]
    weight = np.where(np.arange(20) < 5, 2.0, 1.0)
    ours, theirs = rescaled(family, X, weight)[1], rescaled(family, X[twice], None)[1][:20]
    apart = abs(ours - theirs)
    assert apart.max() < 1e-6


# -- rounds --------------------------------------------------------------------------------------


def far_apart(views, k, rng, n):
    """Slow twin of k-means++: `n` partitions by the nearest of `k` seeds."""
    order = by_content(views)
    gaps = sum(((X[:, None] - X[None]) ** 2).sum(axis=2) for X in views) / len(views)
    seeds = [[] for _ in range(n)]
    for _ in range(k):
        for mine in seeds:
            chance = gaps[:, mine].min(axis=1) if mine else np.ones(len(gaps))
            place = (np.cumsum(chance[order]) <= rng.random() * chance.sum()).sum()
            mine.append(int(order[place]))
    return [gaps[:, mine].argmin(axis=1) for mine in seeds]


def scores(X, labels, k):
    """Cosines with the mean directions if all rows have unit length, else minus d^2 / 2."""
    members = [labels == j for j in range(k)]
    means = np.stack([X[mine if mine.any() else slice(None)].mean(axis=0) for mine in members])
    if np.allclose((X**2).sum(axis=1), 1.0):
        return X @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T
    return -0.5 * ((X[:, None] - means) ** 2).sum(axis=2)


def exchange(views, partitions, k, rounds):
    """Slow twin of k-means in one view or two: a view learns from the partition before."""
    partitions, every = list(partitions), np.arange(len(views[0]))
    for _ in range(rounds):
        found = []
        for v, X in enumerate(views):
            found.append(scores(X, partitions[v - 1], k))
            partitions[v] = found[v].argmax(axis=1)
    return sum(s[every, partitions[v - 1]].sum() for v, s in enumerate(found)), partitions


def together(views, partitions, k, rounds):
    """Slow twin of k-means with one partition for all views."""
    (labels,) = partitions
    for _ in range(rounds):
        found = sum(scores(X, labels, k) for X in views)
        labels = found.argmax(axis=1)
    return found.max(axis=1).sum(), [labels]


def two_kinds(seed=0):
    X, topic = corpus(seed=seed)
    rng = np.random.default_rng(seed + 1)
    meaning = np.eye(4)[topic] + 0.5 * rng.standard_normal((150, 4))
    place = [3.0, 1.0] * rng.standard_normal((4, 2))[topic] + rng.standard_normal((150, 2))
    return X, VonMisesFisher().encode(meaning), place


@pytest.mark.parametrize("chosen", [(0,), (2,), (0, 1), (1, 2), (2, 0)])
@pytest.mark.parametrize("coupling", ["co-em", "joint"])
@pytest.mark.parametrize("seed", range(3))
def test_partitions_are_those_of_a_slow_twin(chosen, coupling, seed):
    families = (Multinomial(), VonMisesFisher().bind(np.ones((1, 1)), None), Gaussian())
    families, rows = zip(*((families[c], two_kinds(seed)[c]) for c in chosen), strict=True)
    model = Mixture(Emissions(families), 4, as_coupling(coupling))
    ours = spherical(model, Partition(rows))(np.random.default_rng(seed))
    seen = [rescaled(family, X, None)[1] for family, X in zip(families, rows, strict=True)]
    seen = [np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float) for X in seen]
    twin, n = (exchange, len(chosen)) if model.n_turns > 1 else (together, 1)
    first = far_apart(seen, 4, np.random.default_rng(seed), BEGINNINGS)
    tries = [twin(seen, [labels] * n, 4, FIRST_ROUNDS) for labels in first]
    _, best = max(tries, key=lambda run: run[0])
    _, expected = twin(seen, best, 4, MORE_ROUNDS)
    # Two beginnings may end alike but for the numbers: which is the better one is then rounding.
    np.testing.assert_array_equal(renumbered(ours), renumbered(np.stack(expected).astype(int)))


def renumbered(labels):
    """Number the clusters by their first rows, the same in all views."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return first.argsort().argsort()[codes].reshape(labels.shape)


def test_a_component_without_rows_gets_the_row_that_fits_worst():
    labels, fit = np.array([0, 0, 0, 2, 2, 1]), np.array([3.0, 1.0, 2.0, 0.5, 9.0, 0.0])
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    fill_gaps(labels, fit, weight, 4)
    assert labels.tolist() == [0, 0, 0, 3, 2, 1]  # row 5 fits worse, but is all that 1 has
    labels = np.array([0, 0, 0, 2, 2, 1])
    fill_gaps(labels, fit, np.array([1.0, 1.0, 1.0, 0.0, 1.0, 1.0]), 5)
    assert labels.tolist() == [0, 3, 4, 2, 2, 1]
    labels = np.array([1, 1])
    fill_gaps(labels, np.zeros(2), None, 4)  # more components than rows
    assert sorted(labels) == [0, 1]


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "categorical", "gaussian"])
def test_rows_that_are_all_alike(family):
    X = np.ones((12, 3))
    model = MixtureClusterer(3, family=family, init="spherical", max_iter=5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        assert np.isfinite(model.fit(X).objective_)


@pytest.mark.parametrize("family", ["multinomial", "gaussian", "von_mises_fisher"])
@pytest.mark.filterwarnings("ignore:.*have collapsed")
def test_copies_are_a_weight_wherever_they_stand(family):
    X = corpus(60)[0].toarray()
    X = X + 0.1 * np.random.default_rng(1).standard_normal(X.shape) * (family != "multinomial")
    times = np.random.default_rng(0).integers(0, 4, size=60)
    rows = np.random.default_rng(2).permutation(np.repeat(np.arange(60), times))
    options = {"family": family, "random_state": 0, "dtype": np.float64}
    weighted = MixtureClusterer(4, **options).fit(X, sample_weight=times)
    repeated = MixtureClusterer(4, **options).fit(X[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    np.testing.assert_array_equal(weighted.labels_[rows], repeated.labels_)


# -- fits ----------------------------------------------------------------------------------------


def test_it_is_the_default():
    X, _ = corpus()
    models = [MixtureClusterer(4, random_state=0, **o).fit(X) for o in ({}, {"init": "spherical"})]
    assert models[0].objective_ == models[1].objective_


def test_groups_on_a_line_are_found():
    """Directions from the middle would be two, however many groups there are."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(5), 60)
    X = 8.0 * group[:, None] + rng.standard_normal((300, 1))
    model = MixtureClusterer(5, family="gaussian", init="spherical", random_state=0).fit(X)
    assert cluster_entropy(group, model.labels_) < 0.01


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


# -- one view of directions --------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rounds", [1, 3, 8])
def test_partitions_take_the_place_of_posteriors(rounds, weighted):
    """`Directions` is `Means` with one view of directions, in less memory and time."""
    rng = np.random.default_rng(rounds)
    X, _ = corpus(seed=rounds)
    X = sp.csr_matrix(np.where(rng.random((X.shape[0], 1)) < 0.1, 0, X.toarray()), dtype=np.float32)
    family, rows = rescaled(Multinomial(), X, None)
    empty = np.asarray(X.sum(axis=1) == 0).reshape(-1, 1)
    weight = rng.integers(1, 4, X.shape[0]).astype(float) if weighted else None
    data, k = Partition((rows,), empty, weight), 4
    begin = rng.integers(k, size=(1, X.shape[0]))
    quick = Directions(Sphere(1, k, refills=False), data)
    slow = Means(Mixture(Emissions((family,)), k, rule=Hard(), prior=UniformWeights()), data)
    mine, theirs = quick.improve(begin, rounds).labels, slow.improve(begin, rounds).labels
    filled = ~empty[:, 0]
    assert empty.any()
    np.testing.assert_array_equal(mine[0, filled], theirs[0, filled])
