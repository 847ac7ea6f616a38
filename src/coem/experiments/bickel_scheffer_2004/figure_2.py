"""Bickel & Scheffer (2004), Fig. 2: one view against two on WebKB, by the number of clusters.

Text of pages and of the links to them, EM and spherical k-means, entropy in bits (Eq. 1), ten runs
from random starts.
"""

from typing import Any

from coem.experiments import Results, Table, Verdict
from coem.experiments.bickel_scheffer_2004._setting import (
    METHODS,
    PAGES,
    RUNS,
    SMALL,
    better_at_all,
    both,
    case,
    compared,
    each,
)
from coem.experiments.drawing import charts

NEEDS = ("webkb",)
SIZES = (2, 4, 6, 10, 20)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of clusters, method and seed."""
    if quick:
        return each(2, data=[SMALL], k=[2, 3], method=METHODS)
    return each(RUNS, data=[PAGES], k=SIZES, method=METHODS)


def measure(data: str, k: int, method: str, seed: int) -> list[dict[str, Any]]:
    """Return the entropy with one view and with two."""
    return both(case(data, seed), method, k, seed)


def judge(results: Results) -> Verdict:
    """Ask of each method whether two views are better at every number of clusters."""
    return Verdict.of(
        better_at_all(name, mine) for (name,), mine in results.groups("method").items()
    )


def tabulate(results: Results) -> Table:
    """Return the entropies, numbers of views side by side."""
    return compared(results, by=["method", "k"])


def draw(results: Results, figure: Any) -> None:
    """Draw a panel per method, as the paper does."""
    labels = "number of clusters", "entropy"
    charts(figure, results, "method", x="k", y="entropy", line="views", labels=labels)
