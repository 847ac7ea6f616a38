"""What the experiments share: documents, and which of them get a label.

A quick run takes `QUICK`, a small set of documents. It has no sentence vectors: 20 latent
directions of its words stand for them.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from coem.datasets import fetch_20newsgroups, fetch_cluto
from coem.experiments import Claim, Results
from coem.experiments.verdict import chance
from coem.metrics import paired_t_test
from coem.text import LatentDirections, ScaleLength

NEWS, QUICK = "20 Newsgroups", "tr11"
MOST_TESTS = 4000  # rows to test


class Documents(NamedTuple):
    """Counts of words, sentence vectors, and classes."""

    words: Any
    vectors: Any
    y: Any


@cache
def documents(data: str) -> Documents:
    """Return all documents."""
    if data == NEWS:
        news = fetch_20newsgroups(views=("body", "meaning"))
        return Documents(news.views["body"], news.views["meaning"], news.target)
    small = fetch_cluto(data)
    counts = small.views["words"]
    return Documents(counts, LatentDirections(20).fit_transform(counts), small.target)


class Sample(NamedTuple):
    """Rows to train on, those to label first; how many these are; and rows to test."""

    train: Any
    n_labelled: int
    test: Any


def sample(data: str, per_class: int, unlabelled: int, seed: int) -> Sample:
    """Draw some rows of each class to label, others without a label, and others to test."""
    y = documents(data).y
    order = np.random.default_rng(seed).permutation(len(y))
    known = np.concatenate([order[y[order] == c][:per_class] for c in np.unique(y)])
    rest = order[~np.isin(order, known)]
    train = np.concatenate([known, rest[:unlabelled]])
    return Sample(train, len(known), rest[unlabelled:][:MOST_TESTS])


def words(data: str, train: Any, *others: Any) -> list[Any]:
    """Return the counts of the words that two rows to train on have, scaled to one length."""
    counts = documents(data).words
    often = np.bincount(counts[train].indices, minlength=counts.shape[1]) >= 2
    parts = (counts[rows][:, np.flatnonzero(often)] for rows in (train, *others))
    return [ScaleLength().fit_transform(part) for part in parts]


def above(results: Results, told: str, measure: str, by: str, pair: tuple[Any, Any]) -> Claim:
    """Ask whether the first value of a column has the larger mean of a measure, seed by seed."""
    first, second = results.paired(measure, on=["seed"], **{by: pair})
    p = paired_t_test(first, second, alternative="greater").p_value
    figures = f"{first.mean():.3f} against {second.mean():.3f} ({chance(p)})"
    return Claim(f"{told}: {figures}", first.mean() > second.mean() and p < 0.05)
