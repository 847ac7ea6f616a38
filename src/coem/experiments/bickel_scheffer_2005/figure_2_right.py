"""Bickel & Scheffer (2005), Fig. 2, right: entropy while eta is annealed from 1 to 0.

Six sets of documents of CLUTO, words split at random into two views, as many clusters as classes,
entropy in bits. Eta falls from 1 to 0 in 50 equal steps, and EM goes on until it converges. The
paper sees that annealing works as well as eta = 1, up to slight changes. Its M step has no
pseudo-counts (Eq. 22, alpha = 0; 20 splits); alpha = 1 is shown beside it (10 splits).
"""

from typing import Any

from coem import Views
from coem.analysis import entropy_trace
from coem.experiments import Claim, Results, Table, Verdict, chance
from coem.experiments.bickel_scheffer_2005._setting import mixture, plain, splits
from coem.experiments.drawing import charts
from coem.metrics import PairedTTest, paired_t_test
from coem.schedules import Linear

NEEDS = ("cluto",)
STEPS = 50
SLIGHT = 0.1  # bits


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per set and split."""
    return splits(quick)


def measure(data: str, alpha: float, seed: int) -> list[dict[str, Any]]:
    """Return the entropy at every tenth of eta, and at the end with eta annealed and fixed."""
    words, target, k = plain(data)
    split = Views.split(words, 2, random_state=seed)
    annealed = entropy_trace(mixture(k, alpha, seed, Linear(1.0, 0.0, STEPS)), split, target)
    fixed = entropy_trace(mixture(k, alpha, seed), split, target)
    path = [annealed[t] for t in range(0, STEPS + 1, STEPS // 10)]
    rows = [{"method": "path", "eta": round(r.eta, 6), "entropy": r.entropy} for r in path]
    ends = {"annealed": annealed[-1], "fixed": fixed[-1]}
    return rows + [{"method": m, "eta": r.eta, "entropy": r.entropy} for m, r in ends.items()]


def judge(results: Results) -> Verdict:
    """Ask on each set whether annealing changes the entropy by more than slightly."""
    return Verdict.of(
        Claim(
            f"{data}: annealing changes the entropy by less than {SLIGHT} bits: {_shown(own)}; "
            f"with alpha = 1, {_shown(other)}",
            abs(own.difference) < SLIGHT,
        )
        for (data,), mine in results.groups("data").items()
        for own, other in [[_compared(mine.where(alpha=alpha)) for alpha in (0, 1)]]
    )


def _compared(results: Results) -> PairedTTest:
    ends = results.paired("entropy", method=("annealed", "fixed"), on=["seed"])
    return paired_t_test(*ends)


def _shown(test: PairedTTest) -> str:
    return f"{test.difference:+.3f} ± {test.error:.3f} ({chance(test.p_value)})"


def tabulate(results: Results) -> Table:
    """Return the entropies at the end, annealed and fixed."""
    ends = results.where(method=["annealed", "fixed"])
    return ends.pivot("entropy", by=["data", "alpha"], across="method")


def draw(results: Results, figure: Any) -> None:
    """Draw a line per set from eta = 1 to 0, as the paper does, and the ends with eta = 1."""
    labels = "eta (dotted: the end with 1)", "entropy"
    path, fixed = results.where(method="path"), results.where(method="fixed")
    axes = charts(figure, path, "alpha", x="eta", y="entropy", line="data", labels=labels)
    for ax, mine in zip(axes, fixed.groups("alpha").values(), strict=True):
        for number, rows in enumerate(mine.groups("data").values()):
            ax.axhline(rows.mean("entropy").mean, color=f"C{number}", linestyle=":", linewidth=0.8)
        ax.invert_xaxis()
