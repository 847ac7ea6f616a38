"""Which components recur when only the seed changes."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.ensemble import IsolationForest
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler

from coem import (
    AspectModel,
    MixtureClassifier,
    MixtureClusterer,
    SphericalKMeans,
    TrafficModel,
    Views,
)
from coem.latent.shared_rows import rand_index, shared_rows
from coem.selection import Stability, stability
from coem.selection.trust import MEANING


def groups(sizes, seed=0, m=40, length=60):
    """Return counts of groups that are far apart, and the group of every row."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(m, 0.2), size=len(sizes))
    truth = np.repeat(np.arange(len(sizes)), sizes)
    return rng.poisson(length * topics[truth]), truth


def blobs(n_groups, n=60, seed=0):
    """Return points of groups that are far apart."""
    rng = np.random.default_rng(seed)
    return np.repeat(20 * rng.standard_normal((n_groups, 5)), n, axis=0) + rng.standard_normal(
        (n_groups * n, 5)
    )


@pytest.fixture(scope="module")
def found():
    X, _ = groups([40, 50, 60, 70])
    return stability(MixtureClusterer(4, n_init=10, init="k-means++"), X, random_state=0)


def test_groups_that_are_far_apart_recur_in_every_run(found):
    assert [row.recurs for row in found.table] == [9] * 4
    assert min(row.trust for row in found.table) > 0.9
    assert found.row_trust.mean() > 0.95
    assert found.mean_agreement > 0.95
    assert found.summary.startswith("4 of 4 components recur in all 9 other runs, 0 in none.")


@pytest.mark.slow
def test_nothing_recurs_where_there_is_nothing():
    X = np.random.default_rng(0).standard_normal((400, 8))
    for k in (2, 5):
        model = MixtureClusterer(k, family="gaussian")
        nothing = stability(model, X, n_runs=8, random_state=0)
        assert np.mean([row.recurs for row in nothing.table]) < 0.25 * nothing.n_others
        assert nothing.row_trust.mean() < 0.25


def test_superfluous_components_do_not_recur_and_the_groups_do():
    # One group is a hundred times as large: what is left over cuts it, every time elsewhere.
    X, truth = groups([40, 40, 40])
    noise = np.random.default_rng(1).poisson(1.0, size=(300, X.shape[1]))
    X, truth = np.vstack([X, noise]), np.append(truth, np.full(300, 3))
    model = MixtureClusterer(8, n_init=3, init="k-means++")
    found = stability(model, X, n_runs=8, random_state=0)
    home = [np.bincount(found.labels[truth == g]).argmax() for g in range(3)]
    real = [found.table[h].recurs for h in home]
    rest = [row.recurs for row in found.table if row.component not in home and row.share > 0]
    assert min(real) == found.n_others
    assert len(rest) > 1
    assert np.mean(rest) < 0.6 * found.n_others


def test_too_few_components_are_merged_otherwise_every_time():
    X, _ = groups([50, 50, 50, 50])
    found = stability(MixtureClusterer(3, init="k-means++"), X, random_state=0)
    assert min(row.recurs for row in found.table) < found.n_others
    assert sum(row.merged + row.split + row.scattered for row in found.table) > 0


def test_the_table_adds_up(found):
    for row in found.table:
        assert row.recurs + row.split + row.merged + row.scattered == found.n_others
        assert row.recurs == (found.matches[:, row.component] >= 0).sum()
        mine = found.labels == row.component
        assert row.share == pytest.approx(mine.mean())
        assert row.trust == pytest.approx(found.row_trust[mine].mean())
    assert found.agreement.shape == (10, 10)
    np.testing.assert_allclose(found.agreement, found.agreement.T)
    for matrix in found.transitions:
        np.testing.assert_allclose(matrix.sum(axis=1), 1)


def test_the_table_reads_well(found):
    lines = str(found).splitlines()
    assert lines[0].split()[:3] == ["component", "share", "trust"]
    assert len(lines) == 7
    assert lines[5] == MEANING
    assert all("9/9" in line for line in lines[1:5])
    assert len(found.table[0].features) == 6


def test_merged_components_name_their_partners():
    X, _ = groups([50, 50, 50, 50])
    fitted = MixtureClusterer(4, n_init=10, init="k-means++", random_state=0).fit(X)
    fitted.n_components = 2  # what other runs are fitted with
    found = stability(fitted, X, n_runs=4, random_state=0)
    merged = [row for row in found.table if row.merged]
    assert merged
    for row in merged:
        assert row.component not in row.merged_with
        assert all(found.table[other].merged_with[row.component] for other in row.merged_with)
    assert "[with " in str(found)


def test_to_frame_and_plot(found):
    pytest.importorskip("pandas")
    frame = found.to_frame()
    assert frame["recurs"].tolist() == [9] * 4
    pytest.importorskip("matplotlib")
    assert len(found.plot().axes) == 3


def test_a_fitted_model_is_looked_for_in_other_runs():
    X, _ = groups([40, 40])
    model = MixtureClusterer(2, n_init=5, random_state=0).fit(X)
    found = stability(model, X, n_runs=3, random_state=1)
    assert found.estimator is model
    assert found.n_others == 3
    np.testing.assert_array_equal(found.labels, model.labels_)


def test_the_best_run_is_examined():
    X, _ = groups([30] * 3)
    model = MixtureClusterer(3, init="k-means++", max_iter=5, tol=0)
    found = stability(model, X, n_runs=6, random_state=0)
    fits = [clone(model).set_params(random_state=seed).fit(X) for seed in _seeds(6)]
    assert found.estimator.objective_ == max(fit.objective_ for fit in fits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "better", "name"),
    [
        (GaussianMixture(3, init_params="random", max_iter=3), max, "lower_bound_"),
        (KMeans(3, init="random", n_init=1, max_iter=2), min, "inertia_"),
        (NMF(3, init="random", max_iter=5), min, "reconstruction_err_"),
        (LatentDirichletAllocation(3, max_iter=2), min, "bound_"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_best_run_of_other_models_is_examined(model, better, name):
    X, _ = groups([30] * 4)
    found = stability(model, X, n_runs=5, random_state=0)
    fits = [clone(model).set_params(random_state=seed).fit(X) for seed in _seeds(5)]
    values = [getattr(fit, name) for fit in fits]
    assert values.index(better(values)) > 0  # the first one would be found by chance
    assert getattr(found.estimator, name) == better(values)


def test_without_a_measure_the_first_run_is_examined():
    X = blobs(3, n=20)
    found = stability(
        SpectralClustering(3, n_components=5, gamma=1e-3), X, n_runs=3, random_state=0
    )
    assert found.estimator.random_state == _seeds(1)[0]
    assert len(found.table) == 3  # and not one for each of the five eigenvectors


def _seeds(n):
    rng = np.random.RandomState(0)
    return [int(rng.randint(np.iinfo(np.int32).max)) for _ in range(n)]


def test_threads_change_nothing():
    X, _ = groups([30] * 5)
    one, two = (
        stability(MixtureClusterer(6, n_jobs=n), X, n_runs=4, random_state=0) for n in (1, 2)
    )
    assert str(one) == str(two)
    np.testing.assert_array_equal(one.row_trust, two.row_trust)


def test_the_order_of_the_runs_does_not_matter():
    X, _ = groups([30] * 5, length=6)  # no two runs end alike, so that one is the best
    model = MixtureClusterer(6, init="k-means++")
    forth = stability(model, X, n_runs=5, random_state=0)
    seeds = iter(_seeds(5)[::-1])

    class Backwards(np.random.RandomState):
        def randint(self, *_):
            return next(seeds)

    back = stability(model, X, n_runs=5, random_state=Backwards(0))
    for mine, theirs in zip(forth.table, back.table, strict=True):
        assert mine.pop("trust") == pytest.approx(theirs.pop("trust"))
        assert mine == theirs
    np.testing.assert_allclose(forth.row_trust, back.row_trust)


def test_weights_count_rows():
    X, _ = groups([30] * 3)
    weight = np.where(np.arange(90) < 30, 0.0, 2.0)
    found = stability(MixtureClusterer(2, n_init=5), X, sample_weight=weight, random_state=0)
    assert [row.recurs for row in found.table] == [9, 9]
    assert sorted(row.share for row in found.table) == pytest.approx([0.5, 0.5])


def test_weights_count_in_the_agreement_of_runs():
    rng = np.random.default_rng(0)
    a, b, weight = rng.integers(4, size=80), rng.integers(3, size=80), rng.integers(4, size=80)
    twice = np.repeat(a, weight), np.repeat(b, weight)
    assert rand_index(shared_rows(a, b, (4, 3), weight)) == pytest.approx(
        adjusted_rand_score(*twice)
    )
    assert rand_index(shared_rows(a, b, (4, 3))) == pytest.approx(adjusted_rand_score(a, b))
    assert rand_index(shared_rows(a, a, (4, 4), weight)) == pytest.approx(1.0)
    assert rand_index(np.array([[5.0]])) == adjusted_rand_score([0] * 5, [0] * 5) == 1.0


@pytest.mark.parametrize(
    ("names", "several", "message"),
    [(["a"], False, "1 names for"), (["a", "b"], True, "for one matrix")],
)
def test_wrong_names_are_refused_before_any_fit(names, several, message):
    X, _ = groups([20, 20])
    data = Views(one=X, two=X) if several else X
    with pytest.raises(ValueError, match=message):
        stability(MixtureClusterer(2, max_iter="never looked at"), data, feature_names=names)


def test_other_models_that_assign_rows():
    X, _ = groups([40, 40, 40])
    aspects = stability(AspectModel(3, max_iter=60), X, n_runs=4, random_state=0)
    assert [row.recurs for row in aspects.table] == [3] * 3
    assert len(aspects.table[0].features) == 6
    cosines = stability(SphericalKMeans(3), X, n_runs=4, random_state=0)
    assert cosines.n_others == 3
    points = stability(KMeans(3, n_init=5), blobs(3), n_runs=4, random_state=0)
    assert [row.recurs for row in points.table] == [3] * 3
    assert points.table[0].features == []


@pytest.mark.parametrize(
    "model",
    [
        MixtureClusterer(3),
        SphericalKMeans(3),
        make_pipeline(MaxAbsScaler(), MixtureClusterer(3)),
    ],
    ids=["mixture", "k-means", "pipeline"],
)
def test_runs_on_all_rows_are_not_predicted_again(model, monkeypatch):
    X, _ = groups([40, 40, 40])
    expected = stability(model, X, n_runs=3, random_state=0)
    last = expected.estimator[-1] if hasattr(expected.estimator, "steps") else expected.estimator
    np.testing.assert_array_equal(expected.labels, expected.estimator.predict(X))
    assert not np.shares_memory(expected.labels, last.labels_)
    calls, predict = [], type(last).predict

    def counted(self, rows):
        calls.append(len(rows))
        return predict(self, rows)

    monkeypatch.setattr(type(last), "predict", counted)
    found = stability(model, X, n_runs=3, random_state=0)
    assert calls == []
    np.testing.assert_array_equal(found.agreement, expected.agreement)
    stability(model, X, n_runs=3, subsample=0.5, random_state=0)
    assert calls == [120] * 3  # a run that has seen half of the rows must predict the others
    stability(expected.estimator, X, n_runs=2, random_state=0)
    assert calls == [120] * 4  # a fitted model may have seen other rows


def test_subclasses_and_other_models_predict():
    class Reversed(MixtureClusterer):
        def predict(self, X):
            return self.n_components - 1 - super().predict(X)

    X, _ = groups([40, 40, 40])
    found = stability(Reversed(3), X, n_runs=2, random_state=0)
    np.testing.assert_array_equal(found.labels, 2 - found.estimator.labels_)
    found = stability(KMeans(3, n_init=2), X, n_runs=2, random_state=0)
    np.testing.assert_array_equal(found.labels, found.estimator.predict(X))


def test_a_number_of_components_that_the_model_chooses():
    X, _ = groups([20, 20], m=5)
    for init in (None, "random"):
        found = stability(NMF("auto", init=init, max_iter=500), X, n_runs=3, random_state=0)
        assert len(found.table) == 5


class Numbers(BaseEstimator):
    """A model that gives rows the labels that it is told to."""

    def __init__(self, labels=None, random_state=None):
        self.labels = labels
        self.random_state = random_state

    def fit(self, X, y=None):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.asarray(self.labels)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 1, -1, 1], r"Numbers leaves row 2 in no component \(label -1\)"),
        ([0.5, 1, 2, 3], "Numbers gives rows no numbers of components"),
        (["a", "b", "a", "b"], "Numbers gives rows no numbers of components"),
    ],
)
def test_rows_without_a_component_are_refused(labels, words):
    with pytest.raises(ValueError, match=words):
        stability(Numbers(labels), np.ones((4, 3)), n_runs=2)


def test_components_without_rows_are_told_apart():
    X, _ = groups([40, 40])
    found = stability(AspectModel(2, max_iter=60), X, n_runs=3, random_state=0)
    assert "have no rows" not in found.summary

    class Wide(Numbers):
        n_components = 4

    wide = stability(Wide([0, 0, 2, 2]), np.ones((4, 3)), n_runs=3)
    assert [row.share for row in wide.table] == [0.5, 0, 0.5, 0]
    assert [row.recurs for row in wide.table] == [2, 0, 2, 0]
    assert [row.scattered for row in wide.table] == [0] * 4
    assert wide.summary.startswith("2 of 4 components recur in all 2 other runs, 0 in none, 2 have")
    lines = str(wide).splitlines()
    assert ["empty" in line for line in lines[1:5]] == [False, False, True, True]


def test_views_and_pipelines():
    X, _ = groups([40, 40])
    views = Views(numbers=np.sqrt(X), words=X)
    model = MixtureClusterer(2, family={"numbers": "gaussian", "words": "multinomial"}, n_init=3)
    found = stability(model, views, n_runs=3, random_state=0)
    assert [row.recurs for row in found.table] == [2, 2]
    assert len(found.table[0].features) == 6  # of the view that has some
    piped = make_pipeline(FunctionTransformer(feature_names_out="one-to-one"), model)
    piped.set_params(mixtureclusterer__family="multinomial")
    weight = np.ones(len(X))
    names = [f"word {i}" for i in range(X.shape[1])]
    found = stability(piped, X, n_runs=3, random_state=0, sample_weight=weight, feature_names=names)
    assert [row.recurs for row in found.table] == [2, 2]
    assert found.table[0].features[0].startswith("word ")


def test_each_run_may_see_other_rows():
    X, _ = groups([40, 40, 40])
    model = MixtureClusterer(3, n_init=5, init="k-means++")
    found = stability(model, X, n_runs=4, subsample=0.7, sample_weight=np.ones(120), random_state=0)
    assert [row.recurs for row in found.table] == [3] * 3
    assert len(found.labels) == 120


def test_progress_goes_to_stderr(capsys):
    X, _ = groups([20, 20])
    stability(MixtureClusterer(2), X, n_runs=2, random_state=0, verbose=1)
    assert "[stability] run 2 of 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "settings", "words"),
    [
        (MixtureClassifier(), {}, "groups rows, got MixtureClassifier"),
        (TrafficModel(2), {}, "TrafficModel assigns no rows"),
        (AgglomerativeClustering(), {}, "AgglomerativeClustering has no random_state"),
        (MixtureClusterer(2, init=np.ones((4, 2))), {}, "runs from a given start are the same"),
        (MixtureClusterer(2), {"n_runs": 1}, "n_runs must be an integer of 2 or more"),
        (MixtureClusterer(2), {"subsample": 1.0}, "subsample must be None or between 0 and 1"),
        (MixtureClusterer(2), {"sample_weight": [1, -1, 1, 1]}, "[Nn]egative"),
        (IsolationForest(), {}, "groups rows, got IsolationForest"),
        (AspectModel(2, validation=np.ones((4, 3))), {"subsample": 0.5}, "leave one of the two"),
    ],
)
def test_what_cannot_be_examined_is_refused(model, settings, words):
    with pytest.raises(ValueError, match=words):
        stability(model, np.ones((4, 3)), **settings)


def test_the_result_is_a_value(found):
    assert isinstance(found, Stability)
    with pytest.raises(AttributeError):
        found.labels = None


def test_the_central_run_is_the_one_that_the_others_agree_with():
    X = np.random.default_rng(0).poisson(2.0, size=(80, 12))
    found = stability(MixtureClusterer(4), X, n_runs=6, keep="central", random_state=0)
    totals = found.agreement.sum(axis=1)
    assert totals[0] == pytest.approx(totals.max())
    best = stability(MixtureClusterer(4), X, n_runs=6, random_state=0)
    assert best.estimator.objective_ >= found.estimator.objective_
    with pytest.raises(ValueError, match="keep"):
        stability(MixtureClusterer(4), X, keep="worst")


def test_steps_without_names_of_columns_give_numbers():
    X = np.random.default_rng(0).poisson(3, (60, 10))
    nameless = make_pipeline(FunctionTransformer(), MixtureClusterer(2))
    plain = stability(MixtureClusterer(2), X, n_runs=2, random_state=0)
    found = stability(nameless, X, n_runs=2, random_state=0)
    assert [row.features for row in found.table] == [row.features for row in plain.table]
