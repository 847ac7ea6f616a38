"""Multi-view spherical k-means, transcribed: Bickel & Scheffer (2004), Sec. 4.3, Eq. 8-12.

Loops over rows and clusters, dense double precision, nothing shared with the library.
"""

import math
from dataclasses import dataclass

import numpy as np


@dataclass
class Round:
    """What is known after one round over all views."""

    concepts: list  # one (k, d) array a view
    partitions: list  # one list of clusters a view, None where a row is empty
    objective: list  # Eq. 10, one number a view
    moves: list  # (view, cluster, row)


def unit(x):
    length = math.sqrt(sum(float(value) ** 2 for value in x))
    return np.array(x, dtype=float) / length if length > 0 else None


def rows_of(views):
    """Return unit rows, None where a row is empty."""
    return [[unit(np.asarray(x, dtype=float).ravel()) for x in X] for X in views]


def partition(rows, concepts):
    """Eq. 8: the concept vector with the largest cosine; of equals the first."""
    found = []
    for x in rows:
        if x is None:
            found.append(None)
            continue
        values = [float(x @ c) for c in concepts]
        found.append(values.index(max(values)))
    return found


def handed_on(v, i, partitions):
    """The cluster of a row in the view before, or before that, and which view that is."""
    s = len(partitions)
    for step in range(1, s + 1):
        u = (v - step) % s
        if partitions[u] is not None and partitions[u][i] is not None:
            return partitions[u][i], u
    return None, None


def means(rows, labels, k, weight, old):
    """Eq. 9; a cluster without rows keeps its vector, or gets the mean of all rows."""
    out = []
    for j in range(k):
        members = [w * x for x, label, w in zip(rows, labels, weight, strict=True) if label == j]
        mean = unit(np.sum(members, axis=0)) if members else None
        if mean is None and old is not None:
            mean = old[j]
        out.append(mean)
    whole = [w * x for x, label, w in zip(rows, labels, weight, strict=True) if label is not None]
    return [unit(np.sum(whole, axis=0)) if mean is None else mean for mean in out]


def refill(rows, labels, sources, concepts, k, weight):
    """Give every cluster without rows the one that fits worst."""
    moved = []
    for j in range(k):
        held = [i for i, label in enumerate(labels) if label == j and weight[i] > 0]
        if held:
            continue
        sizes = [
            sum(other == label and weight[i] > 0 for i, other in enumerate(labels))
            for label in range(k)
        ]
        best = None
        for i, label in enumerate(labels):
            if label is None or weight[i] == 0 or sizes[label] < 2 or i in [m[1] for m in moved]:
                continue
            u = sources[i]
            fit = float(rows[u][i] @ concepts[u][label])
            if best is None or fit < best[0]:
                best = fit, i
        if best is None:
            break
        labels[best[1]] = j
        moved.append((j, best[1]))
    return moved


def spherical_k_means(views, concepts, n_rounds, weight=None):
    """Return the rounds of Table 1 with hard steps, from concept vectors of the last view."""
    rows, k = rows_of(views), len(concepts)
    n, s = len(rows[0]), len(rows)
    weight = [1.0] * n if weight is None else list(weight)
    centres = [None] * (s - 1) + [[unit(c) for c in concepts]]
    partitions = [None] * (s - 1) + [partition(rows[-1], centres[-1])]
    rounds = []
    for _ in range(n_rounds):
        moves = []
        for v in range(s):
            labels, sources = [], []
            for i in range(n):
                label, u = handed_on(v, i, partitions)
                there = rows[v][i] is not None
                labels.append(label if there else None)
                sources.append(u)
            moves += [(v, *m) for m in refill(rows, labels, sources, centres, k, weight)]
            centres[v] = means(rows[v], labels, k, weight, centres[v])
            partitions[v] = partition(rows[v], centres[v])
        objective = [
            sum(
                w * float(x @ centres[v][label])
                for x, label, w in zip(rows[v], partitions[v], weight, strict=True)
                if x is not None
            )
            for v in range(s)
        ]
        rounds.append(Round(list(centres), [list(p) for p in partitions], objective, moves))
    return rounds


def consensus(views, state, k, weight=None):
    """Eq. 11; the concept vectors where nobody agrees, or where there is one view."""
    rows = rows_of(views)
    weight = [1.0] * len(rows[0]) if weight is None else weight
    centres = []
    for v in range(len(rows)):
        mine = []
        for j in range(k):
            members = [
                weight[i] * rows[v][i]
                for i in range(len(rows[0]))
                if rows[v][i] is not None and all(p[i] in (j, None) for p in state.partitions)
            ]
            agreed = unit(np.sum(members, axis=0)) if members and len(rows) > 1 else None
            mine.append(state.concepts[v][j] if agreed is None else agreed)
        centres.append(mine)
    return centres


def assign(views, centres):
    """Eq. 12: the least mean angle over the views that see the row; None if none does."""
    rows, found = rows_of(views), []
    for i in range(len(rows[0])):
        there = [v for v in range(len(rows)) if rows[v][i] is not None]
        if not there:
            found.append(None)
            continue
        angles = [
            sum(math.acos(min(1.0, max(-1.0, float(rows[v][i] @ centres[v][j])))) for v in there)
            for j in range(len(centres[0]))
        ]
        found.append(angles.index(min(angles)))
    return found


def stop(rounds, patience):
    """Return (rounds done, the best of them): no view at a new maximum for so many rounds."""
    maxima, since = [-math.inf] * len(rounds[0].objective), 0
    done = []
    for state in rounds:
        done.append(state)
        better = False
        for v, value in enumerate(state.objective):
            if value > maxima[v]:
                maxima[v], better = value, True
        since = 0 if better else since + 1
        if since >= patience:
            break
    return len(done), max(range(len(done)), key=lambda i: (sum(done[i].objective), -i))
