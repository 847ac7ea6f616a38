"""Bickel & Scheffer (2004), Fig. 1: one view against two on WebKB, six clusters.

Text of pages and of the links to them, EM and spherical k-means, entropy in bits (Eq. 1), ten runs
from random starts. The paper notices "a tremendous improvement of cluster quality".
"""

from typing import Any

from coem.experiments import Results, Table, Verdict
from coem.experiments.bickel_scheffer_2004._setting import (
    METHODS,
    N_CLASSES,
    PAGES,
    RUNS,
    SMALL,
    better,
    both,
    case,
    compared,
    each,
)
from coem.experiments.drawing import bars, charts

NEEDS = ("webkb",)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per method and seed."""
    data = SMALL if quick else PAGES
    return each(2 if quick else RUNS, data=[data], k=[N_CLASSES[data]], method=METHODS)


def measure(data: str, k: int, method: str, seed: int) -> list[dict[str, Any]]:
    """Return the entropy with one view and with two."""
    return both(case(data, seed), method, k, seed)


def judge(results: Results) -> Verdict:
    """Ask of each method whether two views are better."""
    return Verdict.of(better(name, mine) for (name,), mine in results.groups("method").items())


def tabulate(results: Results) -> Table:
    """Return the entropies, numbers of views side by side."""
    return compared(results, by=["method", "k"])


def draw(results: Results, figure: Any) -> None:
    """Draw two columns per method."""
    charts(
        figure, results, x="method", y="entropy", line="views", labels=("", "entropy"), marks=bars
    )
