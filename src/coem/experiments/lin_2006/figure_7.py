"""Lin (2006), Fig. 7: likelihood of test steps of traffic between autonomous systems.

Single steps of a random walk on a graph of autonomous systems: 100,000 to train, with one
pseudo-count for every edge, and 20,000 to test. The algorithms are those of Fig. 4. The graph of
the paper was not found; this one is oregon2_010526. Values are nats per test step, at k = 25, 50
and 100. There are 25 pairs, as in the paper.
"""

from typing import Any

import numpy as np

from coem.experiments import Results, Table, Verdict
from coem.experiments.lin_2006._setting import (
    SIZES,
    alone,
    annealed,
    coupled,
    each,
    order,
    ranked,
    traffic,
)

NEEDS = ("as_graphs",)
PAIRS = 25


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of components and pair."""
    return each(2, [2]) if quick else each(PAIRS, SIZES)


def measure(k: int, seed: int) -> list[dict[str, Any]]:
    """Return the likelihoods of both runs of a pair, for every algorithm."""
    train, test = traffic()
    models = alone(train, k, seed) | annealed(train, k, seed)
    models |= coupled(train, k, models["EM"], "abcd")
    found = {name: [model.score(test) for model in pair] for name, pair in models.items()}
    kls = {name: [model.kl_ for model in pair] for name, pair in models.items()}
    return [
        {"method": m, "score": float(np.mean(s)), "scores": s, "kl": float(np.mean(kls[m]))}
        for m, s in found.items()
    ]


def judge(results: Results) -> Verdict:
    """Ask whether the order of the algorithms is that of the paper."""
    return Verdict.of(order(results, value="score", sign=-1))


def tabulate(results: Results) -> Table:
    """Return the mean log likelihood of a test step, numbers of components side by side."""
    return results.pivot("score", by=["method"], across="k")


def draw(results: Results, figure: Any) -> None:
    """Draw all runs in order, a panel per number of components, as the paper does."""
    ranked(figure, results, "k", "log likelihood of a step", "scores")
