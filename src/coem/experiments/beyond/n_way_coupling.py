"""Six coupled runs at once: which run should learn from which.

Lin (2006) couples two runs, once, and names more runs and more couplings as further work (Sec. 6).
Here six runs of the aspect model on Medline, k = 25, are coupled by "xy" once and three times, with
50 iterations before and after each coupling. A run learns from the mean of all others, from the
next in a ring, from one partner that changes, or from itself. "none" has as many iterations without
a coupling. KL in nats is the mean of the six runs; three seeds.
"""

from functools import cache
from typing import Any

import numpy as np

from coem import AspectModel, RunCoupling
from coem.datasets import fetch_medline
from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.drawing import charts
from coem.metrics import paired_t_test

NEEDS = ("medline",)
NONE, AMONG = "none", ("all", "ring", "pairs", "self")


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per way to learn and seed."""
    size = {"k": 2, "iterations": 5} if quick else {"k": 25, "iterations": 50}
    return [
        {"among": a, **size, "seed": s} for s in range(2 if quick else 3) for a in (NONE, *AMONG)
    ]


@cache
def words() -> Any:
    """Return the counts of Medline."""
    return fetch_medline().views["words"]


def measure(among: Any, k: int, iterations: int, seed: int) -> list[dict[str, Any]]:
    """Return the mean KL after the iterations that follow one coupling, and three."""
    fits: Any = {"n_runs": 6, "random_state": seed, "dtype": np.float32}
    if among == NONE:
        models = {n: AspectModel(k, max_iter=(n + 1) * iterations, **fits) for n in (1, 3)}
        ends = {n: [r.kl for r in model.fit(words()).runs_] for n, model in models.items()}
    else:
        coupled: Any = {"coupling": RunCoupling("xy", among), "rounds": 3, "max_iter": iterations}
        runs = AspectModel(k, **coupled, **fits).fit(words()).runs_
        ends = {n: [r.kl for r in runs if r.phase == n] for n in (1, 3)}
    return [{"couplings": n, "kl": float(np.mean(kls))} for n, kls in ends.items()]


def judge(results: Results) -> Verdict:
    """Ask whether all others are the best to learn from, and whether three couplings are better."""
    claims = [_lowest(results.where(couplings=n), n) for n in results.unique("couplings")]
    one, three = results.where(among="all").paired("kl", couplings=(1, 3), on=["seed"])
    p = paired_t_test(three, one, alternative="less").p_value
    figures = f"{three.mean():.3f} against {one.mean():.3f} (p = {p:.3f})"
    return Verdict.of([*claims, Claim(f"3 are below 1: {figures}", three.mean() < one.mean())])


def _lowest(results: Results, n: int) -> Claim:
    means = {among: rows.mean("kl").mean for (among,), rows in results.groups("among").items()}
    told = ", ".join(f"{among} {mean:.3f}" for among, mean in means.items())
    pairs = [results.paired("kl", among=("all", a), on=["seed"]) for a in means if a != "all"]
    p = max(paired_t_test(*pair, alternative="less").p_value for pair in pairs)
    text = f"couplings, {n}: learning from all is lowest: {told} (p against each <= {p:.3f})"
    return Claim(text, min(means, key=means.__getitem__) == "all")


def tabulate(results: Results) -> Table:
    """Return the mean KL, one and three couplings side by side."""
    return results.pivot("kl", by=["among"], across="couplings")


def draw(results: Results, figure: Any) -> None:
    """Draw a line per way to learn; "none" has as many iterations as the others."""
    what: Any = {"x": "couplings", "y": "kl", "line": "among", "labels": ("couplings", "KL, nats")}
    charts(figure, results, "k", **what)[0].set_xticks([1, 3])
    figure.set_size_inches(4.5, 3)
