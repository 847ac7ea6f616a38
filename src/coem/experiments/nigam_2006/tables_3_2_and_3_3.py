"""Nigam et al. (2006), Tables 3.2 and 3.3: Reuters, several components for the negative class.

Ten labelled stories of a topic, 40 of the rest, 7,000 unlabelled; raw counts; training sets that do
not overlap. Each model chooses its number of words by its own leave-one-out accuracy (of equal ones
the largest). NB* and EM* have the number of components that is best on the test stories, EM*CV the
one that leave-one-out chooses. Ten sets per topic, or as many as there are.
"""

from typing import Any

import numpy as np

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.nigam_2006._reuters import METHODS, PAPER, chosen, many_sizes, side_by_side
from coem.experiments.nigam_2006._setting import QUICK, REUTERS
from coem.metrics import paired_t_test

NEEDS = ("reuters21578", "cluto")
SETS = {"corn": 5, "crude": 8, "interest": 8, "ship": 5, "wheat": 5}  # else 10
PAIRS = {("NB1", "EM1"): 7, ("NB*", "NB1"): 10, ("EM*", "NB1"): 10, ("EM*", "NB*"): 8}
PAIRS |= {("EM*CV", "NB1"): 6}  # on how many topics of ten the first is above the second


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per training set and topic."""
    if quick:
        return [{"data": QUICK, "topic": "2", "number": i} for i in range(2)]
    sets = [(t, i) for t in PAPER for i in range(SETS.get(t, 10))]
    return [{"data": REUTERS, "topic": t, "number": i} for t, i in sets]


def measure(data: str, topic: str, number: int) -> list[dict[str, Any]]:
    """Return accuracies by leave-one-out and on the test stories, by words and components."""
    return many_sizes(data, topic, number)


def judge(results: Results) -> Verdict:
    """Ask how often one method is better than another, and over all sets, whether by chance."""
    best = chosen(results)
    return Verdict.of([*(_claim(best, *pair, n) for pair, n in PAIRS.items()), _few(best)])


def _claim(best: Results, high: str, low: str, paper: int) -> Claim:
    first, second = (
        [rows.mean("accuracy").mean for rows in best.where(model=m).groups("topic").values()]
        for m in (high, low)
    )
    n, of = sum(a > b for a, b in zip(first, second, strict=True)), len(first)
    test = paired_t_test(*best.paired("accuracy", model=(high, low), on=["topic", "number"]))
    text = f"{high} is above {low} on {n} of {of} topics (the paper: {paper} of 10); over all sets "
    shown = f"by {test.difference:+.1f} ± {test.error:.1f} points (p = {test.p_value:.2g})"
    return Claim(text + shown, n > of / 2 and test.difference > 0 and test.p_value < 0.05)


def _few(best: Results) -> Claim:
    few, right = (float(np.mean(best.where(model=m).values("k"))) for m in ("EM*CV", "EM*"))
    text = f"leave-one-out chooses fewer components than is best: {few:.1f} against {right:.1f}"
    return Claim(f"{text} on average", few < right)


def tabulate(results: Results) -> Table:
    """Return the accuracies of both tables in %, and the median numbers of components."""
    return side_by_side(chosen(results))


def draw(results: Results, figure: Any) -> None:
    """Draw the accuracies of all topics; a cross is that of the paper."""
    figure.set_size_inches(6.4, 2.8)
    ax, best = figure.subplots(), chosen(results)
    topics = best.unique("topic")
    for i, model in enumerate(METHODS):
        at = np.arange(len(topics)) + 0.15 * (i - 2)
        own = [best.where(topic=t, model=model).mean("accuracy").mean for t in topics]
        ax.plot(at, own, "osD^v"[i], color=f"C{i}", label=model)
        ax.plot(at, [PAPER[t][i] if t in PAPER else np.nan for t in topics], "x", color=f"C{i}")
    ax.set_xticks(range(len(topics)), topics)
    ax.set_ylabel("accuracy, % (cross: the paper)")
    ax.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=len(METHODS))
