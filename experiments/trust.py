"""What trust and probabilities say, beside classes that took no part in the fits.

    python experiments/trust.py [SET ...]

First the trust of rows and groups: ten runs of `MixtureClusterer` on re0 and wap, three times. Then
the calibration error of the probabilities of groups, means of three times ten runs with the views
of the program, on all sets of SETS or on those that are named. The way to calibrate was chosen on
the first four.
"""

import sys
import warnings

import numpy as np
from grid import LINKS, of, posts
from scipy.optimize import linear_sum_assignment, minimize_scalar
from scipy.special import log_softmax
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import normalized_mutual_info_score, roc_auc_score
from trials import side_by_side, table

from coem import MixtureClusterer, Views
from coem.datasets import fetch_cluto, fetch_cora
from coem.families import Multinomial
from coem.latent.shared_rows import translated
from coem.metrics.clusterings import curve_of
from coem.recipes.defaults import LENGTH, MAX_ITER, MIN_DF, TOL
from coem.selection import stability
from coem.text import LatentDirections
from coem.text.scaling import kept_share, shorten

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

UNSEEN_WORDS = "the same, words of all 19,997"  # also words that no row, or only one, has
CHOSEN_ON = {
    "Cora": lambda: of(fetch_cora()),
    "re0": lambda: of(fetch_cluto("re0")),
    "tr11": lambda: of(fetch_cluto("tr11")),
    "hitech": lambda: of(fetch_cluto("hitech")),
}
APART = {
    "20 Newsgroups, 5,990": lambda: bodies(*posts(5990)),
    UNSEEN_WORDS: lambda: bodies(*posts(5990)),
    "wap": lambda: of(fetch_cluto("wap")),
    "la1": lambda: of(fetch_cluto("la1")),
}
WAYS = ("posterior", "mean of the runs", "one temperature", "limit", "by class", "new rows")
FACTS = "NMI", "right", "sure before", "sure after"


def main():
    asked = sys.argv[1:]
    if not asked:
        rows = []
        for name in ("re0", "wap"):
            data = fetch_cluto(name)
            for seed in SEEDS:
                rows.append((f"{name}, seed {seed}", *line(data.views, data.target, seed)))
        table(HEADER, rows)
    for title, sets in (("Chosen on", CHOSEN_ON), ("Apart", APART)):
        names = [name for name in sets if name in asked or not asked]
        tasks = [(name, seed) for name in names for seed in SEEDS]
        found = dict(zip(tasks, side_by_side(judge, tasks), strict=True))
        rows = []
        for name in names:
            means = np.mean([found[name, seed] for seed in SEEDS], axis=0)
            rows.append([name, *(f"{value:.3f}" for value in means)])
        if rows:
            print(f"\n{title}; expected calibration error from {WAYS[0]!r} on")
            table(["set", *FACTS, *WAYS], rows)


# -- trust --------------------------------------------------------------------------------------


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


# -- probabilities ------------------------------------------------------------------------------


def bodies(views, target):
    return {"body": views["body"]}, target


def of_program(views, min_df=MIN_DF):
    """Return views and families as `coem cluster` has them: directions, unless there are links."""
    kept = {name: X.tocsr() for name, X in views.items()}
    kept = {
        name: X[:, np.asarray((X > 0).sum(axis=0)).ravel() >= min_df] for name, X in kept.items()
    }
    short = {name: shorten(X, LENGTH) for name, X in kept.items()}
    family = {name: Multinomial(alpha=kept_share(kept[name], short[name])) for name in kept}
    if not set(LINKS) & set(kept):
        short["latent"] = LatentDirections().fit_transform(Views(kept))["latent"]
        family["latent"] = "von_mises_fisher"
    return Views(short), family


def judge(name, seed):
    """Return the facts and errors of ten runs, and of ten more on four fifths of the rows."""
    views, target = (CHOSEN_ON | APART)[name]()
    target = np.unique(target, return_inverse=True)[1]
    rows, family = of_program(views, 0 if name == UNSEEN_WORDS else MIN_DF)
    found = ten_runs(rows, family, target.max() + 1, seed)
    model = found.calibrated(rows)
    log_proba, modest = found.estimator.predict_log_proba(rows), model.predict_proba(rows)
    said = translated(found.labels, found.others, len(found.table))
    proba = {
        "posterior": np.exp(log_proba),
        "mean of the runs": (len(found.others) * said + np.exp(log_proba)) / 10,
        "one temperature": one_temperature(log_proba, said),
        "limit": modest,
    }
    pick, right = (np.arange(len(target)), found.labels), is_right(found.labels, target)
    errors = [error(p[pick], right) for p in proba.values()]
    told = model.calibration_
    facts = normalized_mutual_info_score(target, found.labels), right.mean()
    more = by_class(modest, found.labels, target), on_new_rows(rows, family, target, seed)
    return [*facts, told.sure_before, told.sure_after, *errors, *more]


def ten_runs(rows, family, k, seed):
    """Return the stability of ten runs."""
    model = MixtureClusterer(k, family=family, max_iter=MAX_ITER, tol=TOL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return stability(model, rows, n_runs=10, keep="central", random_state=seed)


def one_temperature(log_proba, said):
    """Return tempered posteriors that predict the other runs best."""

    def tempered(log_beta):
        return log_softmax(np.exp(log_beta) * np.maximum(log_proba, -1e300), axis=1)

    best = minimize_scalar(lambda b: -(said * tempered(b)).sum(), bounds=(-10, 3), method="bounded")
    return np.exp(tempered(best.x))


def classes_of(labels, target):
    """Return the most frequent class of every group."""
    counts = np.zeros((labels.max() + 1, target.max() + 1))
    np.add.at(counts, (labels, target), 1)
    return counts.argmax(axis=1)


def is_right(labels, target):
    """Return which rows have the most frequent class of their group."""
    return classes_of(labels, target)[labels] == target


def error(sure, right):
    """Return the expected calibration error, in 15 bins."""
    curve = curve_of(sure, right, 15)
    gaps = np.abs(curve.confidence - curve.accuracy) * curve.weight
    return np.nansum(gaps) / curve.weight.sum()


def by_class(proba, labels, target):
    """Return the error if groups of one class are added up."""
    there = np.arange(labels.max() + 1)
    classes = np.zeros((len(labels), target.max() + 1))
    np.add.at(classes.T, classes_of(labels, target)[there], proba[:, there].T)
    return error(classes.max(axis=1), classes.argmax(axis=1) == target)


def on_new_rows(rows, family, target, seed):
    """Return the error on a fifth of the rows if the runs see the others."""
    new = np.random.default_rng(seed).permutation(len(target)) < len(target) // 5
    k = target.max() + 1
    found = ten_runs(rows[~new], family, k, seed)
    proba = found.calibrated(rows[~new]).predict_proba(rows[new])
    labels = proba.argmax(axis=1)
    classes = np.zeros(k, dtype=int)
    own = classes_of(found.labels, target[~new])
    classes[: len(own)] = own
    return error(proba.max(axis=1), classes[labels] == target[new])


if __name__ == "__main__":
    main()
