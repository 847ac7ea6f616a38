"""Cases that hold every pair of choices, where all products would take long and tell no more."""

from itertools import combinations, product


def pairwise(*choices):
    """Return tuples, one entry of each list, such that any two entries of two lists meet.

    Of all products the one with the most new pairs comes next, the first of several.
    """
    lists = [list(part) for part in choices]
    left = {
        ((i, a), (j, b))
        for i, j in combinations(range(len(lists)), 2)
        for a, b in product(range(len(lists[i])), range(len(lists[j])))
    }
    rows = list(product(*(range(len(part)) for part in lists)))
    found = []
    while left:
        best = max(rows, key=lambda row: len(_pairs(row) & left))
        left -= _pairs(best)
        found.append(best)
    return [tuple(part[i] for part, i in zip(lists, row, strict=True)) for row in sorted(found)]


def _pairs(row):
    return set(combinations(enumerate(row), 2))
