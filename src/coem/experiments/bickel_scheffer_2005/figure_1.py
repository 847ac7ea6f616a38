"""Bickel & Scheffer (2005), Fig. 1: linked documents, cluster entropy against k.

Co-EM is compared with EM on concatenated and on merged views, in bits (Eq. 23). The paper says that
co-EM is better on all collections with any number of clusters. Its M step has no pseudo-counts
(Eq. 22, alpha = 0); alpha = 1 is shown beside it. 20 runs with alpha = 0, as in the paper, and
10 with alpha = 1; half as many on the large Cora, which takes most of the time.
"""

from typing import Any

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.bickel_scheffer_2005._setting import (
    CO_EM,
    CONCAT,
    LINKED,
    MERGED,
    RUNS,
    each,
    linked,
    mixture,
)
from coem.experiments.drawing import charts
from coem.metrics import cluster_entropy, paired_t_test

BASELINES = CONCAT, MERGED
NEEDS = ("cora", "citeseer", "webkb", "cora_papers")
SIZES, METHODS = (2, 5, 10, 20), (CO_EM, CONCAT, MERGED)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per collection, number of clusters, method and seed."""
    if quick:
        return each({0: 2, 1: 2}, data=["Cora"], k=[2], method=METHODS)
    large, found = [*LINKED][-1], each(RUNS, data=LINKED, k=SIZES, method=METHODS)
    return [t for t in found if t["data"] != large or t["seed"] < RUNS[t["alpha"]] // 2]


def measure(data: str, alpha: float, k: int, method: str, seed: int) -> dict[str, float]:
    """Return the entropy of the clusters."""
    inputs, target = linked(data)
    return {"entropy": cluster_entropy(target, mixture(k, alpha, seed).fit(inputs[method]).labels_)}


def judge(results: Results) -> Verdict:
    """Ask whether co-EM is better at every k, without pseudo-counts and with them."""
    groups = results.groups("alpha", "data").items()
    return Verdict.of(_claim(a, d, mine, o) for (a, d), mine in groups for o in BASELINES)


def _claim(alpha: float, data: str, results: Results, other: str) -> Claim:
    tests = []
    for rows in results.groups("k").values():
        pair = rows.paired("entropy", method=(CO_EM, other), on=["seed"])
        tests.append(paired_t_test(*pair, alternative="less"))
    clear = sum(test.p_value < 0.05 for test in tests)
    better = sum(test.difference < 0 for test in tests)
    own, rest = (results.where(method=method).mean("entropy").mean for method in (CO_EM, other))
    text = (
        f"alpha = {alpha}, {data}: co-EM is below EM on {other} views at {better} of {len(tests)} "
        f"numbers of clusters ({clear} with p < .05); on average {own:.2f} against {rest:.2f} bits"
    )
    pair = results.paired("entropy", method=(CO_EM, other), on=["k", "seed"])
    return Claim(text, better == len(tests) and paired_t_test(*pair).p_value < 0.05)


def tabulate(results: Results) -> Table:
    """Return the entropies, methods side by side."""
    return results.pivot("entropy", by=["data", "alpha", "k"], across="method")


def draw(results: Results, figure: Any) -> None:
    """Draw a panel per collection, as the paper does."""
    by, labels = ("data", "alpha"), ("number of clusters", "entropy")
    columns = len(results.unique("data"))
    charts(figure, results, *by, x="k", y="entropy", line="method", labels=labels, columns=columns)
