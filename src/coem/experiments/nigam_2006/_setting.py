"""What the experiments of the paper share: its algorithm, and its collections with their parts.

A quick run takes `QUICK`, a small set of documents, in place of each collection.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from coem import MixtureClassifier
from coem.datasets import fetch_20newsgroups, fetch_cluto, fetch_reuters
from coem.experiments import Estimate, Results
from coem.metrics import paired_t_test
from coem.schedules import Geometric
from coem.text import ScaleLength, SelectWords

NEWS, REUTERS, QUICK = "20 Newsgroups", "Reuters", "hitech"
NB, EM = "naive Bayes", "EM"
LENGTH = 600  # of all posts; the paper does not name its constant
YES, NO = "yes", "no"
FIRST = 0.02  # inverse temperature of annealing (Sec. 3.5.2)


def classifier(**params: Any) -> MixtureClassifier:
    """Return the algorithm of Table 3.1, which is naive Bayes if all rows are labelled."""
    paper: dict[str, Any] = {"evidence": "fixed", "unlabeled_weight": 1.0, "family": "multinomial"}
    return MixtureClassifier(**{**paper, "tol": 1e-5, **params})


def hidden(y: Any, n_labelled: int) -> Any:
    """Return the labels of the first rows, and -1 or "" for all others."""
    return np.where(np.arange(len(y)) < n_labelled, y, "" if y.dtype.kind == "U" else -1)


class Rows(NamedTuple):
    """Counts and classes; the rows of each class to label, those without labels, and those to test.

    Names are those of the columns.
    """

    X: Any
    y: Any
    to_label: list[Any]
    unlabelled: Any
    test: Any
    names: Any

    def train(self, per_class: Sequence[int], number: int = 0) -> tuple[Any, int]:
        """Return the rows of a training set, labelled ones first, and how many of them these are.

        Sets with different numbers have no labelled row in common.
        """
        parts = zip(self.to_label, per_class, strict=True)
        labelled = np.concatenate([rows[number * n : (number + 1) * n] for rows, n in parts])
        return np.concatenate([labelled, self.unlabelled]), len(labelled)


def mean_accuracy(results: Results) -> Estimate:
    """Return mean and standard error; of one training set, the error is that of the test set."""
    mean, error, n = results.mean("accuracy")
    of_test = math.sqrt(mean * (100 - mean) / results.values("n")[0])
    return Estimate(mean, error if n > 1 else of_test, n)


def p_value(results: Results) -> float:
    """Return that of a paired t-test of EM and naive Bayes; of one training set, of McNemar's."""
    pair = results.paired("accuracy", method=(EM, NB), on=["number"])
    return paired_t_test(*pair).p_value if len(pair[0]) > 1 else float(results.values("p")[0])


def is_near(own: Estimate, printed: float) -> bool:
    """Return whether a mean is within two errors of a number of the paper, which is rounded."""
    return abs(own.mean - printed) <= 2 * own.error + 0.5


# -- 20 Newsgroups (Sec. 3.3) ----------------------------------------------------------------------


@cache
def posts(data: str, n_frequent: int | None = None) -> Rows:
    """Return posts of one length: the last fifth of each group to test, 10,000 without labels.

    English stop words are left out, or the `n_frequent` words that are in the most posts.
    """
    X, y, names, order = _posts(n_frequent is None) if data == NEWS else _small()
    rng, parts = np.random.default_rng(0), []
    for group in np.unique(y):
        rows = order[y[order] == group]
        cut = len(rows) - round(0.2 * len(rows))
        early, n = rng.permutation(rows[:cut]), round(cut * 5 / 8)  # 500 of 800
        parts.append((early[n:], early[:n], rows[cut:]))
    to_label, unlabelled, test = zip(*parts, strict=True)
    early = np.concatenate([*to_label, *unlabelled])
    # The words of two posts that are not for the test.
    n_posts = np.bincount(X[early].indices, minlength=X.shape[1])
    n_posts[np.argsort(-n_posts, kind="stable")[: n_frequent or 0]] = 0
    known = np.flatnonzero(n_posts >= 2)
    X, names = ScaleLength(LENGTH).fit_transform(X[:, known]), names[known]
    return Rows(X, y, list(to_label), np.concatenate(unlabelled), np.concatenate(test), names)


@cache
def _posts(stop_words: bool) -> tuple[Any, ...]:
    data = fetch_20newsgroups(views=("body",), stop_words="english" if stop_words else None)
    order = np.argsort(data.dates, kind="stable")
    return data.views["body"], data.target, data.feature_names["body"], order


def _small() -> tuple[Any, ...]:
    data = fetch_cluto(QUICK)
    order = np.arange(len(data.target))
    return data.views["words"], data.target, np.asarray(data.feature_names["words"]), order


# -- Reuters (Sec. 3.4) ----------------------------------------------------------------------------


@cache
def stories(data: str, topic: str) -> Rows:
    """Return stories with raw counts, and whether each has the topic; the first class is NO.

    7,000 of the stories to train on (ModApte) have no label.
    """
    X, topics, names, train, test = _stories() if data == REUTERS else _small_stories()
    y = np.array([YES if topic in own else NO for own in topics])
    order = np.random.default_rng(0).permutation(train)
    unlabelled, rest = np.split(order, [len(order) * 7000 // 9603])
    return Rows(X, y, [rest[y[rest] == c] for c in (NO, YES)], unlabelled, test, names)


@cache
def _stories() -> tuple[Any, ...]:
    data = fetch_reuters(views=("title",))
    text = [f"{title}\n{body}" for title, body in zip(data.titles, data.text, strict=True)]
    counter = CountVectorizer(stop_words="english", min_df=2, dtype=np.float32)
    X, split = counter.fit_transform(text), np.asarray(data.split)
    parts = (np.flatnonzero(split == part) for part in ("train", "test"))
    return X, data.topics, counter.get_feature_names_out(), *parts


@cache
def _small_stories() -> tuple[Any, ...]:
    X, y, names, order = _small()
    train, test = np.split(np.random.default_rng(0).permutation(order), [1200])
    return X, [(str(code),) for code in y], names, train, test


def words_of(rows: Rows, train: Any, n_labelled: int, n_words: int, length: int = 0) -> Any:
    """Return the counts of training and test stories of the words that labels tell most about.

    A length of 0 leaves the counts as they are.
    """
    chosen = SelectWords(n_words).fit(rows.X[train[:n_labelled]], rows.y[train[:n_labelled]])
    found = [chosen.transform(rows.X[part]) for part in (train, rows.test)]
    return [ScaleLength(length).fit_transform(X) for X in found] if length else found


def scores(model: MixtureClassifier, X: Any, y: Any, n: int, test: tuple[Any, Any]) -> Any:
    """Return accuracies in %: by leave-one-out on the labelled rows, and on the test rows."""
    left_out = model.classes_[model.leave_one_out(X, hidden(y, n))[:n].argmax(axis=1)]
    return 100 * np.mean(left_out == y[:n]), 100 * np.mean(model.predict(test[0]) == test[1])


# -- News5 (Sec. 3.5) ------------------------------------------------------------------------------


@cache
def news5(data: str, length: int) -> tuple[Any, Any, Any]:
    """Return the counts of 4,000 words, scaled to a length, the groups of the posts, the words."""
    if data == NEWS:
        bunch = fetch_20newsgroups(views=("body",))
        groups = [i for i, name in enumerate(bunch.target_names) if name.startswith("comp.")]
        rows = np.flatnonzero(np.isin(bunch.target, groups))
        X, y, names = bunch.views["body"], bunch.target, bunch.feature_names["body"]
    else:
        X, y, names, rows = _small()
    y = np.unique(y[rows], return_inverse=True)[1]
    chosen = SelectWords(4000).fit(X[rows], y)
    X = ScaleLength(length).fit_transform(chosen.transform(X[rows]))
    return X, y, np.asarray(chosen.get_feature_names_out(names))


@cache
def annealing(
    data: str, length: int, labels: int, seed: int, first: float
) -> tuple[Any, Any, Any, Any]:
    """Return models of EM and of annealing (its classes by labels), and test rows and classes.

    `first` is the first inverse temperature.
    """
    X, y, _ = news5(data, length)
    rng, n = np.random.default_rng(seed), 600 if data == NEWS else 60
    groups = [rng.permutation(np.flatnonzero(y == group)) for group in np.unique(y)]
    train = np.concatenate([r[:labels] for r in groups] + [r[labels:][:n] for r in groups])
    test = np.concatenate([rows[labels + n :] for rows in groups])
    given = X[train], hidden(y[train], labels * len(groups))
    plain = classifier().fit(*given)
    schedule = Geometric(first, 1.01 if data == NEWS else 1.2, 1.0)
    return plain, classifier(beta=schedule).fit(*given), X[test], y[test]
