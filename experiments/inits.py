"""Where a mixture begins: the starts of MixtureClusterer on documents, links and dense tables.

Entropy of the clusters in bits (Bickel & Scheffer 2005, Eq. 23; smaller is better) and normalised
mutual information with the classes; as many components as classes, default settings otherwise.
scikit-learn's KMeans on TF-IDF rows (all views side by side) is the yardstick, and annealing from
random parameters the way to do without a good start.

--quick takes two seeds and leaves out the large sets; --sets takes some sets alone; --parts shows
instead what the parts of the spherical start are worth.
"""

import argparse
import sys
import time
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.metrics import normalized_mutual_info_score
from trials import side_by_side, table

from coem import MixtureClusterer, Views, initialise
from coem.coupling import as_coupling
from coem.datasets import (
    fetch_20newsgroups,
    fetch_citeseer,
    fetch_cluto,
    fetch_cora,
    fetch_webkb,
)
from coem.families import Gaussian
from coem.initialise import spherical, starts
from coem.metrics import cluster_entropy
from coem.schedules import Geometric

CLUTO = ("re0", "fbis", "la1", "hitech", "tr11", "wap")
LINKED = {"WebKB": fetch_webkb, "Cora": fetch_cora, "Citeseer": fetch_citeseer}
SMALL = (*CLUTO, *LINKED)
LARGE = ("20news", "20news+vectors")  # few seeds: they take most of the time
TABLES = "tables"  # dense ones, for Gaussians
ANNEALED = "annealed random"
METHODS = (*initialise.INITS, ANNEALED, "KMeans")
HEAT = Geometric(0.02, 1.2)  # 22 rounds to beta = 1
DENSE = {
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
    "breast cancer": load_breast_cancer,
}
# The coupling of the start, its beginnings, the rounds of each, and of the best one.
PARTS = {
    "joint, 1 beginning": ("joint", 1, 3, 7),
    "joint, 8": ("joint", 8, 3, 7),
    "co-EM, 1": ("co-em", 1, 3, 7),
    "co-EM, 8": ("co-em", 8, 3, 7),
}
WHOLE_START = starts.spherical


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two seeds, no large sets")
    parser.add_argument("--parts", action="store_true", help="the parts of the spherical start")
    parser.add_argument("--sets", nargs="+", choices=(*LARGE, *SMALL, TABLES), help="these alone")
    options = parser.parse_args()
    names = options.sets or [*(() if options.quick else LARGE), *SMALL, TABLES]
    sets = load_sets(names)
    if sets:
        compare(sets, *((PARTS, by_parts) if options.parts else (METHODS, by_start)), options.quick)
    if TABLES in names and not options.parts:
        dense_tables(2 if options.quick else 10)
    if LARGE[1] in names and not options.parts:
        defaults(*sets[LARGE[1]])


# -- documents and links -------------------------------------------------------------------------


def compare(sets, methods, task, quick):
    """Print entropy and mutual information of every method on every set, and its seconds."""
    lines, clocks = [], []
    for name, (views, target) in sets.items():
        seeds = range(2 if quick else 5 if name in LARGE else 10)
        plan = [(views, target, method, seed) for method in methods for seed in seeds]
        found = np.reshape(side_by_side(task, plan), (len(methods), len(seeds), 3))
        print(f"{name}: done", file=sys.stderr, flush=True)
        lines.append([name, len(seeds), *starred(found)])
        clocks.append([name, *(f"{x:.2f}" for x in found[:, :, 2].mean(axis=1))])
    print("Entropy in bits / NMI, means over seeds (+- the standard error of NMI)\n")
    table(["", "seeds", *methods], lines)
    print("Seconds of a fit, of one processor\n")
    table(["", *methods], clocks)


def starred(found):
    """Return a cell a method, with a star at the largest mean of NMI."""
    means = found.mean(axis=1)
    best = np.nanargmax(means[:, 1])
    errors = found[:, :, 1].std(axis=1, ddof=1) / np.sqrt(found.shape[1])
    return [
        f"{entropy:.2f} / {nmi:.3f} +- {error:.3f}{' *' if m == best else ''}".replace("nan", "")
        for m, ((entropy, nmi, _), error) in enumerate(zip(means, errors, strict=True))
    ]


def by_start(views, target, method, seed):
    """Return entropy, NMI and processor seconds of a fit from one of `METHODS`."""
    k = len(np.unique(target))
    if method == "KMeans":
        return timed(KMeans(k, random_state=seed), side_by_side_rows(views), target)
    options = {"init": method}
    if method == ANNEALED:
        options = {"init": "random", "beta": HEAT}
    return timed(MixtureClusterer(k, n_jobs=1, random_state=seed, **options), views, target)


def by_parts(views, target, part, seed):
    """Return the same for a spherical start with other parts."""
    coupling, *numbers = PARTS[part]
    if coupling == "co-em" and len(views.names) == 1:  # nothing to couple: as before
        return (np.nan,) * 3
    spherical.BEGINNINGS, spherical.FIRST_ROUNDS, spherical.MORE_ROUNDS = numbers
    starts.spherical = lambda model, part: WHOLE_START(
        replace(model, coupling=as_coupling(coupling)), part
    )
    model = MixtureClusterer(len(np.unique(target)), n_jobs=1, random_state=seed)
    return timed(model, views, target)


def timed(model, X, target):
    begin = time.process_time()
    labels = model.fit(X).labels_
    seconds = time.process_time() - begin
    nmi = normalized_mutual_info_score(target, labels)
    return cluster_entropy(target, labels), nmi, seconds


def side_by_side_rows(views):
    """Return all views in one matrix, counts as TF-IDF rows."""
    parts = [
        TfidfTransformer(sublinear_tf=True).fit_transform(views[name])
        if sp.issparse(views[name])
        else views[name]
        for name in views.names
    ]
    return parts[0] if len(parts) == 1 else sp.hstack(parts, format="csr")


def load_sets(names):
    """Return name -> views and classes; of 20 Newsgroups the posts that have a word."""
    sets = {name: fetch_cluto(name) for name in CLUTO if name in names}
    sets |= {name: fetch() for name, fetch in LINKED.items() if name in names}
    loaded = {name: (data.views, data.target) for name, data in sets.items()}
    if not set(LARGE) & set(names):
        return loaded
    posts = fetch_20newsgroups(views=("body", "meaning"))
    rows = np.flatnonzero(np.diff(posts.views["body"].indptr))
    views, target = posts.views[rows], posts.target[rows]
    both = (Views(body=views["body"]), target), (views, target)
    return {n: part for n, part in zip(LARGE, both, strict=True) if n in names} | loaded


def defaults(views, target, n_seeds=5):
    """Print what default settings reach on words and sentence vectors."""
    plan = [(views, target, seed) for seed in range(n_seeds)]
    found = np.array(side_by_side(by_default, plan))
    print(f"Words and vectors, k = 20, default settings, {n_seeds} seeds: entropy ", end="")
    print(f"{found[:, 0].mean():.3f}, NMI {found[:, 1].mean():.3f} (at least .64)")


def by_default(views, target, seed):
    return timed(MixtureClusterer(20, random_state=seed), views, target)


# -- dense tables --------------------------------------------------------------------------------


def dense_tables(n_seeds):
    """Print NMI and objective of Gaussian mixtures on tables that come with scikit-learn."""
    inits, lines = initialise.INITS, []
    for name, load in DENSE.items():
        X, target = load(return_X_y=True)
        for covariance in ("full", "diag", "spherical"):
            plan = [(X, target, covariance, init, s) for init in inits for s in range(n_seeds)]
            found = np.reshape(side_by_side(gaussian, plan), (len(inits), n_seeds, 2)).mean(axis=1)
            best = found[:, 1].argmax()
            cells = [
                f"{nmi:.3f} ({objective:.2f}){' *' if m == best else ''}"
                for m, (nmi, objective) in enumerate(found)
            ]
            lines.append([name, covariance, *cells])
    print(f"Gaussians: NMI, and the objective a row (a star at the largest), {n_seeds} seeds\n")
    table(["", "covariance", *inits], lines)


def gaussian(X, target, covariance, init, seed):
    # Pixels that never change would have no variance.
    reg = 1e-3 if X.shape[1] == 64 else 1e-6
    k = len(np.unique(target))
    family = Gaussian(covariance, reg)
    model = MixtureClusterer(k, family=family, init=init, n_jobs=1, random_state=seed).fit(X)
    return normalized_mutual_info_score(target, model.labels_), model.objective_ / len(X)


if __name__ == "__main__":
    main()
