"""The doctor says whether unlabelled rows help, from the labelled rows alone."""

from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.utils import Bunch

from coem import MixtureClassifier, Not, Views
from coem.selection import LabeledKFold, doctor
from coem.selection.doctor import LAMBDAS, _choice, _correlations, _scores
from coem.text import ScaleLength, SelectWords

CLASSIFIER = MixtureClassifier(tol=1e-4, max_iter=40, random_state=0)
BRIEF = clone(CLASSIFIER).set_params(max_iter=3)  # where the accuracy of EM is not the matter


def corpus(topics, classes, n_rows, *, length, seed=0, words=60, spread=0.15):
    """Return documents of `topics` topics, each of a class, and their classes."""
    rng = np.random.default_rng(seed)
    prob = rng.dirichlet(np.full(words, spread), size=topics)
    topic = rng.integers(topics, size=n_rows)
    X = np.stack([rng.multinomial(length, prob[t]) for t in topic])
    return sp.csr_matrix(X), np.asarray(classes)[topic]


def hidden(truth, n_labelled, seed=0):
    """Return labels of some rows, every class among them."""
    rng = np.random.default_rng(seed)
    y = np.full(len(truth), "", dtype=object)
    for label in np.unique(truth):
        rows = rng.permutation(np.flatnonzero(truth == label))[: n_labelled // len(set(truth))]
        y[rows] = label
    return y


@pytest.fixture(scope="module")
def helpful():
    """Short documents of four topics, four classes: the unlabelled ones show the words."""
    X, truth = corpus(4, list("abcd"), 900, length=5, words=400)
    y = hidden(truth, 40)
    return X, truth, y, doctor(CLASSIFIER, X, y, n_repeats=1, n_restarts=2, random_state=0)


@pytest.fixture(scope="module")
def few():
    """So few documents that there are few variants to try."""
    X, truth = corpus(4, list("abcd"), 120, length=5, words=400)
    return X, truth, hidden(truth, 40)


@pytest.fixture(scope="module")
def sea():
    """Two topics of interest in a sea of seven others."""
    X, truth = corpus(9, ["yes"] * 2 + ["no"] * 7, 900, length=20, seed=1, spread=0.5)
    y = hidden(truth, 60)
    return X, truth, y, doctor(CLASSIFIER, X, y, n_repeats=1, random_state=0)


def test_unlabelled_rows_that_help_are_recommended(helpful):
    _, _, _, diagnosis = helpful
    naive, plain = diagnosis.table[:2]
    assert plain.accuracy > naive.accuracy + 0.05
    assert diagnosis.settings.get("unlabeled_weight", 1.0) > 0
    assert "unlabelled rows" in diagnosis.recommendation
    assert "naive Bayes on" not in diagnosis.recommendation


def test_more_components_are_recommended_for_a_class_of_many_topics(sea):
    X, truth, y, diagnosis = sea
    spec = diagnosis.settings["components_per_class"]
    assert spec["no"] > 1
    assert "yes" not in spec
    assert f"components_per_class={spec!r}" in diagnosis.recommendation
    rest = y == ""
    accuracy = {
        name: np.mean(clone(model).fit(X, y).predict(X[rest]) == truth[rest])
        for name, model in {"recommended": diagnosis.estimator, "plain": CLASSIFIER}.items()
    }
    assert accuracy["recommended"] > accuracy["plain"]


def test_estimator_has_the_settings(sea):
    _, _, _, diagnosis = sea
    params = diagnosis.estimator.get_params()
    assert diagnosis.settings.items() <= params.items()
    assert params["tol"] == CLASSIFIER.tol
    assert not hasattr(diagnosis.estimator, "theta_")


def test_table(sea):
    _, _, _, diagnosis = sea
    names = [row.variant for row in diagnosis.table]
    assert names[:2] == ["naive Bayes", "EM"]
    assert len(set(names)) == len(names)
    weights = [row.settings.get("unlabeled_weight") for row in diagnosis.table]
    assert weights[: 2 + len(LAMBDAS)] == [0.0, 1.0, *LAMBDAS]
    first = diagnosis.table[0]
    for row in diagnosis.table:
        assert 0 <= row.accuracy <= 1
        assert row.log_loss > 0
        assert row.gain == pytest.approx(row.accuracy - first.accuracy)
    assert len(diagnosis.table.to_frame()) == len(names)
    for name in names:
        assert name in repr(diagnosis)


def test_naive_bayes_is_the_classifier_without_unlabelled_rows(few):
    """Its column is what scikit-learn's naive Bayes gets on the same folds."""
    X, _, y = few
    rows = np.flatnonzero(y != "")
    ours = doctor(BRIEF, X, y, n_repeats=1, n_restarts=0, random_state=5).table[0]
    seed = int(np.random.RandomState(5).randint(np.iinfo(np.int32).max))
    right = []
    for train, test in LabeledKFold(5, random_state=seed).split(X, y):
        known = np.intersect1d(train, rows)
        counts = np.unique(y[known].astype(str), return_counts=True)[1] + 1
        model = MultinomialNB(class_prior=counts / counts.sum())
        right += (model.fit(X[known], y[known].astype(str)).predict(X[test]) == y[test]).tolist()
    assert ours.accuracy == pytest.approx(np.mean(right))


def test_restarts_and_their_correlation(sea):
    _, _, _, diagnosis = sea
    assert set(diagnosis.correlation) <= {row.variant for row in diagnosis.restarts}
    assert diagnosis.correlation
    for name, r in diagnosis.correlation.items():
        runs = [row for row in diagnosis.restarts if row.variant == name]
        assert len(runs) == 10
        pairs = [(row.objective, row.accuracy) for row in runs]
        assert r == pytest.approx(np.corrcoef(np.array(pairs).T)[0, 1])
        assert f"(r = {r:.2f})" in diagnosis.recommendation


def test_without_restarts(few):
    X, _, y = few
    diagnosis = doctor(BRIEF, X, y, n_splits=2, n_restarts=0, n_repeats=1, random_state=0)
    assert diagnosis.restarts == []
    assert diagnosis.correlation == {}
    assert "r =" not in diagnosis.recommendation


@pytest.mark.slow
def test_pipeline_learns_its_words_in_the_folds():
    """Words chosen by labels that say nothing must not seem to say something."""
    rng = np.random.default_rng(0)
    X = sp.random(120, 3000, density=0.02, random_state=0, data_rvs=lambda n: np.ones(n)).tocsr()
    y = np.where(np.arange(120) < 60, rng.integers(2, size=120), -1)
    model = make_pipeline(SelectWords(50), ScaleLength(), BRIEF)
    naive = doctor(model, X, y, n_restarts=0, n_repeats=1, random_state=0).table[0]
    assert naive.accuracy < 0.7
    chosen = SelectWords(50).fit(X, y).transform(X)
    leaky = doctor(BRIEF, chosen, y, n_restarts=0, n_repeats=1, random_state=0).table[0]
    assert leaky.accuracy > naive.accuracy + 0.1


def test_pipeline_from_text():
    rng = np.random.default_rng(0)
    words = {"sea": ["wave", "fish", "boat", "salt"], "sky": ["cloud", "bird", "wind", "star"]}
    truth = rng.choice(list(words), size=60)
    text = [" ".join(rng.choice([*words[t], "and", "old"], size=6)) for t in truth]
    y = np.where(np.arange(60) < 16, truth, "")
    diagnosis = doctor(
        make_pipeline(CountVectorizer(), CLASSIFIER), text, y, n_restarts=2, random_state=0
    )
    assert diagnosis.estimator.fit(text, y).score(text, truth) > 0.9


def test_views_and_sets():
    X, truth = corpus(3, list("abc"), 150, length=12)
    y = hidden(truth, 30)
    y[-1], y[-2] = {"a", "b"}, Not("c")
    views = Views(one=X[:, :30], two=X[:, 30:])
    diagnosis = doctor(CLASSIFIER, views, y, n_repeats=1, n_restarts=3, random_state=0)
    assert diagnosis.table[0].accuracy > 0.5


def test_plot(sea):
    figure = sea[3].plot()
    bars, dots = figure.axes
    assert len(bars.patches) == len(sea[3].table)
    assert sum(len(line.get_xdata()) for line in dots.lines) == len(sea[3].restarts)


def test_progress(few, capsys):
    X, _, y = few
    doctor(BRIEF, X, y, n_splits=2, n_repeats=1, n_restarts=3, random_state=0, verbose=1)
    told = capsys.readouterr()
    assert "naive Bayes" in told.err
    assert told.out == ""


def test_what_cannot_be_examined(few):
    X, truth, y = few
    with pytest.raises(ValueError, match=r"MixtureClassifier, or a Pipeline .* got MultinomialNB"):
        doctor(MultinomialNB(), X, y)
    with pytest.raises(ValueError, match="every row has a label"):
        doctor(CLASSIFIER, X, truth)
    with pytest.raises(ValueError, match="no labelled row"):
        doctor(CLASSIFIER, X, np.full(X.shape[0], -1))
    single = hidden(truth, 4)
    with pytest.raises(ValueError, match="every class has one labelled row"):
        doctor(CLASSIFIER, X, single)
    with pytest.raises(ValueError, match="y has 5 labels for 120 rows"):
        doctor(CLASSIFIER, X, y[:5])


def test_of_equals_the_simplest_is_chosen():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.3, 100)
    assert _choice([np.ones(100), np.ones(100) - 0.001 + noise - noise.mean()]) == 0
    assert _choice([np.ones(100), np.ones(100) - 0.5 + noise]) == 1
    assert _choice([np.full(9, 0.2), np.full(9, 0.1), np.full(9, 0.1)]) == 1


def test_scores_average_over_repeats():
    logs = np.log([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6], [0.7, 0.3]])
    right, loss = _scores(np.array([4, 9, 4, 9]), np.array([0, 1, 0, 1]), logs)
    assert right.tolist() == [0.5, 0.5]
    assert len(loss) == 2


def test_no_change_no_correlation():
    runs = [Bunch(variant="EM", objective=-10.0, accuracy=a) for a in (0.1, 0.2, 0.3)]
    assert _correlations(runs) == {}
    runs += [Bunch(variant="x", objective=-a, accuracy=a) for a in (0.1, 0.2, 0.3)]
    assert _correlations(runs) == {"x": pytest.approx(-1.0)}


@pytest.mark.slow
def test_seed_of_the_doctor_is_enough(few):
    X, _, y = few
    model, options = MixtureClassifier(tol=1e-3, max_iter=4), {"n_splits": 2, "n_restarts": 2}
    one, same, other = (doctor(model, X, y, random_state=s, **options) for s in (1, 1, 2))
    assert one.table == same.table != other.table
    assert repr(one) == repr(same)
    assert [r.objective for r in one.restarts] == [r.objective for r in same.restarts]


class Spy(TransformerMixin, BaseEstimator):
    """A step that remembers how many labels it has seen."""

    seen: ClassVar[list] = []

    def fit(self, X, y=None):
        Spy.seen.append(sum(bool(label) for label in y))
        return self

    def transform(self, X):
        return X


def test_steps_never_see_the_labels_that_are_held_out(few):
    X, _, y = few
    Spy.seen.clear()
    options = {"n_splits": 2, "n_repeats": 1, "n_restarts": 2, "random_state": 0}
    doctor(make_pipeline(Spy(), BRIEF), X, y, **options)
    assert max(Spy.seen) < sum(bool(label) for label in y)


def test_settings_that_fit_no_fold_are_set_aside(few):
    X, _, y = few
    resp = np.full((X.shape[0], 4), 0.25)
    for odd in ({"calibrate": True}, {"init": resp}, {"correspondence": {0: "b", 1: "a"}}):
        model = clone(BRIEF).set_params(**odd)
        found = doctor(model, X, y, n_splits=2, n_repeats=1, n_restarts=2, random_state=0)
        assert odd.keys() <= found.estimator.get_params().keys()


@pytest.mark.slow
def test_a_dict_of_views_and_labels_by_exclusion():
    X, truth = corpus(2, ["ham", "spam"], 150, length=12)
    y = hidden(truth, 30)
    y[np.flatnonzero(y == "ham")[1:]] = Not("spam")
    y[y == "spam"] = {"spam"}
    views = {"one": X[:, :30], "two": X[:, 30:]}
    found = doctor(CLASSIFIER, views, y, n_repeats=1, n_restarts=3, random_state=0)
    assert found.table[0].accuracy > 0.8


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_repeats": 0}, "n_repeats must be an integer of 1 or more"),
        ({"n_splits": "a"}, "n_splits must be an integer of 2 or more"),
        ({"n_restarts": 2.5}, "n_restarts must be an integer of 0 or more"),
        ({"y": None}, "doctor needs y"),
    ],
)
def test_options_that_make_no_sense(options, message, few):
    X, _, y = few
    with pytest.raises(ValueError, match=message):
        doctor(CLASSIFIER, X, **{"y": y} | options)
