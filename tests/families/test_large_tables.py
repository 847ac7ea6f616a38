"""Multinomials whose tables list words: every fit is the fit with dense tables."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import coem
from coem import HiddenMarkovModel, MixtureClassifier, MixtureClusterer, Views
from coem.corpus import open_corpus
from coem.families import MixtureOf, Multinomial
from coem.families.base import stack
from coem.families.multinomial import _random_sums
from coem.initialise import seeds, spherical
from coem.io.corpus_writer import CorpusWriter
from coem.kernels import counts
from coem.kernels.row_lists import RowLists
from coem.kernels.sparse_sums import SparseSums
from coem.kernels.sparse_tables import DENSE_CELLS, SparseTable
from coem.latent import pruning
from coem.ranking import best
from coem.schedules import Linear
from tests.engines import ENGINES

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

K, N, WIDTH = 6, 240, 150


def rows(seed=0, n=N, k=K, width=WIDTH):
    """Return counts of k groups, and the groups."""
    rng = np.random.default_rng(7)
    topics = rng.dirichlet(np.full(width, 0.1), size=k)
    group, rng = np.arange(n) % k, np.random.default_rng(seed)
    words = [
        rng.multinomial(m, 0.7 * topics[g] + 0.3 / width)
        for m, g in zip(rng.poisson(30, n), group, strict=True)
    ]
    return sp.csr_matrix(np.array(words, dtype=np.float32)), group


X, GROUP = rows()
FIT = {"n_components": K, "random_state": 0, "max_iter": 8, "tol": 0}


def family(alpha=0.1, lists=True):
    return Multinomial(alpha, dense_cells=0 if lists else np.inf)


def fits(rows=X, make=MixtureClusterer, alpha=0.1, **settings):
    """Return a fit with lists, and one with dense tables."""
    return [
        make(**FIT | settings, family=family(alpha, lists)).fit(rows) for lists in (True, False)
    ]


def check_same(listed, dense):
    for table in listed.theta_.values():
        assert isinstance(table, SparseTable)
    assert listed.objective_ == pytest.approx(dense.objective_, rel=1e-6)
    assert listed.n_iter_ == dense.n_iter_
    np.testing.assert_array_equal(listed.labels_, dense.labels_)
    for name, table in dense.theta_.items():
        np.testing.assert_allclose(listed.theta_[name], table, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("init", ["spherical", "rows", "k-means++"])
def test_fits_are_those_with_dense_tables(alpha, init):
    listed, dense = fits(alpha=alpha, init=init)
    check_same(listed, dense)
    np.testing.assert_allclose(listed.predict_proba(X), dense.predict_proba(X), atol=1e-3)
    assert listed.score(X) == pytest.approx(dense.score(X), rel=1e-6)
    assert listed.bic(X) == pytest.approx(dense.bic(X), rel=1e-6)


SETTINGS = {
    "hard": {"posterior": "hard"},
    "annealed": {"beta": Linear(0.3, 1.0, 4)},
    "double": {"dtype": np.float64},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_other_settings(name):
    check_same(*fits(**SETTINGS[name]))


@pytest.mark.parametrize("coupling", ["co-em", "joint"])
def test_several_views(coupling):
    check_same(*fits(Views(a=X, b=rows(seed=1)[0]), coupling=coupling, max_iter=5))


def test_a_start_at_random_ends_as_well():
    listed, dense = fits(init="random", n_init=4, max_iter=None)
    assert listed.objective_ >= dense.objective_ - 0.01 * abs(dense.objective_)
    again = MixtureClusterer(**FIT, family=family(), init="random").fit(X)
    other = MixtureClusterer(**FIT, family=family(), init="random", n_jobs=2).fit(X)
    assert again.objective_ == other.objective_


def test_a_start_at_random_has_the_spread_of_a_dense_one():
    pooled = Multinomial().stats(X, np.ones((N, 1)))
    rng = np.random.default_rng(0)
    tables = [family(1.0, lists).start(pooled, 200, rng) for lists in (True, False)]
    assert isinstance(tables[0], SparseTable)
    total = pooled.counts[0]
    for few in (True, False):  # features with fewer counts than components, and others
        chosen = (total < 200) == few
        one, other = (np.exp(np.asarray(t, np.float64))[:, chosen] for t in tables)
        np.testing.assert_allclose(one.mean(), other.mean(), rtol=0.05)
        np.testing.assert_allclose(one.std(axis=0).mean(), other.std(axis=0).mean(), rtol=0.1)


@pytest.mark.parametrize("counts_of", [[5000.0, 3.0], [5000.0], [3.0, 0.0], [0.0]])
def test_a_start_at_random_takes_little_more_memory_than_its_sums(counts_of):
    total = np.resize(counts_of, 1000)
    tracemalloc.start()
    try:
        sums = _random_sums(total, 200, np.random.default_rng(0))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    sums.check()
    assert peak < 2 * sums.nbytes + 200_000
    assert (np.diff(sums.offsets)[total >= 200] == 200).all()
    assert sums.sums.sum() == pytest.approx(total.sum(), rel=0.1)


def test_many_components_keep_lists_of_responsibilities(monkeypatch):
    seen = []
    of_all = pruning.of_all
    monkeypatch.setattr(pruning, "FEWEST", 4)
    monkeypatch.setattr(
        "coem.latent.mixture.of_all", lambda *args: seen.append(of_all(*args)) or seen[-1]
    )
    listed, dense = fits()
    check_same(listed, dense)
    assert seen
    assert all(isinstance(few.resp, RowLists) for few in seen)


def test_classifiers():
    y = np.where(np.arange(N) % 5 == 0, GROUP, -1)
    for components in (1, 2):
        pair = [
            MixtureClassifier(
                components_per_class=components,
                family=family(0.1, lists),
                init="rows",
                random_state=0,
                max_iter=6,
            ).fit(X, y)
            for lists in (True, False)
        ]
        assert isinstance(pair[0].theta_["view0"], SparseTable)
        assert np.mean(pair[0].predict(X) == pair[1].predict(X)) == 1


def test_leave_one_out():
    y = np.where(np.arange(N) % 5 == 0, GROUP, -1)
    settings = {"max_iter": 4, "random_state": 0}
    models = [MixtureClassifier(family=family(0.1, lists), **settings) for lists in (True, False)]
    one, other = (model.fit(X, y).leave_one_out(X, y) for model in models)
    np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


def test_hidden_markov_models():
    lengths = [40] * 6
    pair = [
        HiddenMarkovModel(K, family=family(0.1, lists), random_state=0, max_iter=5).fit(
            X, lengths=lengths
        )
        for lists in (True, False)
    ]
    assert isinstance(pair[0].theta_["view0"], SparseTable)
    assert pair[0].objective_ == pytest.approx(pair[1].objective_, rel=1e-6)


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_engines_add_lists(name):
    whole, _ = fits(dtype=np.float64, max_iter=4)
    parted = MixtureClusterer(
        **FIT | {"max_iter": 4}, family=family(), dtype=np.float64, engine=ENGINES[name]()
    ).fit(X)
    assert parted.objective_ == pytest.approx(whole.objective_, rel=1e-9)
    np.testing.assert_allclose(parted.theta_["view0"], whole.theta_["view0"], rtol=1e-7)


@pytest.mark.parametrize("init", ["spherical", "random"])
def test_a_corpus(tmp_path, init):
    writer = CorpusWriter(tmp_path / "corpus")
    for lo in (0, 50, 190):
        writer.append(X[lo : {0: 50, 50: 190, 190: N}[lo]])
    # In memory the first M step is the first round; of a corpus it is a part of the start.
    more = int(init == "spherical")
    whole = MixtureClusterer(**FIT | {"max_iter": 5 + more}, family=family(), init=init).fit(X)
    stored = MixtureClusterer(**FIT | {"max_iter": 5}, family=family(), init=init).fit(
        open_corpus(tmp_path / "corpus")
    )
    assert isinstance(stored.theta_["view0"], SparseTable)
    assert stored.objective_ == pytest.approx(whole.objective_, rel=1e-6)
    np.testing.assert_array_equal(stored.labels_, whole.labels_)


def test_saved_and_pickled_models_predict_the_same_bits(tmp_path):
    model = MixtureClusterer(**FIT, family=family()).fit(X)
    model.save(tmp_path / "m.coem")
    for again in (coem.load(tmp_path / "m.coem"), pickle.loads(pickle.dumps(model))):
        assert counts.is_table(again.theta_["view0"].common)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_batches_go_on_after_they_are_saved(tmp_path):
    pair = [MixtureClusterer(**FIT, family=family(0.1, lists)) for lists in (True, False)]
    for model in pair:
        for lo in (0, 120):
            model.partial_fit(X[lo : lo + 120])
    assert isinstance(pair[0]._stats.stats[0].views[0].counts, SparseSums)
    pair[0].save(tmp_path / "m.coem")
    pair[0] = coem.load(tmp_path / "m.coem")
    more = rows(seed=3)[0][:60]
    for model in pair:
        model.partial_fit(more)
    np.testing.assert_allclose(pair[0].theta_["view0"], pair[1].theta_["view0"], rtol=1e-4)


def test_components_are_added():
    known = GROUP < K - 2
    start = np.where(known, -1, GROUP)[~known]
    pair = []
    for lists in (True, False):
        model = MixtureClusterer(**FIT | {"n_components": K - 2}, family=family(0.1, lists))
        model.partial_fit(X[known]).add_components(X[~known], start)
        pair.append(model)
    assert pair[0].theta_["view0"].shape == (K, WIDTH)
    np.testing.assert_allclose(pair[0].theta_["view0"], pair[1].theta_["view0"], rtol=1e-4)
    np.testing.assert_allclose(pair[0].gain_over_one(X), pair[1].gain_over_one(X), rtol=1e-3)


def test_a_dense_table_grows_into_a_listed_one():
    listed, dense = (
        family(0.1, lists).start(
            Multinomial().stats(X, np.ones((N, 1))), 3, np.random.default_rng(0)
        )
        for lists in (True, False)
    )
    both = stack([dense, listed])
    np.testing.assert_allclose(both, np.vstack([np.asarray(dense), np.asarray(listed)]), rtol=1e-6)


def test_a_checkpoint_goes_on_with_the_same_bits(tmp_path, monkeypatch):
    from coem.io import checkpoint

    class Stop(Exception):
        pass

    settings = FIT | {"family": family(), "checkpoint": tmp_path / "kept"}
    whole = MixtureClusterer(**FIT, family=family()).fit(X)
    written = []
    write = checkpoint.Checkpoint.write

    def stopping(self, *args):
        write(self, *args)
        written.append(args)
        if len(written) == 3:
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint.Checkpoint, "write", stopping)
        patch.setattr(checkpoint, "THRIFT", 0.0)
        with pytest.raises(Stop):
            MixtureClusterer(**settings).fit(X)
    resumed = MixtureClusterer(**settings).fit(X)
    assert resumed.objective_ == whole.objective_
    np.testing.assert_array_equal(resumed.theta_["view0"], whole.theta_["view0"])


# -- what is asked of a fitted model -------------------------------------------------------------


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("by", ["wllr", "prob"])
def test_top_features(alpha, by):
    listed, dense = fits(alpha=alpha, max_iter=3)
    n = WIDTH if alpha else 12  # shares of nothing are equal, to 300 digits
    pairs = zip(listed.top_features(n=n, by=by), dense.top_features(n=n, by=by), strict=True)
    for mine, theirs in pairs:
        np.testing.assert_allclose(
            [v for _, v in mine], [v for _, v in theirs], rtol=1e-4, atol=1e-9
        )
        assert len({f for f, _ in mine}) == n
        assert [f for f, _ in mine[:5]] == [f for f, _ in theirs[:5]]


def test_best_features_of_a_single_component():
    table = family(1.0).estimate(family().stats(X, np.ones((N, 1)))).exp()
    assert best(table, None, 9)[0] == best(np.asarray(table), None, 9)[0]


def test_explanations_and_samples():
    listed, dense = fits()
    for mine, theirs in zip(listed.explain(X[:5]), dense.explain(X[:5]), strict=True):
        assert mine.label == theirs.label
        assert mine.log_odds == pytest.approx(theirs.log_odds, rel=1e-4)
    drawn, labels = listed.sample(600, random_state=0)
    assert np.mean(listed.predict(drawn) == labels) > 0.9


def test_pages_have_the_same_words():
    from coem.report import group_words, name_groups

    names = [f"w{i}" for i in range(WIDTH)]
    one, other = (name_groups(group_words(m, X, feature_names=names)) for m in fits())
    assert one == other


# -- which tables are listed ---------------------------------------------------------------------


def test_only_large_tables_are_listed():
    auto = Multinomial()
    assert DENSE_CELLS == 256 << 20
    assert not auto.lists_words(256, 1 << 20)
    assert auto.lists_words(257, 1 << 20)
    assert isinstance(auto.estimate(auto.stats(X, np.eye(K)[GROUP])), np.ndarray)
    assert not MixtureOf(family()).inner.lists_words(10**6, 10**6)


def test_a_wide_fit_makes_no_dense_table(monkeypatch):
    wide = sp.csr_matrix((X.data, X.indices * 2_609, X.indptr), shape=(N, 400_000))
    monkeypatch.setattr(seeds, "CELLS", 1 << 20)
    monkeypatch.setattr(spherical, "CELLS", 1 << 20)
    for init in ("spherical", "rows", "k-means++"):
        tracemalloc.start()
        model = MixtureClusterer(
            120, family=Multinomial(dense_cells=1e6), init=init, max_iter=2, random_state=0
        ).fit(wide)
        top = model.top_features(n=3)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(top) == 120
        assert isinstance(model.theta_["view0"], SparseTable)
        assert peak < 100e6  # some arrays as long as a row; the dense table takes 192 MB


@pytest.mark.parametrize("spread_out", [True, False])
def test_seeds_a_few_at_a_time_are_the_same(monkeypatch, spread_out):
    distances = seeds.Distances([seeds.scaled(X, None)], None)
    chosen = seeds.choose(
        np.ones(N), distances, 30, np.random.default_rng(0), spread_out=spread_out
    )
    whole = distances.nearest(chosen)
    monkeypatch.setattr(seeds, "CELLS", 1)
    np.testing.assert_array_equal(distances.nearest(chosen), whole)


@pytest.mark.parametrize("cells", [-1, "many", np.nan])
def test_other_sizes_are_refused(cells):
    with pytest.raises(ValueError, match="dense_cells must be a number of 0 or more"):
        Multinomial(dense_cells=cells)
