"""Bickel & Scheffer (2005), Fig. 2, centre: cluster entropy against a fixed eta.

Six sets of documents of CLUTO, words split at random into two views, as many clusters as classes,
entropy in bits. The paper sees that eta = 1 is the best setting. Its M step has no pseudo-counts
(Eq. 22, alpha = 0); alpha = 1 is shown beside it. 20 splits with alpha = 0, and 10 with alpha = 1.
"""

from typing import Any

from coem import Views
from coem.experiments import Claim, Results, Table, Verdict, chance
from coem.experiments.bickel_scheffer_2005._setting import mixture, plain, splits
from coem.experiments.drawing import charts
from coem.metrics import cluster_entropy, paired_t_test

NEEDS = ("cluto",)
ETAS = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per set, eta and split."""
    return splits(quick, eta=ETAS)


def measure(data: str, alpha: float, eta: float, seed: int) -> dict[str, float]:
    """Return the entropy of the clusters of a split."""
    words, target, k = plain(data)
    split = Views.split(words, 2, random_state=seed)
    return {"entropy": cluster_entropy(target, mixture(k, alpha, seed, eta).fit(split).labels_)}


def judge(results: Results) -> Verdict:
    """Ask on each set whether another eta is better than 1, and whether by more than chance."""
    return Verdict.of(
        Claim(f"{data}: eta = 1 is best: {text}; with alpha = 1, {other}", holds)
        for (data,), mine in results.groups("data").items()
        for (holds, text), (_, other) in [[_best(mine.where(alpha=alpha)) for alpha in (0, 1)]]
    )


def _best(results: Results) -> tuple[bool, str]:
    """Return whether eta = 1 is best, and the figures."""
    means = {eta: rows.mean("entropy") for (eta,), rows in results.groups("eta").items()}
    best = min(means, key=lambda eta: means[eta].mean)
    if best == 1:
        return True, f"1 has {means[1]:.2f}"
    p = paired_t_test(*results.paired("entropy", eta=(best, 1), on=["seed"])).p_value
    return False, f"1 has {means[1]:.2f}, {best:g} has {means[best]:.2f} ({chance(p)})"


def tabulate(results: Results) -> Table:
    """Return the entropies, values of eta side by side."""
    return results.pivot("entropy", by=["data", "alpha"], across="eta")


def draw(results: Results, figure: Any) -> None:
    """Draw a line per set, as the paper does."""
    labels = "eta, fixed", "entropy"
    charts(figure, results, "alpha", x="eta", y="entropy", line="data", labels=labels)
