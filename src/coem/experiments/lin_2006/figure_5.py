"""Lin (2006), Fig. 5: final KL divergences on Cranfield.

The algorithms and settings are those of Fig. 4.
Comparisons are those of k = 25, 50 and 100, with a paired t-test over pairs.
"""

from typing import Any

from coem.experiments import Results, Table, Verdict
from coem.experiments.lin_2006._setting import SIZES, each, every_run, order, ranked, text_pair

NEEDS = ("cranfield",)
PAIRS = 25


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of components and pair."""
    return each(2, [3], data="Cranfield") if quick else each(PAIRS, SIZES, data="Cranfield")


def measure(data: str, k: int, seed: int) -> list[dict[str, Any]]:
    """Return the KL of both runs of a pair, for every algorithm."""
    return text_pair(data, k, seed)


def judge(results: Results) -> Verdict:
    """Ask whether the order of the algorithms is that of the paper."""
    return Verdict.of([*order(results), *(every_run(results, via) for via in "cd")])


def tabulate(results: Results) -> Table:
    """Return the mean KL, numbers of components side by side."""
    return results.pivot("kl", by=["method"], across="k")


def draw(results: Results, figure: Any) -> None:
    """Draw all runs in order, a panel per number of components, as the paper does."""
    ranked(figure, results, "k", "KL, nats")
