"""Chains of topics that last, and the segments of a path."""

import numpy as np
import pytest

from coem.segments import segments_of, topic_chain, usual_topics


def test_a_chain_starts_at_the_expected_length_of_a_segment():
    model = topic_chain(4, 100, segment_length=5, kept=0.5, n_init=3, random_state=7)
    assert model.transmat.sum(axis=1) == pytest.approx(np.ones(4))
    assert 1 / (1 - model.transmat.diagonal()) == pytest.approx(np.full(4, 5.0))
    assert model.transmat_prior == pytest.approx(1 + 1000 * model.transmat)
    assert model.family.alpha == pytest.approx(0.05)
    assert (model.n_init, model.random_state) == (3, 7)
    assert topic_chain(1, 10).transmat.tolist() == [[1.0]]
    assert topic_chain(2, 10, tol=0.1).tol == 0.1


@pytest.mark.parametrize("length", [1, 0, -3, np.inf, np.nan])
def test_a_segment_is_longer_than_a_paragraph(length):
    with pytest.raises(ValueError, match="segment_length must be a number above 1"):
        topic_chain(2, 10, segment_length=length)


def test_the_number_of_topics_is_that_of_a_count():
    with pytest.raises(ValueError, match="n_topics"):
        topic_chain(0, 10)


def test_the_prior_holds_transitions_where_they_are():
    rng = np.random.default_rng(0)
    X = rng.multinomial(8, np.eye(3)[np.arange(60) % 3] * 0.7 + 0.1)  # topics change at every row
    fits = [topic_chain(3, n, segment_length=10, random_state=0).fit(X) for n in (0, 6, 10**5)]
    stays = [float(model.transmat_.diagonal().mean()) for model in fits]
    assert stays[0] < 0.3 < stays[1] < stays[2]
    assert stays[2] == pytest.approx(0.9, abs=1e-3)


def test_usual_topics_are_no_more_than_paragraphs():
    assert [usual_topics(n) for n in (1, 2, 10, 200)] == [1, 2, 2, 20]
    assert usual_topics(100, 4.0) == 25
    assert usual_topics(10**6) == 40


def test_segments_one_by_one():
    rng = np.random.default_rng(3)
    lengths = np.array([5, 0, 1, 9, 0])
    topics = rng.integers(2, size=15)
    proba = rng.dirichlet([1, 1], size=15)
    found = segments_of(topics, proba, lengths)
    expected, start = [], 0
    for d, n in enumerate(lengths):
        number, first = 0, 0
        for i in range(1, n + 1):
            if i == n or topics[start + i] != topics[start + first]:
                topic = topics[start + first]
                mean = proba[start + first : start + i, topic].mean()
                expected.append((d, number, first, i - 1, topic, mean))
                number, first = number + 1, i
        start += n
    assert len(found.topic) == len(expected) > 4
    for row, want in zip(zip(*found, strict=True), expected, strict=True):
        assert row == pytest.approx(want)


def test_nothing_has_no_segments():
    found = segments_of(np.zeros(0, dtype=int), np.zeros((0, 2)), [0])
    assert all(len(column) == 0 for column in found)
