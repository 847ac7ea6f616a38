"""The number of components that `choose_k` finds, on document sets whose classes are known.

Views are those of `coem choose-k`. `python experiments/sizes.py re0 wap` does two of the sets;
`--others` shows other criteria, `--smoothing` what pseudo-counts do to both parts of the table.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coem import MixtureClusterer, Views
from coem.datasets import fetch_20newsgroups, fetch_cluto, fetch_cora
from coem.families import Multinomial
from coem.recipes.defaults import LENGTH, TOL
from coem.selection import choose_k
from coem.text.scaling import kept_share, shorten

CHOSEN_ON = ("re0", "tr11", "20ng")  # the sets that the rule of `choose_k` was chosen on
APART = ("wap", "fbis", "la1", "hitech", "cora")
SIZES = (2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64)
SHARES = (1.0, 0.9, 0.85)
POSTS = 6000


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=[*CHOSEN_ON, *APART])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--others", action="store_true", help="BIC, ICL, agreement")
    parser.add_argument("--smoothing", action="store_true", help="with other pseudo-counts")
    options = parser.parse_args()
    for name in options.sets:
        views, target = load(name)
        print(f"{name}: {len(views)} rows, {len(set(target))} classes", flush=True)
        if options.others:
            print("  BIC, ICL, agreement:", *by_other_criteria(views))
        elif options.smoothing:
            by_smoothing(views)
        else:
            by_seeds(views, options.seeds)


def load(name):
    """Return the views of a set, and its classes."""
    if name != "20ng":
        data = fetch_cora() if name == "cora" else fetch_cluto(name)
        return data.views, data.target
    data = fetch_20newsgroups(views=("body",), stop_words="english", min_df=1)
    rows = np.sort(np.random.default_rng(0).permutation(len(data.target))[:POSTS])
    X = data.views["body"][rows].tocsr()
    frequent = np.asarray((X > 0).sum(axis=0)).ravel() >= 2
    return Views(body=X[:, frequent]), data.target[rows]


def by_seeds(views, n_seeds):
    """Print the answers with several seeds, and what other rules make of the same tables."""
    views, families = shortened(views)
    model = MixtureClusterer(family=families, tol=TOL)
    started = time.process_time()
    found = [choose_k(model, views, random_state=seed, n_jobs=2) for seed in range(n_seeds)]
    seconds = (time.process_time() - started) / n_seeds
    print(f"  choose_k        {[choice.best for choice in found]}, {seconds:.1f} s of CPU each")
    print(f"  possible        {[f'{c.possible[0]}-{c.possible[-1]}' for c in found]}")
    for share in SHARES:
        first = [next(row.k for row in c.table if row.share >= share) for c in found]
        print(f"  share {share:<4}      {first}")
    print(f"  held out        {[max(c.table, key=lambda row: row.held_out).k for c in found]}")


def by_smoothing(views):
    """Print the numbers of the largest shared information and likelihood by pseudo-counts."""
    views, families = shortened(views)
    for factor in (1.0, 0.1, 0.01):
        family = {name: Multinomial(alpha=f.alpha * factor) for name, f in families.items()}
        model = MixtureClusterer(family=family, tol=TOL)
        choice = choose_k(model, views, SIZES, n_splits=2, random_state=0, n_jobs=2)
        held_out = max(choice.table, key=lambda row: row.held_out).k
        print(
            f"  pseudo-counts x {factor}: choose_k {choice.best}, held out {held_out}", flush=True
        )


def shortened(views):
    """Return views and families as the program has them: no view counts more than some words."""
    shorter = {name: shorten(X, LENGTH) for name, X in views.items()}
    pairs = ((name, kept_share(X, shorter[name])) for name, X in views.items())
    return Views(shorter), {name: Multinomial(alpha=kept) for name, kept in pairs}


def by_other_criteria(views):
    """Return the best number by BIC, by ICL, and by how far fits of two halves agree."""
    halves = np.array_split(np.random.default_rng(0).permutation(len(views)), 2)
    bic, icl, agreement = {}, {}, {}
    for k in SIZES:
        model = MixtureClusterer(k, tol=1e-4, random_state=0).fit(views)
        bic[k], icl[k] = model.bic(views), model.icl(views)
        found = [
            MixtureClusterer(k, tol=1e-4, random_state=seed).fit(views[half]).predict(views)
            for seed, half in enumerate(halves, 1)
        ]
        agreement[k] = adjusted_rand_score(*found)
    return min(bic, key=bic.get), min(icl, key=icl.get), max(agreement, key=agreement.get)


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    main()
