"""Lin (2006), Fig. 3 (b): counts without structure.

A joint distribution of 200 x 200 pairs, drawn from all of them; 25 components. EM and DAEM (beta
.95, .975, 1) have 600 iterations. "cont" means 600 more of plain EM, and "reheat" 600 more of DAEM
from .95 again. CoEM and CoDAEM are coupled before they go on for 600 of EM. KL is in nats times
200, as in Table 1. The paper has 200 pairs; here are 25.
"""

from typing import Any

from coem import couple
from coem.experiments import Results, Table, Verdict
from coem.experiments.lin_2006._setting import (
    better,
    noisy,
    ranked,
    rows,
    scaled,
    starts,
    steps,
    timed,
)

NEEDS = ()
PAIRS = 25


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per pair."""
    size = {"n": 20, "k": 3, "iterations": 30} if quick else {"n": 200, "k": 25, "iterations": 600}
    return [{**size, "seed": seed} for seed in range(2 if quick else PAIRS)]


def measure(n: int, k: int, iterations: int, seed: int) -> list[dict[str, Any]]:
    """Return the KL of both runs of a pair, for every algorithm."""
    P, drawn, beta = noisy(n), starts(n, k, seed), steps(0.95, iterations)

    def runs(given: Any, *beta: Any) -> Any:
        return timed(P, k, lambda: given, iterations, *beta)[0]

    plain, cool = runs(drawn), runs(drawn, beta)
    found = {"EM": plain, "DAEM": cool, "EMcont": runs(plain), "DAEMcont": runs(cool)}
    found |= {"DAEMreheat": runs(cool, beta), "CoEM": runs(couple(*plain))}
    return scaled(rows(found | {"CoDAEM": runs(couple(*cool))}), n)


def judge(results: Results) -> Verdict:
    """Ask whether the order is that of the paper."""
    order = [("CoEM", "EMcont"), ("DAEMcont", "CoEM"), ("CoDAEM", "DAEMcont")]
    return Verdict.of(better(results, *pair) for pair in [*order, ("DAEMcont", "DAEMreheat")])


def tabulate(results: Results) -> Table:
    """Return the mean KL of every algorithm."""
    return results.summary("kl", by=["method"])


def draw(results: Results, figure: Any) -> None:
    """Draw all runs in order, as the paper does."""
    ranked(figure, results, "k", "KL x 200")
