"""What the trust of rows and groups says, beside classes that took no part in the fits.

    python benchmarks/trust.py [DATA SET ...]

Ten runs of `MixtureClusterer` on re0 and wap, or on other sets of `fetch_cluto`, three times.
"""

import sys

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score
from trials import table

from coem import MixtureClusterer
from coem.datasets import fetch_cluto
from coem.selection import stability

SEEDS = range(3)
HEADER = (
    "",
    "mean trust",
    "adjusted Rand of two runs",
    "purity by thirds of trust",
    "matched accuracy by thirds of trust",
    "AUC of a row within its group",
    "rank correlation of groups with purity",
)


def main():
    rows = []
    for name in sys.argv[1:] or ["re0", "wap"]:
        data = fetch_cluto(name)
        for seed in SEEDS:
            rows.append((f"{name}, seed {seed}", *line(data.views, data.target, seed)))
    table(HEADER, rows)


def line(views, target, seed):
    """Return the figures of ten runs."""
    model = MixtureClusterer(target.max() + 1, tol=1e-4)
    found = stability(model, views, n_runs=10, keep="central", random_state=seed)
    counts = np.zeros((len(found.table), target.max() + 1))
    np.add.at(counts, (found.labels, target), 1)
    pure = counts.argmax(axis=1)[found.labels] == target
    partner = np.full(len(counts), -1)
    groups, classes = linear_sum_assignment(counts, maximize=True)
    partner[groups] = classes
    matched = partner[found.labels] == target
    there = counts.sum(axis=1) > 0
    purity = counts.max(axis=1)[there] / counts.sum(axis=1)[there]
    of_groups = np.array([row.trust for row in found.table])[there]
    return (
        f"{found.row_trust.mean():.2f}",
        f"{found.mean_agreement:.2f}",
        by_thirds(pure, found.row_trust),
        by_thirds(matched, found.row_trust),
        f"{within(pure, found):.2f}",
        f"{spearmanr(of_groups, purity)[0]:.2f}",
    )


def by_thirds(right, trust):
    """Return the share that is right among the third of least, middle and most trust."""
    order = np.argsort(trust, kind="stable")
    return ", ".join(f"{right[part].mean():.2f}" for part in np.array_split(order, 3))


def within(right, found):
    """Return how often a right row has more trust than a wrong one of its group."""
    values, sizes = [], []
    for group in np.unique(found.labels):
        mine = found.labels == group
        if 0 < right[mine].mean() < 1:
            values.append(roc_auc_score(right[mine], found.row_trust[mine]))
            sizes.append(mine.sum())
    return np.average(values, weights=sizes)


if __name__ == "__main__":
    main()
