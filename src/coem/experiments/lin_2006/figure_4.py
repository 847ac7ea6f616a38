"""Lin (2006), Fig. 4: final KL divergences on Medline.

Pairs of runs from random starts. EM has 50 iterations, EMcon 100, DAEM 100 with beta .95, .975 and
1, and CoEM 50 before and 50 after a coupling of the pair: "a" through the words, "b" through the
documents, "c" and "d" through both, "xy" as in Sec. 3.3. As in the paper, there are 25
pairs. Comparisons are those of k = 25, 50 and 100, with a paired t-test over pairs.
"""

from typing import Any

from coem.experiments import Results, Table, Verdict
from coem.experiments.lin_2006._setting import SIZES, each, every_run, order, ranked, text_pair

NEEDS = ("medline",)
PAIRS = 25


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of components and pair."""
    return each(2, [3], data="Medline") if quick else each(PAIRS, SIZES, data="Medline")


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
