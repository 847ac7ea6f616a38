"""Stories of Reuters to tell a topic from all others, with few labels.

A quick run takes `QUICK`, a small set of such stories with one class each.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from coem.datasets import fetch_cluto, fetch_reuters
from coem.text import ScaleLength

REUTERS, QUICK = "Reuters", "re0"
TOPICS = ("earn", "acq", "money-fx", "grain", "crude", "trade", "interest", "ship", "wheat", "corn")
LABELLED = 10, 40  # with the topic and without it, as in Nigam et al. (2006)
MOST_TESTS = 3000


class Stories(NamedTuple):
    """Words of stories and what is given of their topic (-1: nothing); words and topic of others.

    Whether a story has the topic is 1 or 0.
    """

    X: Any
    given: Any
    test: Any
    truth: Any


@cache
def _all(data: str) -> tuple[Any, Any, list[str]]:
    """Return counts of words, which topics each story has, and their names."""
    if data == REUTERS:
        found = fetch_reuters(views=("body",))
        return found.views["body"], found.target.toarray() > 0, list(found.target_names)
    small = fetch_cluto(data)
    names = sorted({str(code) for code in small.target})
    return small.views["words"], small.target.astype(str)[:, np.newaxis] == names, names


def stories(data: str, topic: str, unlabelled: int, seed: int) -> Stories:
    """Draw stories with a label, others without one, and others to test."""
    counts, has, names = _all(data)
    y = has[:, names.index(topic)].astype(int)
    order = np.random.default_rng([seed, names.index(topic)]).permutation(len(y))
    yes, no = LABELLED
    known = np.concatenate([order[y[order] == 1][:yes], order[y[order] == 0][:no]])
    rest = order[~np.isin(order, known)]
    train, test = np.concatenate([known, rest[:unlabelled]]), rest[unlabelled:][:MOST_TESTS]
    often = np.flatnonzero(np.bincount(counts[train].indices, minlength=counts.shape[1]) >= 2)
    X, Z = (ScaleLength().fit_transform(counts[rows][:, often]) for rows in (train, test))
    return Stories(X, np.where(np.arange(len(train)) < len(known), y[train], -1), Z, y[test])
