"""Several views against all columns in one: the figures of Bickel & Scheffer (2004).

The pairs of newsgroup posts (Fig. 3, 5, 6, 7), WebKB pages with the links to them (Fig. 1, 2, 7),
and the six CLUTO sets, words split at random (Fig. 4). Entropy of the clusters in bits (Eq. 1),
mean and standard error over runs that differ in their start, and for the pairs also in the posts
that were drawn, for CLUTO in the split. EM takes counts, the others unit rows of TF-IDF.

--quick makes three runs instead of ten.
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from trials import side_by_side, table

from coem import MixtureClusterer, MultiViewAgglomerative, SphericalKMeans, Views
from coem.analysis import entropy_trace
from coem.datasets import fetch_cluto, fetch_news_pairs, fetch_webkb
from coem.metrics import cluster_entropy

KS = (2, 3, 5, 8, 12, 20)
CUTS = (5, 10, 20, 50, 100, 200)
CLUTO = ("re0", "fbis", "la1", "hitech", "tr11", "wap")
LINKAGES = ("single", "complete", "average")
PATIENCE = 5  # the paper says "a fixed number of iterations"
ROUNDS = (1, 2, 3, 5, 8, 12, 20)
N_CLASSES = 5  # of the pairs
KINDS = ("one view", "two views", "lower in")


class Case(NamedTuple):
    """A data set: its counts, the same as unit rows of TF-IDF, and the classes."""

    counts: Views
    tf_idf: Views
    target: Any


class Method(NamedTuple):
    """A clusterer for a number of clusters and a seed, and the form of the rows that it takes."""

    rows: str
    make: Callable[[int, int], Any]


def table_1(k, seed, init="random", **options):
    """Return the EM of Table 1 with constant priors; with one view it is the ordinary EM."""
    options = {"weights": "uniform", "assign": "average", "tol": 0, "patience": PATIENCE} | options
    return MixtureClusterer(k, init=init, random_state=seed, **options)


def spherical(k, seed, **options):
    return SphericalKMeans(k, patience=PATIENCE, random_state=seed, **options)


EM = Method("counts", table_1)
METHODS = {"EM": EM, "spherical k-means": Method("tf_idf", spherical)}
STARTS = {
    **{
        f"EM, init={init!r}": EM._replace(make=partial(table_1, init=init))
        for init in ("random", "rows", "k-means++", "spherical")
    },
    "EM on TF-IDF": Method("tf_idf", partial(table_1, family="multinomial")),  # it warns
    "EM, 2005": EM._replace(
        make=lambda k, seed: MixtureClusterer(k, init="random", random_state=seed)
    ),
    "spherical k-means": METHODS["spherical k-means"],
    "spherical k-means, init='rows'": Method("tf_idf", partial(spherical, init="rows")),
    "spherical k-means, 10 restarts": Method("tf_idf", partial(spherical, n_init=10)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three runs")
    n_runs = 3 if parser.parse_args().quick else 10
    pairs = side_by_side(load_pairs, [(seed,) for seed in range(n_runs)])
    pages = load_pages()
    print(f"Pairs of posts, {len(pairs[0].target)} rows, by the number of clusters (Fig. 3)\n")
    by_number(pairs, KS)
    starts(pairs)
    print(f"WebKB, {len(pages.target)} pages with a word in both views (Fig. 1, 2)\n")
    by_number([pages] * n_runs, (2, 4, 6, 10, 20))
    random_splits(n_runs)
    print("One tree, pairs of posts (Fig. 7, right)\n")
    trees(pairs)
    print("One tree, WebKB (Fig. 7, left)\n")
    trees([pages])
    for name, cases, k in (("pairs of posts", pairs, 5), ("WebKB", [pages] * n_runs, 6)):
        print(f"Entropy and agreement by round, {name}, {k} clusters (Fig. 5)\n")
        rounds(cases, k)
        print(f"Log likelihood a row (Eq. 17) and entropy, {name}, {k} clusters (Fig. 6)\n")
        continued(cases, k)


# -- data ----------------------------------------------------------------------------------------


def weigh(counts, target):
    """Return a case with the TF-IDF of every view by itself."""
    weighted = {name: TfidfTransformer().fit_transform(X) for name, X in counts.items()}
    return Case(counts, Views(weighted), target)


def load_pairs(seed):
    data = fetch_news_pairs(random_state=seed)
    return weigh(data.views, data.target)


def load_pages():
    """Return the pages with a word of their own and one in a link to them.

    Words of one page stay: what links say of people is their name.
    """
    data = fetch_webkb(min_df=1)
    there = ~data.views.empty.any(axis=1)
    return weigh(data.views[there], data.target[there])


def load_split(data, seed):
    """Return a document set with its words dealt to two views."""
    return weigh(Views.split(data.views["words"], 2, random_state=seed), data.target)


# -- partitions ----------------------------------------------------------------------------------


def by_number(cases, numbers):
    """Print the entropies of both methods for every number of clusters."""
    keys = [(k, method) for k in numbers for method in METHODS.values()]
    found = iter(compare(cases, keys))
    lines = [[k, *(cell for _ in METHODS for cell in cells(next(found)))] for k in numbers]
    table(["k", *(f"{name}, {kind}" for name in METHODS for kind in KINDS)], lines)


def starts(cases):
    """Print what starts and settings do, in bits and in nats."""
    found = compare(cases, [(N_CLASSES, method) for method in STARTS.values()])
    lines = [
        [name, *cells(pair), *cells(pair * np.log(2))[:2]]
        for name, pair in zip(STARTS, found, strict=True)
    ]
    print(f"The same, {N_CLASSES} clusters\n")
    table(["", *KINDS, "one view, nats", "two views, nats"], lines)


def random_splits(n_runs):
    """Print the entropies of the CLUTO sets, their words split at random."""
    lines = []
    for name in CLUTO:
        data = fetch_cluto(name)
        cases = [load_split(data, seed) for seed in range(n_runs)]
        keys = [(len(data.target_names), method) for method in METHODS.values()]
        lines.append([name, keys[0][0], *(c for pair in compare(cases, keys) for c in cells(pair))])
    print("Random splits of the words, as many clusters as classes (Fig. 4)\n")
    table(["", "k", *(f"{name}, {kind}" for name in METHODS for kind in KINDS)], lines)


def compare(cases, keys):
    """Return for every number and method the entropies, of shape (keys, 2, runs)."""
    plan = [(case, method, k, seed) for k, method in keys for seed, case in enumerate(cases)]
    found = np.reshape(side_by_side(both_ways, plan), (len(keys), len(cases), 2))
    return found.transpose(0, 2, 1)


def both_ways(case, method, k, seed):
    """Return the entropies of a run on all columns in one view and of one on two views."""
    views = getattr(case, method.rows)
    fits = (method.make(k, seed).fit(X) for X in (views.concat(), views))
    return [cluster_entropy(case.target, model.labels_) for model in fits]


def cells(pair):
    """Return means and standard errors, and in how many runs two views are better than one."""
    one, two = pair
    return [spread(one), spread(two), f"{(two < one).sum()} of {len(one)}"]


def spread(values, digits=3):
    """Return mean and standard error as text; a single value by itself."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{digits}f} +- {error:.{digits}f}"


# -- trees ---------------------------------------------------------------------------------------


def trees(cases):
    """Print the entropies of cuts of one tree, by linkage."""
    plan = [(case, linkage) for linkage in LINKAGES for case in cases]
    shape = len(LINKAGES), len(cases), len(CUTS), 2
    found = np.reshape(side_by_side(both_trees, plan), shape).transpose(2, 0, 3, 1)
    n_cells = len(KINDS) if len(cases) > 1 else 2  # a tree is no matter of chance
    lines = [
        [k, *(cell for pair in of_k for cell in cells(pair)[:n_cells])]
        for k, of_k in zip(CUTS, found, strict=True)
    ]
    table(["k", *(f"{name}, {kind}" for name in LINKAGES for kind in KINDS[:n_cells])], lines)


def both_trees(case, linkage):
    """Return the entropies of every cut, of one view and of two."""
    fits = [
        MultiViewAgglomerative(linkage=linkage).fit(X) for X in (case.tf_idf.concat(), case.tf_idf)
    ]
    return [[cluster_entropy(case.target, model.cut(k)) for model in fits] for k in CUTS]


# -- the analysis of Section 4.5 -----------------------------------------------------------------


def rounds(cases, k):
    """Print entropy and agreement by round, and how they go together (Fig. 5)."""
    found = side_by_side(trace, [(case, k, seed) for seed, case in enumerate(cases)])
    longest = max(map(len, found))
    # A run that has stopped stays where it is.
    padded = np.array([[*run, *[run[-1]] * (longest - len(run))] for run in found])
    marks = [t for t in ROUNDS if t < longest] + [longest]
    lines = [[t, *(spread(padded[:, t - 1, c]) for c in (0, 1))] for t in marks]
    table(["round", "entropy", "agreement rate"], lines)
    within = [np.corrcoef(np.transpose(run))[0, 1] for run in found]
    print(f"Correlation over the rounds of a run: {spread(within, 2)}\n")


def trace(case, k, seed):
    """Return pairs of entropy and agreement rate, one a round."""
    found = entropy_trace(table_1(k, seed), case.counts, case.target)
    return [(record.entropy, record.agreement_rate) for record in found]


def continued(cases, k):
    """Print likelihood and entropy of two views, continued as one, and of one (Fig. 6)."""
    plan = [(case, k, seed) for seed, case in enumerate(cases)]
    found = np.array(side_by_side(three_models, plan))  # runs, spaces, models, 2
    names = "two views", "continued as one", "one view, random start"
    spaces = "each view with its own distribution", "concatenated"
    for space, models in zip(spaces, found.transpose(1, 2, 3, 0), strict=True):
        lines = [
            [name, spread(a, 1), spread(b)] for name, (a, b) in zip(names, models, strict=True)
        ]
        lines.append(["continued less random start", spread(models[1, 0] - models[2, 0], 1), ""])
        table([space, "log likelihood", "entropy"], lines)


def three_models(case, k, seed):
    """Return (log likelihood a row, entropy) of three models, as a product and concatenated."""
    views, joint = case.counts, {"coupling": "joint", "assign": "joint"}
    two = table_1(k, seed).fit(views)
    own = score(two, views, case.target)
    product = [table_1(k, seed, init, **joint).fit(views) for init in (two, "random")]
    start = two.set_params(assign="joint").predict_proba(views)
    single = [table_1(k, seed, init).fit(views.concat()) for init in (start, "random")]
    # Two vectors of probabilities end to end sum to two; the best scale is the share of words.
    words = np.array([X.sum() for _, X in views.items()])
    scale = words @ np.log(words / words.sum()) / len(views)
    return [
        [own, *(score(model, views, case.target) for model in product)],
        [(own[0] + scale, own[1]), *(score(m, views.concat(), case.target) for m in single)],
    ]


def score(model, X, target):
    return model.score(X), cluster_entropy(target, model.labels_)


if __name__ == "__main__":
    main()
