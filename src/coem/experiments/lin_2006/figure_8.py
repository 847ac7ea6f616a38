"""Lin (2006), Fig. 8: final KL divergences of the traffic model.

Hubs with traffic between them, and the same shares of nodes at an entrance and an exit (Sec. 5).
The data are those of Fig. 7. EMcon has 100 iterations, and CoEM 50 before and 50 after a coupling
through the nodes; EM is where both were after 50. There are 25 pairs, as in the paper, which
does not say with how many hubs; here k = 25, 50 and 100.
"""

from typing import Any

import numpy as np

from coem import TrafficModel
from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.lin_2006._setting import (
    ITERATIONS,
    SIZES,
    beaten,
    better,
    each,
    ranked,
    traffic,
)

NEEDS = ("as_graphs",)
PAIRS = 25


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of hubs and pair."""
    return each(2, [2]) if quick else each(PAIRS, SIZES)


def measure(k: int, seed: int) -> list[dict[str, Any]]:
    """Return the KL of both runs of a pair, with and without a coupling."""
    train, _ = traffic()
    model = TrafficModel(k, n_runs=2, coupling="x", max_iter=ITERATIONS, random_state=seed)
    phases = model.fit(train).runs_
    plain = TrafficModel(k, n_runs=2, max_iter=2 * ITERATIONS, random_state=seed).fit(train)
    found = {
        "EM": [run.kl for run in phases if run.phase == 0],
        "EMcon": [run.kl for run in plain.runs_],
        "CoEM": [run.kl for run in phases if run.phase == 1],
    }
    return [{"method": m, "kl": float(np.mean(kls)), "kls": kls} for m, kls in found.items()]


def judge(results: Results) -> Verdict:
    """Ask whether coupled runs end below those that are not."""
    shares = [beaten(mine, "CoEM", ["EMcon"]) for mine in results.groups("k").values()]
    holds = better(results, "CoEM", "EMcon")
    share = ", ".join(f"{share:.0%}" for share in shares)
    return Verdict.of([Claim(f"{holds.text}; {share} of its runs are below all", holds.holds)])


def tabulate(results: Results) -> Table:
    """Return the mean KL, numbers of hubs side by side."""
    return results.pivot("kl", by=["method"], across="k")


def draw(results: Results, figure: Any) -> None:
    """Draw all runs in order, a panel per number of hubs, as the paper does."""
    ranked(figure, results, "k", "KL, nats")
