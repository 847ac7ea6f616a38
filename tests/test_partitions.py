"""Meet and join of partitions: examples of the paper, a slow twin, and the laws of a lattice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coem.metrics import join, meet


def slow(labels, together):
    """Return clusters from all pairs of rows, merged until nothing changes (Warshall)."""
    n = len(labels[0])
    tied = np.array([[together(p[i] == p[j] for p in labels) for j in range(n)] for i in range(n)])
    for middle in range(n):
        tied |= np.outer(tied[:, middle], tied[middle])
    names = {}
    return [names.setdefault(int(np.argmax(tied[i])), len(names)) for i in range(n)]


def partitions(count):
    """Return a strategy: as many partitions of the same rows."""
    rows = st.lists(st.tuples(*[st.integers(0, 4)] * count), min_size=1, max_size=12)
    return rows.map(lambda rows: [list(each) for each in zip(*rows, strict=True)])


def same(a, b):
    return np.array_equal(a, b)


def test_examples_of_the_paper():
    assert meet(list("aaaabb"), list("aabbbb")).tolist() == [0, 0, 1, 1, 2, 2]
    assert join(list("rrbboo"), list("grgroo")).tolist() == [0, 0, 0, 0, 1, 1]


@given(partitions(3))
def test_slow_twin(labels):
    assert meet(*labels).tolist() == slow(labels, all)
    assert join(*labels).tolist() == slow(labels, any)


@given(partitions(3))
def test_laws_of_a_lattice(labels):
    a, b, c = labels
    for op, other in ((meet, join), (join, meet)):
        assert same(op(a, a), op(a))
        assert same(op(a, b), op(b, a))
        assert same(op(a, op(b, c)), op(op(a, b), c))
        assert same(op(a, b, c), op(a, op(b, c)))
        assert same(op(a, other(a, b)), op(a))


@given(partitions(2))
def test_meet_is_finer_and_join_is_coarser(labels):
    fine, coarse = meet(*labels), join(*labels)
    for each in labels:
        assert same(meet(fine, each), fine)
        assert same(join(coarse, each), coarse)


def test_clusters_are_numbered_by_their_first_rows():
    assert meet([7, 3, 7, 5]).tolist() == [0, 1, 0, 2]
    assert join(["b", "a", "b"]).tolist() == [0, 1, 0]


@pytest.mark.parametrize("op", [meet, join])
def test_no_rows(op):
    assert op([], []).tolist() == []


@pytest.mark.parametrize("op", [meet, join])
def test_bad_partitions_are_errors(op):
    with pytest.raises(ValueError, match="partition 1 has 3 rows and partition 0 has 2"):
        op([0, 1], [0, 1, 2])
    with pytest.raises(ValueError, match=r"partition 0 must have one cluster .* shape \(1, 2\)"):
        op([[0, 1]])
    with pytest.raises(TypeError, match="at least one partition"):
        op()
