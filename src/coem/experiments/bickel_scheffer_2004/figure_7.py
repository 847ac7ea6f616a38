"""Bickel & Scheffer (2004), Fig. 7: one tree of one view and of two views.

Agglomerative clustering by single, complete and average linkage of cosines, entropy in bits (Eq. 1)
of cuts into k clusters. WebKB has one tree each, and pairs of posts have one for each of ten draws.
The paper sees that two views do not achieve lower entropy.
"""

from typing import Any

from coem import MultiViewAgglomerative
from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.bickel_scheffer_2004._setting import (
    ONE,
    PAGES,
    PAIRS,
    RUNS,
    SMALL,
    TWO,
    case,
    each,
)
from coem.experiments.drawing import charts
from coem.metrics import cluster_entropy

NEEDS = ("20newsgroups_19997", "webkb")
LINKAGES = ("single", "complete", "average")
CUTS = (5, 10, 20, 50, 100, 200)
SLIGHT = 0.01  # bits


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per set, linkage and draw."""
    if quick:
        return each(2, data=[SMALL], linkage=LINKAGES)
    return each(1, data=[PAGES], linkage=LINKAGES) + each(RUNS, data=[PAIRS], linkage=LINKAGES)


def measure(data: str, linkage: str, seed: int) -> list[dict[str, Any]]:
    """Return the entropies of all cuts of the two trees."""
    given = case(data, seed)
    inputs = {ONE: given.tf_idf.concat(), TWO: given.tf_idf}
    trees = {kind: MultiViewAgglomerative(linkage=linkage).fit(X) for kind, X in inputs.items()}
    return [
        {"k": k, "views": kind, "entropy": cluster_entropy(given.target, tree.cut(k))}
        for kind, tree in trees.items()
        for k in CUTS
    ]


def judge(results: Results) -> Verdict:
    """Ask of each linkage whether two views are lower at most cuts, and where one is lowest."""
    claims, leads = [], {}
    for (data, linkage), mine in results.groups("data", "linkage").items():
        one, two = (mine.where(views=kind).groups("k") for kind in (ONE, TWO))
        gaps = [two[k].mean("entropy").mean - one[k].mean("entropy").mean for k in one]
        lower, leads[data, linkage] = sum(gap < -SLIGHT for gap in gaps), max(gaps)
        claims.append(
            Claim(
                f"{data}, {linkage} linkage: two views are no better at most cuts, lower "
                f"by {SLIGHT} bits at {lower} of {len(gaps)} ({min(gaps):.2f} to {max(gaps):.2f})",
                2 * lower < len(gaps),
            )
        )
    most = max(leads, key=leads.__getitem__)
    text = f"one view leads most on WebKB with average linkage: by {leads[most]:.2f} bits on "
    return Verdict.of([*claims, Claim(text + " with ".join(most), most == (PAGES, "average"))])


def tabulate(results: Results) -> Table:
    """Return the entropies, numbers of views side by side."""
    return results.pivot("entropy", by=["data", "linkage", "k"], across="views")


def draw(results: Results, figure: Any) -> None:
    """Draw a panel per set and linkage."""
    by, labels = ("data", "linkage"), ("number of clusters", "entropy")
    for ax in charts(figure, results, *by, x="k", y="entropy", line="views", labels=labels):
        ax.set(xscale="log", xticks=CUTS, xticklabels=CUTS)
        ax.minorticks_off()
