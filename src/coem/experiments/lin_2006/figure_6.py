"""Lin (2006), Fig. 6: runs that are coupled with themselves, on Cranfield.

SCoEM is CoEM in which each run is coupled with itself: a split and merge within one run, through
the documents (b) or through both (d). All have 50 iterations before and 50 after the coupling.
There are 25 pairs, as in the paper, which does not say with how many components.
Comparisons are those of each k, with a paired t-test over pairs.
"""

from typing import Any, cast

from coem import couple
from coem.experiments import Results, Table, Verdict
from coem.experiments.lin_2006._setting import (
    SIZES,
    alone,
    better,
    coupled,
    each,
    ranked,
    rows,
    run,
    words,
)

NEEDS = ("cranfield",)
PAIRS = 25


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of components and pair."""
    return each(2, [3]) if quick else each(PAIRS, SIZES)


def measure(k: int, seed: int) -> list[dict[str, Any]]:
    """Return the KL of both runs of a pair, coupled with each other and with themselves."""
    X = words("Cranfield")
    models = alone(X, k, seed)
    first = models["EM"]
    for via in "bd":
        starts = [couple(model, model, cast(Any, via), X)[0] for model in first]
        models[f"SCoEM {via}"] = [run(X, k, start) for start in starts]
    return rows(models | coupled(X, k, first, "ac"))


def judge(results: Results) -> Verdict:
    """Ask whether SCoEM gains, and whether two runs gain more."""
    pairs = ("SCoEM b, SCoEM d", "EMcon"), ("CoEM a, CoEM c", "SCoEM b, SCoEM d")
    return Verdict.of(better(results, *pair) for pair in pairs)


def tabulate(results: Results) -> Table:
    """Return the mean KL, numbers of components side by side."""
    return results.pivot("kl", by=["method"], across="k")


def draw(results: Results, figure: Any) -> None:
    """Draw all runs in order, a panel per number of components, as the paper does."""
    ranked(figure, results, "k", "KL, nats")
