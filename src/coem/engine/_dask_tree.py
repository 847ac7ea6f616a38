"""The tree in which the sums of partitions are added.

Neighbouring partitions make a *leaf*: each adds its rows to the sums of those before it. Leaves are
added in pairs, pairs in pairs, and so on. All of that depends on the number of partitions alone,
and so do the bits of the root. A worker that has neighbouring leaves may add up a whole branch.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

LEAVES = 64  # with fewer partitions, each is a leaf
MOST = 8  # partitions of a leaf

Item = TypeVar("Item")


class Plan(NamedTuple):
    """Which branches are added up as a whole, and how the branches are."""

    branches: list[tuple[int, int]]  # the first leaf, and the one after the last
    levels: list[list[tuple[int, int]]]  # pairs to be added, which come after all before them


def leaf_size(n_parts: int) -> int:
    """Return how many partitions make a leaf; the last one may have fewer."""
    return max(1, min(MOST, n_parts // LEAVES))


def leaves(n_parts: int) -> list[tuple[int, int]]:
    """Return the first partition of each leaf, and the one after its last."""
    size = leaf_size(n_parts)
    return [(lo, min(lo + size, n_parts)) for lo in range(0, n_parts, size)]


def owners_of(homes: Sequence[str], pieces: Mapping[str, int]) -> list[int]:
    """Return an owner for each leaf, as `plan` takes them; neighbours may have the same.

    `homes` are the workers of the leaves. A worker has so many owners, or more if its leaves are
    not all neighbours.
    """
    n_leaves, n_seen = Counter(homes), Counter[str]()
    last: tuple[str, int] | None = None
    owners: list[int] = []
    for home in homes:
        piece = home, n_seen[home] * pieces[home] // n_leaves[home]
        n_seen[home] += 1
        owners.append(owners[-1] + (piece != last) if owners else 0)
        last = piece
    return owners


def middle(lo: int, hi: int) -> int:
    """Return where a branch with several leaves is cut in two."""
    return lo + (1 << ((hi - lo - 1).bit_length() - 1))


def fold(lo: int, hi: int, leaf: Callable[[int], Item], add: Callable[[Item, Item], Item]) -> Item:
    """Return the sum of the leaves of a branch."""
    if hi - lo == 1:
        return leaf(lo)
    at = middle(lo, hi)
    one = fold(lo, at, leaf, add)
    return add(one, fold(at, hi, leaf, add))


def plan(owners: Sequence[int]) -> Plan:
    """Return what is to be done if each owner adds up what it has; its leaves are neighbours.

    Branches are numbered in their order, and sums in that of the levels after them. The root is the
    last of all.
    """
    branches: list[tuple[int, int]] = []
    sums: list[list[tuple[Node, Node]]] = []

    def visit(lo: int, hi: int) -> Node:
        if owners[lo] == owners[hi - 1]:
            branches.append((lo, hi))
            return Node(0, len(branches) - 1)
        at = middle(lo, hi)
        pair = visit(lo, at), visit(at, hi)
        level = max(node.level for node in pair) + 1
        sums.extend([] for _ in range(level - len(sums)))
        sums[level - 1].append(pair)
        return Node(level, len(sums[level - 1]) - 1)

    visit(0, len(owners))
    starts = [0, len(branches)]
    for level in sums:
        starts.append(starts[-1] + len(level))
    levels = [[(_number(a, starts), _number(b, starts)) for a, b in level] for level in sums]
    return Plan(branches, levels)


class Node(NamedTuple):
    """A branch (level 0), or a sum."""

    level: int
    place: int  # among all of its level


def _number(node: Node, starts: Sequence[int]) -> int:
    return starts[node.level] + node.place
