"""The chosen words: scores against a slow twin, what counts, and the paper's Pipeline."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer
from sklearn.metrics import mutual_info_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import coem.text
from coem import MixtureClassifier, Views
from coem.selection import LabeledKFold
from coem.text import ScaleLength, SelectWords

RNG = np.random.default_rng(5)
COUNTS = RNG.poisson(0.6, (30, 9))
COUNTS[:, 8] = 0  # a word that is never there
LABELS = RNG.choice(["a", "b", "c"], 30).astype(object)
LABELS[20:] = None
WEIGHT = RNG.integers(0, 4, 30)
MAKERS = [np.asarray, sp.csr_matrix, sp.csr_array, sp.coo_array]


def token_twin(X, y):
    """Return the information by writing out every token of the labelled rows."""
    rows, words = np.nonzero(X)
    times = X[rows, words]
    tokens, classes = np.repeat(words, times), np.repeat(y[rows].astype(str), times)
    return [mutual_info_score(classes, tokens == w) for w in range(X.shape[1])]


def document_twin(X, y):
    return [mutual_info_score(y.astype(str), column > 0) for column in X.T]


TWINS = {"token": token_twin, "document": document_twin}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([SelectWords(), SelectWords(2), SelectWords(1, by="document")])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("by", TWINS)
def test_scores_are_those_of_the_slow_twin(by, make):
    scores = SelectWords(by=by).fit(make(COUNTS), LABELS).scores_
    expected = TWINS[by](COUNTS[:20], LABELS[:20])
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-14)
    assert scores[8] == 0 < scores[:8].min()


@pytest.mark.parametrize("by", TWINS)
def test_a_weight_is_so_many_rows(by):
    selector = SelectWords(by=by)
    scores = selector.fit(sp.csr_matrix(COUNTS), LABELS, sample_weight=WEIGHT).scores_
    X, y = np.repeat(COUNTS, WEIGHT, axis=0), np.repeat(LABELS, WEIGHT)
    np.testing.assert_allclose(scores, selector.fit(X, y).scores_, rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(TWINS)))
def test_order_of_rows_and_words_is_irrelevant(seed, by):
    rng = np.random.default_rng(seed)
    rows, words = rng.permutation(30), rng.permutation(9)
    scores = SelectWords(by=by).fit(COUNTS, LABELS).scores_
    moved = SelectWords(by=by).fit(COUNTS[rows][:, words], LABELS[rows]).scores_
    np.testing.assert_allclose(moved, scores[words], rtol=1e-12)


@pytest.mark.parametrize("marker", [None, np.nan, "", frozenset("ab")])
def test_only_rows_with_exactly_one_label_count(marker):
    y = LABELS.copy()
    y[20:] = marker
    other = COUNTS.copy()
    other[20:] = 50
    scores = SelectWords().fit(other, y).scores_
    np.testing.assert_array_equal(scores, SelectWords().fit(COUNTS[:20], LABELS[:20]).scores_)
    numbers = np.array([{"a": 0, "b": 1, "c": 2}.get(label, -1) for label in LABELS])
    np.testing.assert_array_equal(scores, SelectWords().fit(other, numbers).scores_)


def test_by_token_lengths_do_not_matter_by_document_counts_do_not():
    X = sp.csr_matrix(COUNTS)
    flat = (COUNTS > 0).astype(int)
    by_document = SelectWords(by="document")
    np.testing.assert_array_equal(
        by_document.fit(X, LABELS).scores_, by_document.fit(flat, LABELS).scores_
    )
    # All documents three times as long: the same shares of tokens.
    np.testing.assert_allclose(
        SelectWords().fit(3 * X, LABELS).scores_, SelectWords().fit(X, LABELS).scores_, rtol=1e-12
    )


def test_duplicates_and_stored_zeros_are_one_count_and_none():
    X = sp.csr_matrix(
        ([1, 1, 0, 2, 1, 0], [0, 0, 1, 1, 0, 2], [0, 3, 5, 6]), shape=(3, 3), dtype=np.int64
    )
    before = X.data.copy(), X.indices.copy()
    for by in TWINS:
        selector = SelectWords(2, by=by).fit(X, [0, 1, 1])
        np.testing.assert_allclose(selector.scores_, TWINS[by](X.toarray(), np.array([0, 1, 1])))
        assert selector.transform(X).toarray().tolist() == [[2, 0], [1, 2], [0, 0]]
    np.testing.assert_array_equal(X.data, before[0])
    np.testing.assert_array_equal(X.indices, before[1])


@pytest.mark.parametrize("n_features", [1, 3, 9, 100])
@pytest.mark.parametrize("make", MAKERS)
def test_the_best_words_stay_in_order(make, n_features):
    X = make(COUNTS)
    selector = SelectWords(n_features).fit(X, LABELS)
    support = selector.get_support()
    assert support.sum() == min(n_features, 9)
    assert selector.scores_[support].min() >= selector.scores_[~support].max(initial=0)
    np.testing.assert_array_equal(selector.get_support(indices=True), np.flatnonzero(support))
    chosen = selector.transform(X)
    assert sp.issparse(chosen) == sp.issparse(X)
    assert chosen.dtype == X.dtype
    np.testing.assert_array_equal(
        chosen.toarray() if sp.issparse(X) else chosen, COUNTS[:, support]
    )
    words = np.array(list("pqrstuvwx"), dtype=object)
    assert selector.get_feature_names_out(words).tolist() == words[support].tolist()


def test_of_equal_words_the_more_frequent_one_comes_first():
    # The last three words are in no labelled row.
    X = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 3, 2], [0, 0, 1, 0, 2]]
    support = SelectWords(3).fit(X, [0, 1, -1, -1]).get_support()
    assert support.tolist() == [True, True, False, False, True]
    weighted = SelectWords(3).fit(X, [0, 1, -1, -1], sample_weight=[1, 1, 3, 1]).get_support()
    assert weighted.tolist() == [True, True, False, True, False]
    one_class = SelectWords(1).fit(X, [0, 0, -1, -1])  # no word says anything
    assert one_class.scores_.tolist() == [0] * 5
    assert one_class.get_support(indices=True).tolist() == [4]


def test_empty_documents_and_a_word_that_is_everything():
    assert SelectWords().fit(np.zeros((4, 2)), [0, 0, 1, 1]).scores_.tolist() == [0, 0]
    X = RNG.random((20, 3)) * [1e8, 1e-8, 0]  # shares within rounding of 1 and 0
    for by in TWINS:
        scores = SelectWords(by=by).fit(X, np.arange(20) % 3).scores_
        assert np.isfinite(scores).all()
        assert (scores >= 0).all()
    assert SelectWords().fit(X[:, :1], np.arange(20) % 3).scores_ == pytest.approx(0, abs=1e-12)


def test_views_are_chosen_from_one_by_one():
    meaning = RNG.standard_normal((30, 2))
    views = Views(words=sp.csr_matrix(COUNTS), meaning=meaning, links=COUNTS[:, 3:])
    selector = SelectWords({"words": 4, "meaning": None, "links": 2}).fit(views, LABELS)
    chosen = selector.transform(views)
    assert isinstance(chosen, Views)
    assert chosen["meaning"] is views["meaning"]
    assert selector.scores_["meaning"] is None
    assert [chosen[name].shape[1] for name in chosen.names] == [4, 2, 2]
    alone = SelectWords(4).fit(COUNTS, LABELS)
    np.testing.assert_array_equal(selector.scores_["words"], alone.scores_)
    np.testing.assert_array_equal(selector.get_support()["words"], alone.get_support())
    assert selector.get_support(indices=True)["meaning"].tolist() == [0, 1]
    names = selector.get_feature_names_out({"meaning": ["warm", "cold"]})
    assert names["meaning"].tolist() == ["warm", "cold"]
    assert names["words"].tolist() == alone.get_feature_names_out().tolist()
    same = SelectWords(3).fit([COUNTS, COUNTS[:, :5]], LABELS).transform([COUNTS, COUNTS[:, :5]])
    assert same.names == ("view0", "view1")
    assert same.shape == (30, 6)


def test_names_come_from_a_data_frame():
    frame = pd.DataFrame(COUNTS, columns=list("pqrstuvwx"))
    selector = SelectWords(2).fit(frame, LABELS).set_output(transform="pandas")
    chosen = selector.transform(frame)
    assert chosen.columns.tolist() == selector.get_feature_names_out().tolist()
    np.testing.assert_array_equal(chosen, frame[chosen.columns])


def test_what_cannot_be_scored_is_refused():
    views = Views(words=COUNTS, meaning=-1.0 * COUNTS)
    with pytest.raises(ValueError, match=r"view 'meaning', row 0 has -\d.0.*\{'meaning': None"):
        SelectWords().fit(views, LABELS)
    with pytest.raises(ValueError, match="n_features must name every view once"):
        SelectWords({"words": 3}).fit(views, LABELS)
    for wrong in (0, -1, 2.5, True, None, "all", {"view0": 0}):
        with pytest.raises(ValueError, match="n_features must be an integer of 1 or more"):
            SelectWords(wrong).fit(COUNTS, LABELS)
    with pytest.raises(ValueError, match="by must be one of 'token', 'document'"):
        SelectWords(by="word").fit(COUNTS, LABELS)
    with pytest.raises(ValueError, match="SelectWords requires y"):
        SelectWords().fit(COUNTS, None)
    with pytest.raises(ValueError, match="no labelled row"):
        SelectWords().fit(COUNTS, np.full(30, -1))
    with pytest.raises(ValueError, match="sample_weight is 0 for every labelled row"):
        SelectWords().fit(COUNTS, LABELS, sample_weight=np.arange(30) >= 20)


def test_a_failed_fit_leaves_the_old_choice():
    selector = SelectWords(2).fit(COUNTS, LABELS)
    before = selector.get_support()
    with pytest.raises(ValueError, match="Negative"):
        selector.fit(-COUNTS[:, :4], LABELS)
    np.testing.assert_array_equal(selector.get_support(), before)
    assert clone(selector).get_params() == {"by": "token", "n_features": 2}


TEXTS = [
    "the puck slid into the goal of the team",
    "the team scored a goal and won the game",
    "a fast disk and a new cpu in the computer",
    "the computer reads the disk",
    "goal by goal the game was lost by the team",
    "which cpu is in this computer",
    "the puck was lost and so was the game",
    "install the disk before the cpu",
]
TOPICS = ["hockey", "hockey", "hardware", "hardware", "", "", None, None]


def test_the_preprocessing_of_the_paper_is_one_pipeline():
    model = make_pipeline(
        CountVectorizer(stop_words="english"), SelectWords(10), ScaleLength(), MixtureClassifier()
    )
    model.fit(TEXTS, TOPICS)
    assert model.predict(TEXTS[4:]).tolist() == ["hockey", "hardware", "hockey", "hardware"]
    words = model[:-1].get_feature_names_out()
    assert len(words) == 10
    # Of the words that one labelled document has, those that unlabelled ones have too.
    assert {"game", "puck"} < set(words)
    assert not {"slid", "scored", "won"}.intersection(words)
    assert not ENGLISH_STOP_WORDS.intersection(words)
    assert coem.text.ENGLISH_STOP_WORDS is ENGLISH_STOP_WORDS


@pytest.mark.slow
def test_the_vocabulary_is_chosen_within_the_folds():
    model = make_pipeline(CountVectorizer(), SelectWords(), ScaleLength(), MixtureClassifier())
    grid = {"selectwords__n_features": [5, 20], "scalelength__length": [10, 300]}
    y = np.array(TOPICS, dtype=object)
    search = GridSearchCV(model, grid, cv=LabeledKFold(2, random_state=0), n_jobs=2)
    search.fit(np.array(TEXTS), y)
    assert set(search.best_params_) == set(grid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
