"""A view that says nothing beside views that do: the groups must not change.

For each data set the NMI of groups and classes without further views, with one view of noise, and
with all five; and what the groups of each two views share, for views that speak and for noise. The
noise is a uniform number, random words, the words of a time stamp, a constant, and an id.
"""

import warnings
from itertools import combinations

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import normalized_mutual_info_score
from trials import side_by_side, table

from coem import MixtureClusterer, Views
from coem.datasets import (
    fetch_20newsgroups,
    fetch_citeseer,
    fetch_cluto,
    fetch_cora,
    fetch_webkb,
    load_stdlib_modules,
)

SEEDS = 3
SETS = {
    "20 Newsgroups": lambda: some_of(fetch_20newsgroups(), 6000),
    "wap": lambda: fetch_cluto("wap"),
    "Cora": fetch_cora,
    "Citeseer": fetch_citeseer,
    "WebKB": fetch_webkb,
    "standard library": load_stdlib_modules,
}
GAUSSIAN = "number", "constant"


def some_of(data, n):
    """Keep some rows, and the words that they have."""
    rows = np.sort(np.random.default_rng(0).choice(len(data.target), n, replace=False))
    kept = {name: data.views[name][rows] for name in data.views.names}
    data.views = Views(
        {name: X[:, np.asarray(X.sum(axis=0)).ravel() > 0] for name, X in kept.items()}
    )
    data.target = data.target[rows]
    return data


def noise(n, rng):
    """Return the views of noise."""
    fields = [(3, 0), (12, 3), (31, 15), (24, 46), (60, 70), (60, 130)]
    stamp = np.column_stack([rng.integers(most, size=n) + first for most, first in fields])
    rows = np.repeat(np.arange(n), len(fields))
    words = sp.random_array((n, 400), density=0.02, rng=rng, format="csr")
    return {
        "number": rng.random((n, 1)),
        "random words": words.ceil(),
        "time stamp": sp.csr_array((np.ones(rows.size), (rows, stamp.ravel())), shape=(n, 190)),
        "constant": np.ones((n, 1)),
        "id": sp.eye_array(n, format="csr"),
    }


def judge(name, extra, seed):
    """Return the NMI, the views that were left out, and what views share."""
    data = SETS[name]()
    views = {view: data.views[view] for view in data.views.names}
    added = noise(len(data.target), np.random.default_rng(seed + 100))
    views |= {view: added[view] for view in extra}
    family = {v: "gaussian" if v in GAUSSIAN else "auto" for v in views}
    k = len(np.unique(data.target))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that views are left out is what is counted here
        model = MixtureClusterer(k, family=family, tol=1e-4, random_state=seed).fit(Views(views))
    nmi = normalized_mutual_info_score(data.target, model.labels_)
    return nmi, set(model.silent_views_), pairs_of(model, extra)


def pairs_of(model, extra):
    """Return what pairs of views share, apart for pairs with and without noise."""
    shared = model.shared_information_
    names = list(enumerate(model.view_names_))
    found = {True: [], False: []}
    for (u, one), (v, other) in combinations(names, 2) if shared.size else ():
        found[one in extra or other in extra].append(shared[u, v])
    return found


def main():
    kinds = list(noise(3, np.random.default_rng(0)))
    cases = [(), *((kind,) for kind in kinds), tuple(kinds)]
    tasks = [(name, case, seed) for name in SETS for case in cases for seed in range(SEEDS)]
    found = dict(zip(tasks, side_by_side(judge, tasks), strict=True))
    rows, shares = [], []
    for name in SETS:
        cells, wrong = [], 0
        for case in cases:
            some = [found[name, case, seed] for seed in range(SEEDS)]
            cells.append(f"{np.mean([nmi for nmi, _, _ in some]):.3f}")
            wrong += sum(silent != set(case) for _, silent, _ in some)
        rows.append([name, *cells, wrong])
        every = [found[name, cases[-1], seed][2] for seed in range(SEEDS)]
        spoken, silent = (np.concatenate([part[kind] for part in every]) for kind in (False, True))
        least = f"{np.nanmin(spoken):.3f}" if np.isfinite(spoken).any() else "one view"
        shares.append([name, least, f"{np.nanmax(silent):.3f}"])
    print(f"NMI of groups and classes, mean of {SEEDS} seeds; fits with another view left out\n")
    table(["", "without", *kinds, "all five", "wrongly judged"], rows)
    print("What the groups of two views share\n")
    table(["", "least of two views that speak", "most with a view of noise"], shares)


if __name__ == "__main__":
    main()
