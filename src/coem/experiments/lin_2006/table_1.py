"""Lin (2006), Table 1 and Fig. 3 (a): counts that an aspect model gives exactly.

200 x 200 pairs from 25 components. EM has 600 iterations, CoEM 300 before and 300 after a coupling,
DAEM 600 with beta rising linearly (Dl) or in three steps (Ds) from .9 or .95. KL is in nats times
200, as the paper seems to have it. In flat data p(x|h) and p(y|h) are flat Dirichlet and p(h) is
uniform. Seconds are of a processor for a run. The paper has 200 pairs; here are 25, 5 and 5.
"""

from typing import Any

import numpy as np

from coem import couple
from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.lin_2006._setting import (
    KINDS,
    TABLE_1,
    better,
    costs,
    decomposable,
    ranked,
    rows,
    scaled,
    starts,
    steps,
    timed,
)
from coem.schedules import Linear

NEEDS = ()
PAIRS = 25, 5, 5


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per kind of data and pair."""
    size = {"n": 20, "k": 3, "iterations": 30} if quick else {"n": 200, "k": 25, "iterations": 300}
    pairs = zip(KINDS, (2, 2, 2) if quick else PAIRS, strict=True)
    return [{"data": data, **size, "seed": seed} for data, n in pairs for seed in range(n)]


def measure(data: str, n: int, k: int, iterations: int, seed: int) -> list[dict[str, Any]]:
    """Return KL and seconds of both runs of a pair, for every algorithm."""
    P, whole, drawn = decomposable(data, n, k), 2 * iterations, starts(n, k, seed)
    first, before = timed(P, k, lambda: drawn, iterations)
    ways = {"EM": lambda: first, "CoEM": lambda: couple(*first)}
    found = {name: timed(P, k, way, iterations) for name, way in ways.items()}
    for name, beta in ((".9", 0.9), (".95", 0.95)):
        found[f"Dl{name}"] = timed(P, k, lambda: drawn, whole, Linear(beta, 1.0, whole - 1))
        found[f"Ds{name}"] = timed(P, k, lambda: drawn, whole, steps(beta, whole))
    seconds = {name: s + before * (name in ways) for name, (_, s) in found.items()}
    kls = scaled(rows({name: models for name, (models, _) in found.items()}), n)
    return [row | {"seconds": seconds[row["method"]]} for row in kls]


def judge(results: Results) -> Verdict:
    """Ask whether CoEM is first, and what the algorithms cost."""
    flat = results.where(data="flat")
    low = {method: np.percentile(flat.where(method=method).values("kls"), 10) for method in TABLE_1}
    told = ", ".join(f"{method} {kl:.3f}" for method, kl in low.items())
    first = Claim(f"CoEM has the lowest percentile 10: {told}", min(low.values()) == low["CoEM"])
    return Verdict.of([first, better(results, "CoEM", "EM", by="data"), *costs(flat)])


def tabulate(results: Results) -> Table:
    """Return percentiles and seconds beside those of the paper, and medians of the other data."""
    heads = [h for name in ("1 %", "5 %", "10 %", "seconds") for h in (name, f"{name} (paper)")]
    lines = []
    for method, paper in TABLE_1.items():
        flat, *_ = every = [results.where(data=data, method=method) for data in KINDS]
        own = [*np.percentile(flat.values("kls"), (1, 5, 10)), flat.mean("seconds").mean]
        cells = [float(v) for pair in zip(own, paper, strict=True) for v in pair]
        lines.append([method, *cells, *(float(np.median(r.values("kls"))) for r in every)])
    return Table(["method", *heads, *(f"50 %, {data}" for data in KINDS)], lines)


def draw(results: Results, figure: Any) -> None:
    """Draw all runs in order, without those that begin at .9 and do not fit into the panel."""
    shown = [method for method in TABLE_1 if not method.endswith(".9")]
    ranked(figure, results.where(method=shown), "data", "KL x 200")
