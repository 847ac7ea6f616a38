"""The cases of other tests leave no pair out."""

from itertools import combinations, product

import pytest

from tests.pairs import pairwise


@pytest.mark.parametrize("sizes", [(12, 4, 2), (12, 2, 2, 2), (3, 3, 3), (2, 5), (4,) * 4, (1, 3)])
def test_any_two_choices_meet(sizes):
    lists = [[f"{i}-{j}" for j in range(n)] for i, n in enumerate(sizes)]
    found = pairwise(*lists)
    for i, j in combinations(range(len(lists)), 2):
        assert {(row[i], row[j]) for row in found} == set(product(lists[i], lists[j]))
    assert len(set(found)) == len(found)


def test_fewer_cases_than_all_products():
    assert len(pairwise(range(12), range(4), range(2))) == 48
    assert len(pairwise(range(12), range(2), range(2), range(2))) < 30
