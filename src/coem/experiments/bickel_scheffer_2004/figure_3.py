"""Bickel & Scheffer (2004), Fig. 3: one view against two on pairs of posts.

Two posts of two newsgroups that have nothing in common but their class, EM and spherical k-means,
entropy in bits (Eq. 1), by the number of clusters. Ten runs, each with newly drawn posts. The paper
says that two views gain even more than on WebKB; the two are compared with as many clusters as
classes.
"""

from typing import Any

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.bickel_scheffer_2004._setting import (
    METHODS,
    N_CLASSES,
    PAGES,
    PAIRS,
    RUNS,
    SMALL,
    better_at_all,
    both,
    case,
    compared,
    each,
    gap,
)
from coem.experiments.drawing import charts

NEEDS = ("20newsgroups_19997", "webkb")
SIZES = (2, 3, 5, 8, 12, 20)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of clusters, method and seed."""
    if quick:
        return each(2, data=[SMALL], k=[2, 3], method=METHODS)
    pages = each(RUNS, data=[PAGES], k=[N_CLASSES[PAGES]], method=METHODS)
    return each(RUNS, data=[PAIRS], k=SIZES, method=METHODS) + pages


def measure(data: str, k: int, method: str, seed: int) -> list[dict[str, Any]]:
    """Return the entropy with one view and with two."""
    return both(case(data, seed), method, k, seed)


def judge(results: Results) -> Verdict:
    """Ask of each method whether two views are better, and whether more so than on WebKB."""
    methods = results.groups("method").items()
    better = [better_at_all(name, _pairs(mine)) for (name,), mine in methods]
    return Verdict.of(better + [_more(name, mine) for (name,), mine in methods])


def _pairs(results: Results) -> Results:
    return results.where(data=[data for data in results.unique("data") if data != PAGES])


def _more(method: str, results: Results) -> Claim:
    """Compare the gains with as many clusters as classes; two standard errors must be between."""
    sets = results.groups("data", "k").items()
    gains = {data: gap(rows) for (data, k), rows in sets if k == N_CLASSES[data]}
    shown = ", ".join(f"{-g.difference:.2f} ± {g.error:.2f} on {d}" for d, g in gains.items())
    holds = len(gains) == 2 and (
        gains[PAGES].difference - gains[PAIRS].difference
        > 2 * (gains[PAGES].error ** 2 + gains[PAIRS].error ** 2) ** 0.5
    )
    return Claim(f"{method}: two views gain more bits than on WebKB: {shown or 0}", holds)


def tabulate(results: Results) -> Table:
    """Return the entropies, numbers of views side by side."""
    return compared(results, by=["data", "method", "k"])


def draw(results: Results, figure: Any) -> None:
    """Draw a panel per method, as the paper does."""
    labels = "number of clusters", "entropy"
    charts(figure, _pairs(results), "method", x="k", y="entropy", line="views", labels=labels)
