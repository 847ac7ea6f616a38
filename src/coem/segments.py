"""Long documents cut where their topic changes: a hidden Markov model over paragraphs."""

from numbers import Integral
from typing import NamedTuple

import numpy as np

from coem.checks import check_number
from coem.estimators import HiddenMarkovModel
from coem.families import Multinomial

# Chosen on concatenated posts of newsgroups, and reported on others: docs/segmenting.md.
SEGMENT_LENGTH = 10.0  # expected, in paragraphs
EVIDENCE = 3.0  # words that a paragraph counts at most
ALPHA = 0.1  # pseudo-count of a word, as a share of what is left of the counts
PRIOR = 10.0  # pseudo-counts of the transitions of a topic, per paragraph
MOST_TOPICS = 40
TOL = 1e-6


class Segments(NamedTuple):
    """Consecutive paragraphs of one topic, one entry per segment."""

    document: np.ndarray
    """Number of the document, from 0."""
    segment: np.ndarray
    """Number of the segment in its document, from 0."""
    first: np.ndarray
    """Its first paragraph, counted from 0 in the document."""
    last: np.ndarray
    """Its last paragraph, which belongs to it."""
    topic: np.ndarray
    """The topic of its paragraphs."""
    probability: np.ndarray
    """Mean posterior of the topic over its paragraphs."""


def topic_chain(n_topics, n_paragraphs, *, segment_length=SEGMENT_LENGTH, kept=1.0, **settings):
    """Return a hidden Markov model of topics that last, to be fitted to paragraphs.

    Parameters
    ----------
    n_topics : int
        Number of topics.
    n_paragraphs : int
        Number of paragraphs that it will be fitted to: the prior on the transitions has ten times
        as many pseudo-counts per topic. So it outweighs the transitions that are counted.
    segment_length : float, default=10
        Expected number of paragraphs of a segment, more than 1.
    kept : float, default=1.0
        Share of the counts that `TextViews(max_length=...)` has kept; pseudo-counts go with it.
    **settings
        Other parameters of `HiddenMarkovModel`.

    Returns
    -------
    model : HiddenMarkovModel
        Its transitions start at, and are pulled to, the same chance of 1 - 1 / `segment_length` of
        staying in every topic; all other topics are equally likely to follow.

    Examples
    --------
    >>> from coem.segments import topic_chain
    >>> topic_chain(3, 100, segment_length=5).transmat[0].round(3).tolist()
    [0.8, 0.1, 0.1]
    """
    check_number("n_topics", n_topics, Integral, 1)
    if not 1 < segment_length < np.inf:
        raise ValueError(f"segment_length must be a number above 1, got {segment_length!r}")
    leaving = 0.0 if n_topics == 1 else 1 / segment_length
    transmat = np.full((n_topics, n_topics), leaving / max(n_topics - 1, 1))
    np.fill_diagonal(transmat, 1 - leaving)
    return HiddenMarkovModel(
        n_topics,
        family=Multinomial(alpha=ALPHA * kept),
        transmat=transmat,
        transmat_prior=1 + PRIOR * n_paragraphs * transmat,
        startprob_prior=2.0,
        **{"tol": TOL, **settings},
    )


def usual_topics(n_paragraphs, segment_length=SEGMENT_LENGTH):
    """Return the default number of topics: as many as segments are expected, up to 40.

    Examples
    --------
    >>> from coem.segments import usual_topics
    >>> usual_topics(55), usual_topics(3000), usual_topics(4)
    (6, 40, 2)
    """
    return int(min(MOST_TOPICS, max(2, round(n_paragraphs / segment_length)), n_paragraphs))


def segments_of(topics, proba, lengths):
    """Return the segments: runs of paragraphs of one document with the same topic.

    Parameters
    ----------
    topics : array of shape (n_paragraphs,)
        Topic of each paragraph, such as the best path of a chain.
    proba : array of shape (n_paragraphs, n_topics)
        Posterior of the topics.
    lengths : array of shape (n_documents,)
        Number of paragraphs of each document; 0 if it is empty.

    Returns
    -------
    segments : Segments

    Examples
    --------
    >>> import numpy as np
    >>> from coem.segments import segments_of
    >>> found = segments_of(np.array([0, 0, 1, 1]), np.eye(2)[[0, 0, 1, 1]], [3, 1])
    >>> list(zip(found.document.tolist(), found.first.tolist(), found.last.tolist()))
    [(0, 0, 1), (0, 2, 2), (1, 0, 0)]
    """
    topics, lengths = np.asarray(topics), np.asarray(lengths)
    owner = np.repeat(np.arange(len(lengths)), lengths)
    before = np.cumsum(lengths) - lengths  # paragraphs of the documents before
    begins = np.ones(len(topics), dtype=bool)
    begins[1:] = (topics[1:] != topics[:-1]) | (owner[1:] != owner[:-1])
    first = np.flatnonzero(begins)
    sizes = np.diff(np.append(first, len(topics)))
    document = owner[first]
    chosen = np.asarray(proba, dtype=np.float64)[np.arange(len(topics)), topics]
    means = np.add.reduceat(chosen, first) / sizes if len(first) else np.zeros(0)
    return Segments(
        document=document,
        segment=np.arange(len(first)) - np.searchsorted(document, document),
        first=first - before[document],
        last=first + sizes - 1 - before[document],
        topic=topics[first],
        probability=means,
    )
