"""Bickel & Scheffer (2005), Fig. 1: linked documents, cluster entropy against k.

Co-EM is compared with EM on concatenated and on merged views; 20 runs, in bits (Eq. 23). The paper
says that co-EM is better on all collections with any number of clusters.
"""

from typing import Any

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.bickel_scheffer_2005._setting import (
    CO_EM,
    CONCAT,
    LINKED,
    MERGED,
    linked,
    mixture,
)
from coem.experiments.drawing import lines, panels
from coem.metrics import cluster_entropy, paired_t_test

NEEDS = ("cora", "citeseer", "webkb")
SIZES = (2, 4, 6, 8, 12, 16, 20)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per collection, number of clusters, method and seed."""
    sets, sizes, seeds = (("Cora",), (2, 7), range(2)) if quick else (LINKED, SIZES, range(20))
    return [
        {"data": data, "k": k, "method": method, "seed": seed}
        for data in sets
        for k in sizes
        for method in (CO_EM, CONCAT, MERGED)
        for seed in seeds
    ]


def measure(data: str, k: int, method: str, seed: int) -> dict[str, float]:
    """Return the entropy of the clusters."""
    inputs, target = linked(data)
    return {"entropy": cluster_entropy(target, mixture(k, seed).fit(inputs[method]).labels_)}


def judge(results: Results) -> Verdict:
    """Ask whether co-EM is better at every k, and how often significantly so."""
    return Verdict.of(
        _claim(data, mine, other)
        for (data,), mine in results.groups("data").items()
        for other in (CONCAT, MERGED)
    )


def _claim(data: str, results: Results, other: str) -> Claim:
    tests = []
    for rows in results.groups("k").values():
        pair = rows.paired("entropy", method=(CO_EM, other), on=["seed"])
        tests.append(paired_t_test(*pair, alternative="less"))
    better = [test.difference < 0 for test in tests]
    clear = sum(test.p_value < 0.01 for test in tests)
    own, rest = (results.where(method=method).mean("entropy") for method in (CO_EM, other))
    text = (
        f"{data}: co-EM is below EM on {other} views at {sum(better)} of {len(tests)} numbers of "
        f"clusters ({clear} significantly, p < .01); mean {own.mean:.3f} against {rest.mean:.3f}"
    )
    return Claim(text, all(better))


def tabulate(results: Results) -> Table:
    """Return the entropies, methods side by side."""
    return results.pivot("entropy", by=["data", "k"], across="method")


def draw(results: Results, figure: Any) -> None:
    """Draw a panel per collection, as the paper does."""
    axes = panels(figure, results, "data", xlabel="number of clusters", ylabel="entropy")
    for _, ax, mine in axes:
        lines(ax, mine, x="k", y="entropy", line="method")
        ax.legend()
