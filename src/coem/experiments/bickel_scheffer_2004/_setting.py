"""What the experiments of the paper share: its two algorithms, its data, and its comparison."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from sklearn.feature_extraction.text import TfidfTransformer

from coem import MixtureClusterer, SphericalKMeans, Views
from coem.datasets import fetch_cluto, fetch_news_pairs, fetch_webkb
from coem.experiments import Claim, Results, Table, chance
from coem.families import Multinomial
from coem.metrics import PairedTTest, cluster_entropy, paired_t_test

EM, K_MEANS = "EM", "spherical k-means"
ONE, TWO = "one view", "two views"  # all columns side by side, or as they are
PAIRS, PAGES, SMALL = "pairs of posts", "WebKB", "tr11"  # the last one is for quick trials
N_CLASSES = {PAIRS: 5, PAGES: 6, SMALL: 9}
RUNS = 10
PATIENCE = 5  # the paper says "a fixed number of iterations"


class Case(NamedTuple):
    """A data set: its counts, the same as unit rows of TF-IDF, and the classes."""

    counts: Views
    tf_idf: Views
    target: Any


def em(k: int, seed: int, init: Any = "random", **options: Any) -> MixtureClusterer:
    """Return the EM of Table 1 with constant priors; with one view it is ordinary EM."""
    paper: dict[str, Any] = {"family": Multinomial(1.0), "evidence": "fixed", "assign": "average"}
    paper |= {"weights": "uniform", "tol": 0, "patience": PATIENCE}
    return MixtureClusterer(k, init=init, random_state=seed, **paper | options)


def k_means(k: int, seed: int, **options: Any) -> SphericalKMeans:
    """Return the spherical k-means of Sec. 4.3."""
    return SphericalKMeans(k, patience=PATIENCE, random_state=seed, **options)


METHODS: dict[str, Any] = {EM: em, K_MEANS: k_means}


def case(data: str, seed: int) -> Case:
    """Return the pages, pairs of newly drawn posts, or a set of CLUTO with a new split of words."""
    if data == PAGES:
        return _pages()
    return _pairs(seed) if data == PAIRS else _split(data, seed)


@cache
def _pages() -> Case:
    """Return pages with a word in both views. All words stay: links to people have their names."""
    data = fetch_webkb(min_df=1)
    there = ~data.views.empty.any(axis=1)
    return _weighted(data.views[there], data.target[there])


@cache
def _pairs(seed: int) -> Case:
    data = fetch_news_pairs(random_state=seed)
    return _weighted(data.views, data.target)


def _split(name: str, seed: int) -> Case:
    data = _documents(name)
    return _weighted(Views.split(data.views["words"], 2, random_state=seed), data.target)


@cache
def _documents(name: str) -> Any:
    return fetch_cluto(name)


def _weighted(counts: Views, target: Any) -> Case:
    """Return a case with the TF-IDF of every view by itself."""
    rows = {name: TfidfTransformer().fit_transform(X) for name, X in counts.items()}
    return Case(counts, Views(rows), target)


def both(given: Case, method: str, k: int, seed: int) -> list[dict[str, Any]]:
    """Return the entropies of one of the two methods, on one view and on two."""
    views = given.counts if method == EM else given.tf_idf
    return entropies(given.target, views, METHODS[method], k, seed)


def entropies(target: Any, views: Views, make: Any, k: int, seed: int) -> list[dict[str, Any]]:
    """Return the entropy of a run on all columns in one view, and that of one on two views."""
    fits = {ONE: make(k, seed).fit(views.concat()), TWO: make(k, seed).fit(views)}
    return [
        {"views": kind, "entropy": cluster_entropy(target, fit.labels_)}
        for kind, fit in fits.items()
    ]


def each(runs: int, **along: Iterable[Any]) -> list[dict[str, Any]]:
    """Return trials: all values of `along` together, with as many seeds as runs."""
    named = [dict(zip(along, values, strict=True)) for values in product(*along.values())]
    return [{**values, "seed": seed} for values in named for seed in range(runs)]


def on_two_sets(quick: bool, **along: Iterable[Any]) -> list[dict[str, Any]]:
    """Return trials on the pairs of posts and on WebKB."""
    sets, runs = ([SMALL], 2) if quick else ([PAIRS, PAGES], RUNS)
    return each(runs, data=sets, **along)


def gap(results: Results, on: Sequence[str] = ("seed",)) -> PairedTTest:
    """Compare two views with one, run by run, in a two-sided test."""
    return paired_t_test(*results.paired("entropy", views=(TWO, ONE), on=on))


def better(name: str, results: Results) -> Claim:
    """Ask whether two views are better than one."""
    one, two = (results.where(views=kind).mean("entropy") for kind in (ONE, TWO))
    test = gap(results)
    text = f"{name}: two views are below one: {two:.2f} against {one:.2f} bits"
    return Claim(f"{text} ({chance(test.p_value)})", test.difference < 0 and test.p_value < 0.05)


def better_at_all(name: str, results: Results) -> Claim:
    """Ask whether two views are better than one with any number of clusters."""
    tests = [gap(rows) for rows in results.groups("k").values()]
    lower = [test for test in tests if test.difference < 0]
    clear = sum(test.p_value < 0.05 for test in lower)
    one, two = (results.where(views=kind).mean("entropy").mean for kind in (ONE, TWO))
    text = (
        f"{name}: two views are below one at {len(lower)} of {len(tests)} numbers of clusters "
        f"({clear} with p < .05); on average {two:.2f} against {one:.2f} bits"
    )
    every = gap(results, on=["k", "seed"])
    return Claim(text, len(lower) == len(tests) and every.p_value < 0.05)


def compared(results: Results, by: Sequence[str]) -> Table:
    """Return the entropies of one view and of two side by side, and p of the test."""
    table = results.pivot("entropy", by=by, across="views")
    p = [gap(rows).p_value for rows in results.groups(*by).values()]
    rows = [[*row, value] for row, value in zip(table.rows, p, strict=True)]
    return Table([*table.columns, "p"], rows)
