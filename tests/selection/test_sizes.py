import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline

from coem import MixtureClusterer, Views
from coem.selection import choose_k


def planted(k, each=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(np.repeat(0.5 + 12 * np.eye(k, 3 * k), each, axis=0))


@pytest.mark.parametrize("k", [3, 4, 6])
def test_planted_groups_are_counted(k):
    assert choose_k(MixtureClusterer(), planted(k), range(2, 9), random_state=0).best == k


def test_held_out_rows_are_scored_by_models_that_have_not_seen_them():
    X, seed = planted(3), 5
    found = choose_k(MixtureClusterer(), X, [2, 3], random_state=seed)
    inner = int(np.random.RandomState(seed).randint(np.iinfo(np.int32).max))
    scores = np.empty(len(X))
    for train, test in KFold(2, shuffle=True, random_state=inner).split(X):
        fitted = MixtureClusterer(3, random_state=inner).fit(X[train])
        scores[test] = fitted.score_samples(X[test])
    assert found.table[1].held_out == pytest.approx(scores.mean(), rel=1e-12)
    assert found.table[1].behind == 0.0
    assert found.table[0].behind > 2


def test_unasked_it_stops_after_three_that_are_worse():
    tried = []
    found = choose_k(
        MixtureClusterer(), planted(3, 60), random_state=0, on_size=lambda k, _: tried.append(k)
    )
    assert tried == [row.k for row in found.table] == [2, 3, 4, 6, 8][: len(tried)]
    assert found.best == 3
    assert len(tried) == 5


def test_several_views_and_pipelines():
    X = planted(3)
    views = Views(a=X[:, :4], b=X[:, 4:])
    assert choose_k(MixtureClusterer(), views, [2, 3, 5], random_state=0, n_jobs=2).best == 3
    texts = [" ".join(f"w{j}" * 2 for j in np.repeat(np.arange(9), row)) for row in X]
    model = make_pipeline(CountVectorizer(), MixtureClusterer())
    assert choose_k(model, texts, [2, 3, 5], random_state=0).best == 3


def test_it_says_so_in_words_and_pictures():
    found = choose_k(MixtureClusterer(), planted(3), [2, 3], random_state=0)
    assert "largest that was tried" in found.reason
    assert repr(found).count("\n") == 3
    assert found.plot().axes[0].get_xlabel() == "components"
    assert list(found.table.to_frame().columns) == ["k", "held_out", "behind"]


class Flat(MixtureClusterer):
    """Every row is as likely as the others: by `slope` less for each component."""

    slope = 0.0

    def score_samples(self, X):
        return np.full(len(X), -1.0 - self.slope * self.n_components)


class Falling(Flat):
    slope = 0.5


def test_of_equals_the_smallest_is_chosen():
    for model, X in ((Flat(), planted(3)), (MixtureClusterer(), np.tile([1, 2, 3], (40, 1)))):
        found = choose_k(model, X, random_state=0)
        assert found.best == 2
        assert all(row.behind == 0 for row in found.table)
        assert "equally likely with any number; 2 is the smallest" in found.reason


def test_a_difference_without_spread_is_no_tie():
    found = choose_k(Falling(), planted(3), [2, 3, 4], random_state=0)
    assert found.best == 2
    assert [row.behind for row in found.table] == [0, np.inf, np.inf]
    assert found.reason == "held-out rows are most likely with 2"


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


def test_bad_models_and_too_few_rows():
    with pytest.raises(ValueError, match="got KMeans"):
        choose_k(KMeans(), planted(2))
    with pytest.raises(ValueError, match="too few"):
        choose_k(MixtureClusterer(), planted(2)[:6])
