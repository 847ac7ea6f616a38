"""Bickel & Scheffer (2004), Fig. 4: documents without natural views, words split at random.

Six sets of CLUTO, as many clusters as classes, EM and spherical k-means, entropy in bits (Eq. 1).
Ten runs, each with its own split. The paper finds two views significantly better in ten of twelve
cases; it does not name its test. This one is a two-sided paired t-test at the level of 5 %.
"""

from typing import Any

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.bickel_scheffer_2004._setting import (
    METHODS,
    RUNS,
    SMALL,
    both,
    case,
    compared,
    each,
    gap,
)
from coem.experiments.drawing import bars, charts, slant

NEEDS = ("cluto",)
SETS = {"re0": 13, "fbis": 17, "la1": 6, "hitech": 6, "tr11": 9, "wap": 20}  # and their classes
PAPER = 10  # significant differences of twelve


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per set, method and split."""
    if quick:
        return each(2, data=[SMALL], method=METHODS)
    return each(RUNS, data=SETS, method=METHODS)


def measure(data: str, method: str, seed: int) -> list[dict[str, Any]]:
    """Return the entropy with one view and with two."""
    return both(case(data, seed), method, SETS[data], seed)


def judge(results: Results) -> Verdict:
    """Count the cases in which two views are better, and significantly better."""
    tests = {key: gap(rows) for key, rows in results.groups("data", "method").items()}
    lower = [key for key, t in tests.items() if t.difference < 0]
    clear = [key for key in lower if tests[key].p_value < 0.05]
    worse = [" with ".join(k) for k, t in tests.items() if k not in lower and t.p_value < 0.05]
    named = "; ".join(" with ".join(key) for key in clear)
    n = len(tests)
    return Verdict.of(
        [
            Claim(
                f"two views are lower on average in most cases: {len(lower)} of {n}",
                2 * len(lower) > n,
            ),
            Claim(f"in no case are two views significantly worse: {len(worse)} of {n}", not worse),
            Claim(
                f"in {PAPER} of 12 cases they are significantly better (p < .05): {len(clear)} "
                f"of {n} ({named})",
                len(clear) * 12 >= PAPER * n,
            ),
        ]
    )


def tabulate(results: Results) -> Table:
    """Return the entropies, numbers of views side by side."""
    return compared(results, by=["data", "method"])


def draw(results: Results, figure: Any) -> None:
    """Draw a panel per method, two columns per set."""
    how: dict[str, Any] = {"x": "data", "y": "entropy", "line": "views", "marks": bars}
    for ax in charts(figure, results, "method", labels=("", "entropy"), **how):
        slant(ax)
