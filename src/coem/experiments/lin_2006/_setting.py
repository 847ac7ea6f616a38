"""What the experiments of the paper share: pairs of runs, what is compared, and its figures."""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np

from coem import AspectModel, couple
from coem.datasets import (
    fetch_as_graph,
    fetch_cranfield,
    fetch_medline,
    fetch_reuters,
    walk_steps,
)
from coem.experiments import Claim, Results
from coem.experiments.drawing import panels
from coem.metrics import paired_t_test
from coem.schedules import Schedule, Steps

ITERATIONS = 50  # before a coupling and after it (Sec. 4.3)
ANNEALED = Steps([0.95, 0.975, 1.0], 33)  # DAEM: 33, 33 and 34 of 100 iterations
SIZES, VIAS = (25, 50, 100), ("xy", "a", "b", "c", "d")
COLLECTIONS = {"Medline": fetch_medline, "Cranfield": fetch_cranfield}


def each(pairs: int, sizes: Iterable[int], **fixed: Any) -> list[dict[str, Any]]:
    """Return trials: as many pairs for every number of components."""
    return [{**fixed, "k": k, "seed": seed} for seed in range(pairs) for k in sizes]


@cache
def words(name: str) -> Any:
    """Return the counts of a collection."""
    return COLLECTIONS[name]().views["words"]


@cache
def traffic() -> tuple[Any, Any]:
    """Return the training and test steps of the walk, the same for all pairs (Sec. 4.4)."""
    train, test = walk_steps(fetch_as_graph().adjacency, random_state=0)
    return train, test


def run(X: Any, k: int, start: Any, n: int = ITERATIONS, **options: Any) -> AspectModel:
    """Return a run of so many iterations."""
    options = {"n_runs": 1, "init": start, "max_iter": n, "dtype": np.float32} | options
    return AspectModel(k, **options).fit(X)


def alone(X: Any, k: int, seed: int) -> dict[str, list[AspectModel]]:
    """Return the two runs of a pair after 50 iterations (EM), and after 100 (EMcon)."""
    first = [run(X, k, "random", random_state=s) for s in (2 * seed, 2 * seed + 1)]
    return {"EM": first, "EMcon": [run(X, k, model) for model in first]}


def annealed(X: Any, k: int, seed: int) -> dict[str, list[AspectModel]]:
    """Return the same starts after 100 iterations of DAEM."""
    usual: Any = {"n": 2 * ITERATIONS, "beta": ANNEALED}
    seeds = 2 * seed, 2 * seed + 1
    return {"DAEM": [run(X, k, "random", random_state=s, **usual) for s in seeds]}


def coupled(
    X: Any, k: int, pair: Sequence[AspectModel], vias: Iterable[Any]
) -> dict[str, list[AspectModel]]:
    """Return what becomes of the two runs if they are coupled, and go on for 50 iterations."""
    one, two = pair
    return {f"CoEM {via}": [run(X, k, s) for s in couple(one, two, via, X)] for via in vias}


def rows(models: dict[str, list[AspectModel]]) -> list[dict[str, Any]]:
    """Return a row per algorithm: the KL of both runs, and their mean, which a test takes."""
    found = {name: [model.kl_ for model in pair] for name, pair in models.items()}
    return [{"method": m, "kl": float(np.mean(kls)), "kls": kls} for m, kls in found.items()]


def text_pair(data: str, k: int, seed: int) -> list[dict[str, Any]]:
    """Return the rows of all algorithms of Fig. 4 and 5."""
    X = words(data)
    models = alone(X, k, seed) | annealed(X, k, seed)
    return rows(models | coupled(X, k, models["EM"], VIAS))


# -- what is compared ------------------------------------------------------------------------------


def better(
    results: Results, ones: str, others: str, *, by: str = "k", value: str = "kl", sign: int = 1
) -> Claim:
    """Return whether the pairs of some algorithms are below those of others, for every `by`.

    Algorithms are separated by commas. With a `sign` of -1, it is whether they are above.
    """
    groups, word = results.groups(by).values(), "below" if sign > 0 else "above"
    methods = [(one, other) for one in ones.split(", ") for other in others.split(", ")]
    pairs = [g.paired(value, method=m, on=["seed"]) for m in methods for g in groups]
    asked = "less" if sign > 0 else "greater"
    tests = [paired_t_test(*pair, alternative=asked) for pair in pairs]
    gains = [-sign * test.difference for test in tests]
    good, clear = sum(g > 0 for g in gains), sum(test.p_value < 0.01 for test in tests)
    ends = gains if len(gains) < 4 else (min(gains), max(gains))
    text = (
        f"{ones} {word} {others}: in {good} of {len(gains)} comparisons ({clear} with p < .01), by "
        f"{(', ' if ends is gains else ' to ').join(f'{gain:.2g}' for gain in ends)}"
    )
    return Claim(text, max(test.p_value for test in tests) < 0.05)


def beaten(results: Results, one: str, others: Sequence[str], value: str = "kls") -> float:
    """Return the share of the runs of an algorithm that are below all runs of the others."""
    best = results.where(method=list(others)).values(value).min()
    return float((results.where(method=one).values(value) < best).mean())


def order(results: Results, **options: Any) -> list[Claim]:
    """Return what the paper says of the order of the algorithms in Fig. 4, 5 and 7."""
    couplings = "CoEM a, CoEM b, CoEM c, CoEM d"
    pairs = [("DAEM", "EMcon"), (couplings, "EMcon"), (couplings, "DAEM")]
    pairs += [("CoEM a", "CoEM b"), ("CoEM c, CoEM d", "CoEM a, CoEM b")]
    return [better(results, *pair, **options) for pair in pairs]


def every_run(results: Results, via: str) -> Claim:
    """Ask whether every run of a coupling ends below all runs without one; not at the least k."""
    sizes = sorted(results.unique("k"))[1:] or results.unique("k")
    shares = [beaten(results.where(k=k), f"CoEM {via}", ("EMcon", "DAEM")) for k in sizes]
    parts = ", ".join(f"{share:.0%} at k = {k}" for k, share in zip(sizes, shares, strict=True))
    return Claim(
        f"every run of CoEM {via} is below all of EMcon and DAEM: {parts}", min(shares) == 1
    )


# -- figures ---------------------------------------------------------------------------------------


def ranked(figure: Any, results: Results, by: str, label: str, value: str = "kls") -> None:
    """Draw all runs of an algorithm in order: dotted EM, dashed DAEM, solid CoEM, as in the paper.

    Runs that were coupled with themselves are dash-dotted.
    """
    styles = {"E": ":", "D": "--", "S": "-.", "C": "-"}  # by how the name of an algorithm begins
    for ax, mine in panels(figure, results, by):
        for number, ((method,), some) in enumerate(mine.groups("method").items()):
            kls = np.sort(some.values(value).ravel())
            style = styles[method[0]]
            places = 100 * (np.arange(len(kls)) + 0.5) / len(kls)
            ax.plot(places, kls, style, color=f"C{number}", label=method)
        ax.set(xlabel="percentile of the runs", ylabel=label)
        ax.spines[["top", "right"]].set_visible(False)
    width, height = figure.get_size_inches()
    figure.set_size_inches(max(width, 4.5), height + 0.5)  # room for the legend
    handles, names = figure.axes[0].get_legend_handles_labels()
    ncols = round(figure.get_figwidth() * 0.65)
    figure.legend(handles, names, loc="outside upper center", ncols=ncols)


def matrix(ax: Any, values: Any) -> None:
    """Draw a square matrix of shares in shades of grey, numbered from 1."""
    end = len(values) + 0.5
    image = ax.imshow(values, "gray_r", extent=(0.5, end, end, 0.5), vmin=0, vmax=1)
    ticks = range(1, len(values) + 1, 2)
    ax.set(xticks=ticks, yticks=ticks)
    ax.figure.colorbar(image, ax=ax)


# -- synthetic data --------------------------------------------------------------------------------

KINDS = ("flat", "random weights", "far apart")


def decomposable(kind: str, n: int, k: int) -> Any:
    """Return a joint distribution that an aspect model gives exactly (Sec. 4.2)."""
    rng = np.random.default_rng(0)
    x, y = (_dirichlet(rng, k, n, 0.003 if kind == "far apart" else 1.0) for _ in range(2))
    weights = rng.random(k) if kind == "random weights" else np.ones(k)
    return x.T @ (y * (weights / weights.sum())[:, np.newaxis])


def noisy(n: int) -> Any:
    """Return a joint distribution from the simplex of all of them."""
    return _dirichlet(np.random.default_rng(0), 1, n * n, 1.0).reshape(n, n)


def starts(n: int, k: int, seed: int) -> list[Any]:
    """Return the flat starts of a pair, from other numbers than those of the data."""
    rng = np.random.default_rng([seed, 1])
    draws = [[_dirichlet(rng, k, n, 1.0) for _ in range(2)] for _ in range(2)]
    return [(np.full(k, 1 / k), x, y) for x, y in draws]


def steps(beta: float, n: int) -> Schedule:
    """Return the schedule of n iterations with three steps of equal length (Sec. 4.2)."""
    return Steps([beta, (1 + beta) / 2, 1.0], n // 3)


def _dirichlet(rng: np.random.Generator, rows: int, columns: int, concentration: float) -> Any:
    """Return rows that are drawn so; a small concentration makes most numbers tiny, never zero."""
    drawn = np.maximum(rng.gamma(concentration, size=(rows, columns)), np.finfo(float).tiny)
    return drawn / drawn.sum(axis=1, keepdims=True)


def timed(
    P: Any, k: int, given: Callable[[], Iterable[Any]], n: int, beta: float | Schedule = 1.0
) -> tuple[list[AspectModel], float]:
    """Return a pair of runs of n iterations, and the seconds that a processor takes for one."""
    began = time.process_time()
    models = [run(P, k, start, n, beta=beta, dtype=np.float64) for start in given()]
    return models, (time.process_time() - began) / len(models)


def scaled(lines: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    """Return rows with the KL times n, the number of values of x: the unit of Table 1."""
    return [{**r, "kl": n * r["kl"], "kls": [n * kl for kl in r["kls"]]} for r in lines]


TABLE_1 = {  # of the paper: percentiles 1, 5 and 10, and seconds
    "EM": (0.099, 0.114, 0.121, 9.47),
    "CoEM": (0.074, 0.088, 0.093, 9.47),
    "Dl.9": (3.11, 3.13, 3.14, 17.20),
    "Ds.9": (3.19, 3.22, 3.22, 14.62),
    "Dl.95": (0.116, 0.132, 0.145, 17.40),
    "Ds.95": (0.091, 0.113, 0.128, 14.60),
}


def costs(results: Results) -> list[Claim]:
    """Return what the paper says of the time that the algorithms of Table 1 take."""
    means = {m: rows.mean("seconds").mean for (m,), rows in results.groups("method").items()}
    ratio = {m: seconds / means["EM"] for m, seconds in means.items()}
    paper = {m: numbers[3] / TABLE_1["EM"][3] for m, numbers in TABLE_1.items()}
    longer = {m: r for m, r in ratio.items() if m[0] == "D"}
    told = ", ".join(f"{m} {r:.2f} (paper {paper[m]:.2f})" for m, r in longer.items())
    own = f"CoEM takes as long as EM: {ratio['CoEM']:.2f} times (paper 1.00)"
    return [
        Claim(own, abs(ratio["CoEM"] - 1) < 0.05),
        Claim(f"DAEM takes much longer than EM, in times: {told}", min(longer.values()) > 1.25),
    ]


# -- co-occurrences --------------------------------------------------------------------------------


@cache
def topics() -> tuple[Any, list[str]]:
    """Return how often two topics are in a Reuters story of several, and the topics (Sec. 4.1)."""
    stories = [story for story in fetch_reuters(views=("title",)).topics if len(story) > 1]
    names = sorted({topic for story in stories for topic in story})
    there = np.array([[name in story for name in names] for story in stories], dtype=float)
    return there.T @ there, names


def members(model: AspectModel, names: Sequence[str]) -> list[list[str]]:
    """Return the names that every component is the most probable one of."""
    best = (model.weights_[:, np.newaxis] * model.x_given_h_).argmax(axis=0)
    return [
        [name for name, h in zip(names, best, strict=True) if h == j]
        for j in range(len(model.weights_))
    ]


def came(before: list[list[str]], after: list[list[str]]) -> list[list[Any]]:
    """Return the members of every component, those that are new, and those that are gone."""
    lines = []
    for number, (old, new) in enumerate(zip(before, after, strict=True), start=1):
        more, less = ([n for n in a if n not in b] for a, b in ((new, old), (old, new)))
        lines.append([number, *(", ".join(part) for part in (old, more, less))])
    return lines
