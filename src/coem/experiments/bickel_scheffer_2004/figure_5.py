"""Bickel & Scheffer (2004), Fig. 5: entropy and agreement of the views, round by round.

EM with two views on pairs of posts (five clusters) and on WebKB (six), entropy in bits, ten runs
from random starts. A run that has stopped keeps its last values. The paper concludes that the
algorithm maximises agreement, and with it the quality of the clusters.
"""

from typing import Any

import numpy as np

from coem.analysis import entropy_trace
from coem.experiments import Claim, Results, Table, Verdict, chance
from coem.experiments.bickel_scheffer_2004._setting import N_CLASSES, case, em, on_two_sets
from coem.experiments.drawing import charts
from coem.metrics import paired_t_test

NEEDS = ("20newsgroups_19997", "webkb")
ROUNDS = 20
ENTROPY, RATE = "entropy", "agreement rate"


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per set and seed."""
    return on_two_sets(quick)


def measure(data: str, seed: int) -> list[dict[str, Any]]:
    """Return entropy and agreement after every round, and their correlation over all rounds."""
    given = case(data, seed)
    trace = entropy_trace(em(N_CLASSES[data], seed), given.counts, given.target)
    found = {ENTROPY: [r.entropy for r in trace], RATE: [r.agreement_rate for r in trace]}
    together = np.corrcoef(list(found.values()))[0, 1]
    return [
        {"round": t, "what": what, "value": values[min(t, len(trace)) - 1]}
        for what, values in found.items()
        for t in range(1, ROUNDS + 1)
    ] + [{"round": None, "what": "correlation", "value": together}]


def judge(results: Results) -> Verdict:
    """Ask whether agreement rises, and whether entropy falls with it."""
    sets = results.groups("data").items()
    return Verdict.of(claim for (data,), mine in sets for claim in _claims(data, mine))


def _claims(data: str, results: Results) -> list[Claim]:
    rate, run = results.where(what=RATE), results.where(what="correlation")
    rise = paired_t_test(*rate.paired("value", round=(ROUNDS, 1), on=["seed"]))
    fall = paired_t_test(run.values("value"), np.zeros(len(run)))
    first, last = (rate.where(round=t).mean("value").mean for t in (1, ROUNDS))
    risen = f"agreement rises from {first:.2f} to {last:.2f} ({chance(rise.p_value)})"
    fallen = f"correlation in a run {run.mean('value'):.2f} ({chance(fall.p_value)})"
    return [
        Claim(f"{data}: {risen}", rise.difference > 0 and rise.p_value < 0.05),
        Claim(
            f"{data}: entropy falls with it: {fallen}", fall.statistic < 0 and fall.p_value < 0.05
        ),
    ]


def tabulate(results: Results) -> Table:
    """Return entropy and agreement by round, side by side."""
    return results.where(what=[ENTROPY, RATE]).pivot("value", by=["data", "round"], across="what")


def draw(results: Results, figure: Any) -> None:
    """Draw both along the rounds, a line per set."""
    shown, labels = results.where(what=[ENTROPY, RATE]), ("round", "")
    charts(figure, shown, "what", x="round", y="value", line="data", labels=labels)
