"""Lin (2006), Fig. 2: a coupling in detail, on a table of co-occurrences.

The skills of jobs that the paper counts are not public. Here are the topics of the Reuters stories
that have at least two: how often each pair of 116 topics occurs in a story, and on the diagonal how
often each occurs. 15 components; 100 iterations before the coupling, and 100 after it. "CoEM" is
that of Sec. 3.3, and "CoEM x" changes p(x|h) alone, as Sec. 4.1 writes it. Figure and table show
the first of 25 pairs.
"""

from typing import Any

import numpy as np

from coem import couple
from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.lin_2006._setting import better, came, matrix, members, rows, run, topics

NEEDS = ("reuters21578",)
PAIRS, HALF = 25, 100  # pairs of runs; iterations before and after the coupling


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per pair."""
    return [{"k": 3 if quick else 15, "seed": seed} for seed in range(2 if quick else PAIRS)]


def measure(k: int, seed: int) -> list[dict[str, Any]]:
    """Return KL by iteration, and the topics of every component of the first run."""
    counts, names = topics()
    usual: Any = {"n": HALF, "dtype": np.float64}
    first = [run(counts, k, "random", random_state=2 * seed + i, **usual) for i in (0, 1)]
    both: Any = couple(*first)
    x_alone = [(new[0], new[1], old.y_given_h_) for new, old in zip(both, first, strict=True)]
    begun = {"EMcon": first, "CoEM": both, "CoEM x": x_alone}
    found = {m: [run(counts, k, start, **usual) for start in pair] for m, pair in begun.items()}
    joint = first[1].weights_[:, np.newaxis] * first[1].y_given_h_
    moves = first[0].y_given_h_ @ (joint / joint.sum(axis=0)).T  # p(h2|h1), Sec. 4.1
    return [
        row
        | {"before": [m.runs_[0].kl_before for m in pair], "moves": moves}
        | {"traces": [[r.kl for r in m.history_] for m in pair], "members": members(pair[0], names)}
        for row, pair in zip(rows({"EM": first} | found), [first, *found.values()], strict=True)
    ]


def judge(results: Results) -> Verdict:
    """Ask whether a coupling raises the KL at first, and lowers it in the end."""
    end, after = (results.where(method=m) for m in ("EM", "CoEM"))
    rise = after.values("before").mean() - end.values("kls").mean()
    many = (after.values("moves") > 0.1).sum(axis=2) > 2
    merged = f"{many.mean():.0%} of the components take over a tenth from each of three or more"
    first = Claim(f"right after the coupling, KL is higher by {rise:.3f} nats", rise > 0)
    last = Claim(f"a coupling merges more than two components: {merged}", many.any())
    ends = [better(results, method, "EMcon") for method in ("CoEM", "CoEM x")]
    return Verdict.of([first, *ends, last])


def tabulate(results: Results) -> Table:
    """Return the topics of the components of the first run, with and without a coupling."""
    first = results.where(seed=0)
    alone, coupled = (first.where(method=m).rows[0]["members"] for m in ("EMcon", "CoEM"))
    return Table(["component", "EMcon", "came with CoEM", "left"], came(alone, coupled))


def draw(results: Results, figure: Any) -> None:
    """Draw KL by iteration, and p(h2|h1) of the coupling, as the paper does."""
    figure.set_size_inches(7, 3)
    left, right = figure.subplots(1, 2)
    found = {row["method"]: row for row in results.where(seed=0)}
    for i in (0, 1):
        for method, style in (("EMcon", ":"), ("CoEM", "-")):
            trace = found["EM"]["traces"][i] + found[method]["traces"][i]
            left.plot(trace, style, color=f"C{i}", label=f"{method}, run {i + 1}")
    low = min(map(min, found["CoEM"]["traces"]))
    left.set(xlabel="iteration", ylabel="KL, nats", ylim=(low - 0.01, low + 0.1))
    left.legend()
    matrix(right, found["EM"]["moves"])
    right.set(xlabel="component of run 2", ylabel="component of run 1", title="p(h2|h1)")
