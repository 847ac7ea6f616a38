import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import adjusted_mutual_info_score, mutual_info_score
from sklearn.pipeline import make_pipeline

from coem import MixtureClusterer, Views
from coem.selection import choose_k
from coem.selection._shared import SharedInformation, beyond_chance, jackknife_error


def planted(k, each=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(np.repeat(0.5 + 12 * np.eye(k, 3 * k), each, axis=0))


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 4, 6])
def test_planted_groups_are_counted(k):
    found = choose_k(MixtureClusterer(), planted(k), range(2, 9), random_state=0)
    assert found.best == k
    assert k in found.possible


@pytest.mark.slow
def test_seeds_agree():
    model, X = MixtureClusterer(), planted(4)
    found = {choose_k(model, X, [3, 4, 6], random_state=s).best for s in range(3)}
    assert found == {4}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_table():
    first, again, other = (
        choose_k(MixtureClusterer(), planted(3, 20), [2, 3], random_state=s, n_jobs=jobs)
        for s, jobs in ((1, None), (1, 2), (2, None))
    )
    assert first.table == again.table
    assert first.table != other.table


def test_every_fit_has_half_of_the_rows_and_a_start_of_its_own():
    seen = []

    class Watched(MixtureClusterer):
        def fit(self, X, y=None, sample_weight=None):
            seen.append((self.n_components, self.random_state, np.asarray(X)[:, -1].tolist()))
            return super().fit(X)

    X = np.column_stack([planted(3), np.arange(120)])
    choose_k(Watched(), X, [2, 3], n_splits=2, random_state=0)
    two, three = seen[:4], seen[4:]
    assert [plan[0] for plan in seen] == [2] * 4 + [3] * 4
    assert [plan[1:] for plan in two] == [plan[1:] for plan in three]  # differences are paired
    assert len({plan[1] for plan in two}) == 4
    for first, second in ((two[0], two[1]), (two[2], two[3])):
        assert sorted(first[2] + second[2]) == list(range(120))


# -- the information that fits share ------------------------------------------------------------


def slow_information(a, b, n_draws=500):
    """Mutual information in bits, less its mean over random orders of one grouping."""
    rng = np.random.default_rng(0)
    chance = np.mean([mutual_info_score(a, rng.permutation(b)) for _ in range(n_draws)])
    return (mutual_info_score(a, b) - chance) / np.log(2)


def test_information_beyond_chance():
    rng = np.random.default_rng(0)
    a, b = rng.integers(4, size=50), rng.integers(3, size=50)
    b[:25] = a[:25] % 3
    assert beyond_chance(a, b) == pytest.approx(slow_information(a, b), abs=5e-3)
    assert beyond_chance(a, (a + 1) % 4) == pytest.approx(beyond_chance(a, a), rel=1e-12)
    assert np.sign(beyond_chance(a, b)) == np.sign(adjusted_mutual_info_score(a, b))
    assert beyond_chance(a, np.zeros(50, int)) == pytest.approx(0, abs=1e-12)


def test_means_without_each_member():
    labels = np.random.default_rng(1).integers(3, size=(4, 60))
    found = SharedInformation(labels)
    pairs = {(i, j): beyond_chance(labels[i], labels[j]) for i in range(4) for j in range(i)}
    assert found.mean == pytest.approx(np.mean(list(pairs.values())), abs=1e-12)
    for left_out, mean in enumerate(found.without):
        kept = [value for pair, value in pairs.items() if left_out not in pair]
        assert mean == pytest.approx(np.mean(kept), abs=1e-12)


def test_the_jackknife_of_a_plain_mean_is_its_standard_error():
    values = np.random.default_rng(2).normal(size=7)
    without = (values.sum() - values) / 6
    assert jackknife_error(without) == pytest.approx(values.std(ddof=1) / np.sqrt(7), rel=1e-12)


def test_what_two_sizes_have_in_common_cancels_in_their_difference():
    rng = np.random.default_rng(3)
    truth = np.repeat(np.arange(4), 100)
    labels = []
    for noise in (0.05, 0.1, 0.3, 0.5, 0.6):  # halves of the rows that are easy or hard
        labels.append(np.where(rng.random(400) < noise, rng.integers(4, size=400), truth))
    finer = [np.where(rng.random(400) < 0.02, 4, one) for one in labels]
    one, two = SharedInformation(labels), SharedInformation(finer)
    _, paired = one.above(two, 1.0)
    assert paired < 0.3 * np.hypot(one.error, two.error)


class BadStarts(MixtureClusterer):
    """Starts of two kinds: half of them end with most rows in one group."""

    def predict(self, X):
        labels = super().predict(X)
        return np.where(labels > 1, 0, labels) if self.random_state % 2 else labels


@pytest.mark.slow
def test_bad_starts_make_the_error_larger():
    X, settings = planted(4), {"sizes": [3, 4, 5], "n_splits": 4, "random_state": 0}
    good = choose_k(MixtureClusterer(), X, **settings)
    bad = choose_k(BadStarts(), X, **settings)
    assert bad.table[1].error > 3 * good.table[1].error
    assert len(bad.possible) > len(good.possible)


# -- the search and its answer ------------------------------------------------------------------


def test_unasked_it_stops_after_two_that_are_worse():
    tried = []
    found = choose_k(
        MixtureClusterer(), planted(3, 60), random_state=0, on_size=lambda k, _: tried.append(k)
    )
    assert tried == [row.k for row in found.table]
    top = max(found.table, key=lambda row: row.shared)
    assert found.best == 3
    assert len(tried) == found.table.index(top) + 3


def test_several_views_and_pipelines():
    X = planted(3)
    views = Views(a=X[:, :4], b=X[:, 4:])
    assert choose_k(MixtureClusterer(), views, [2, 3, 4], random_state=0, n_jobs=2).best == 3
    texts = [" ".join(f"w{j}" * 2 for j in np.repeat(np.arange(9), row)) for row in X]
    model = make_pipeline(CountVectorizer(), MixtureClusterer())
    assert choose_k(model, texts, [2, 3, 4], random_state=0).best == 3


def test_it_says_so_in_words_and_pictures():
    found = choose_k(MixtureClusterer(), planted(3), [2, 3], random_state=0)
    assert "more than 3 were not tried" in found.reason
    assert "no other number is in doubt" in found.reason
    assert repr(found).count("\n") == 3
    assert found.plot().axes[0].get_xlabel() == "components"
    columns = ["k", "shared", "error", "share", "held_out"]
    assert list(found.table.to_frame().columns) == columns
    assert max(row.share for row in found.table) == 1.0


def test_numbers_in_doubt_are_named():
    bad = choose_k(BadStarts(), planted(4), [3, 4, 5], n_splits=4, random_state=0)
    others = [str(k) for k in bad.possible if k != bad.best]
    assert others
    assert f"could also give {' and '.join(others)}" in bad.reason


def test_held_out_rows_are_scored_by_models_that_have_not_seen_them():
    found = choose_k(MixtureClusterer(), planted(3), [2, 3], random_state=0)
    X = planted(3)
    fitted = MixtureClusterer(3, random_state=0).fit(X)
    assert found.table[0].held_out < found.table[1].held_out < fitted.score(X)


@pytest.mark.slow
@pytest.mark.parametrize("X", [np.tile([1, 2, 3], (40, 1)), planted(1, 80)])
def test_rows_without_groups(X):
    found = choose_k(MixtureClusterer(), X, [2, 3, 4], random_state=0)
    assert found.best == 2
    assert found.possible == (2, 3, 4)
    assert "may have no groups" in found.reason


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([3], "at least two"),
        ([0, 3], "sizes"),
        ([2, 500], "cannot be fitted"),
    ],
)
def test_bad_sizes(sizes, message):
    with pytest.raises(ValueError, match=message):
        choose_k(MixtureClusterer(), planted(2), sizes)


def test_bad_models_splits_and_too_few_rows():
    with pytest.raises(ValueError, match="got KMeans"):
        choose_k(KMeans(), planted(2))
    with pytest.raises(ValueError, match="too few"):
        choose_k(MixtureClusterer(), planted(2)[:6])
    with pytest.raises(ValueError, match="n_splits"):
        choose_k(MixtureClusterer(), planted(2), n_splits=1)
