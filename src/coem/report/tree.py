"""The tree of groups: which groups are close, and what is left if the closest are merged."""

from dataclasses import dataclass

import numpy as np

from coem.agglomerative import MultiViewAgglomerative
from coem.report import svg

ROW, LEFT, WIDTH, TEXT = 24, 8, 130, 230  # pixels of the picture


@dataclass(frozen=True)
class Tree:
    """Groups merged two by two, the closest first.

    Attributes
    ----------
    groups : list of int
        The groups with rows. Node i of the tree, below its length, is ``groups[i]``.
    merges : list of (int, int, float)
        Two nodes, and their distance. Merge t makes node ``len(groups) + t``.
    order : list of int
        The groups from top to bottom, so that merged ones stand beside each other.
    """

    groups: list
    merges: list
    order: list

    def cut(self, n):
        """Return lists of groups: what is left of the tree if the last n - 1 merges are undone.

        Parameters
        ----------
        n : int
            The number of lists, from 1 to the number of groups.
        """
        if not 1 <= n <= len(self.groups):
            raise ValueError(f"n must be from 1 to {len(self.groups)}, got {n!r}")
        members = [[group] for group in self.groups]
        parts = dict(enumerate(members))
        for t, (a, b, _) in enumerate(self.merges[: len(self.groups) - n]):
            parts[len(members) + t] = parts.pop(a) + parts.pop(b)
        rank = {group: i for i, group in enumerate(self.order)}
        found = [sorted(part, key=rank.get) for part in parts.values()]
        return sorted(found, key=lambda part: rank[part[0]])


def tree_of(reading):
    """Return the tree of the groups of a reading, or None if there are fewer than three.

    The distance of two groups is 1 minus the cosine of their mean directions, after the mean of
    all groups is taken away, and on average over the views. Groups are merged by average linkage.
    """
    groups = np.flatnonzero(np.bincount(reading.groups[~reading.blank], minlength=reading.n_groups))
    if len(groups) < 3 or not reading.space.rows:
        return None
    heard = [view for view in reading.space.rows if view not in reading.silent]
    cosines = [_cosines(reading.space.rows[view], reading.groups, groups) for view in heard]
    far = 1 - np.mean(cosines, axis=0)
    np.fill_diagonal(far, 0.0)
    tree = MultiViewAgglomerative(1, metric="precomputed").fit(np.maximum((far + far.T) / 2, 0.0))
    pairs = zip(tree.children_.tolist(), tree.distances_.tolist(), strict=True)
    merges = [(a, b, height) for (a, b), height in pairs]
    return Tree(groups.tolist(), merges, [int(groups[i]) for i in _order(merges, len(groups))])


def _cosines(rows, labels, groups):
    """Return the cosines of the groups' mean directions, seen from the middle of them all."""
    means = np.stack([np.asarray(rows[labels == g].mean(axis=0)).ravel() for g in groups])
    means -= means.mean(axis=0)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), np.finfo(float).tiny)
    return means @ means.T


def _order(merges, n):
    """Return the leaves of the tree, the larger branch above."""
    leaves = {i: [i] for i in range(n)}
    for t, (a, b, _) in enumerate(merges):
        first, second = sorted((leaves.pop(a), leaves.pop(b)), key=len, reverse=True)
        leaves[n + t] = first + second
    (order,) = leaves.values()
    return order


def dendrogram(tree, names):
    """Return the tree as SVG, and where its merges are from left to right.

    Names are on the left and link to the cards of the groups.
    """
    height = ROW * len(tree.order) + 10
    heights = [far for *_, far in tree.merges]
    # Even the closest groups are far from each other; most of the way to them would be empty.
    low, top = 0.75 * min(heights), max(heights)
    place = {g: (TEXT + LEFT, ROW * (i + 0.5) + 5) for i, g in enumerate(tree.order)}
    nodes = {i: place[g] for i, g in enumerate(tree.groups)}
    parts, across = [_leaf(g, names[g], place[g]) for g in tree.order], []
    for t, (a, b, far) in enumerate(tree.merges):
        # A merge stands no further left than those within it: average linkage keeps that order.
        x = TEXT + LEFT + 6 + (WIDTH - 12) * (far - low) / ((top - low) or 1.0)
        (xa, ya), (xb, yb) = nodes[a], nodes[b]
        bend = f"M{xa:.1f} {ya:.1f}H{x:.1f}V{yb:.1f}H{xb:.1f}"
        parts.append(svg.tag("path", class_="branch", d=bend))
        nodes[len(tree.groups) + t] = x, (ya + yb) / 2
        across.append(round(x, 1))
    cut = {"x1": 0, "x2": 0, "y1": 0, "y2": height, "visibility": "hidden"}
    parts.append(svg.tag("line", class_="cut", id="tree-cut", **cut))
    size = TEXT + LEFT + WIDTH, height
    return svg.picture(parts, "Tree of the groups", size, role="group"), across


def _leaf(group, name, place):
    text = svg.tag("text", f"{group} · {_short(name)}", class_="end", x=TEXT, y=place[1] + 4)
    return svg.tag("a", text, href=f"#group-{group}")


def _short(name, longest=30):
    return name if len(name) <= longest else name[: longest - 1] + "…"
