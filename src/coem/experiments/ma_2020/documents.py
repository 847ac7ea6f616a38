"""Ma (2020), document clustering: k-means against mixtures, hard against soft.

Six sets of CLUTO as counts, TF-IDF of length 1, or 50 latent directions; a cluster per class;
entropy in bits, ten k-means++ starts. The review says that Gaussian mixtures generally work better.
"""

from typing import Any

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.drawing import bars, charts, slant
from coem.experiments.ma_2020._setting import (
    DIAG,
    HARD,
    K_LATENT,
    K_MEANS,
    MIXTURES,
    MODELS,
    SETS,
    SOFT,
    SPHERICAL,
    TIED,
    documents,
    fit,
    lower_on_most,
)
from coem.metrics import cluster_entropy

NEEDS = ("cluto",)
RUNS = 10
SURE, FEW = 0.99, 0.1  # the probability of a sure row; a share of rows that is no range


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per set, model, kind of assignment and seed."""
    return [
        {"data": data, "model": model, "assignment": kind, "seed": seed}
        for data in (SETS[:1] if quick else SETS)
        for model in MODELS
        for kind in ((HARD, SOFT) if model in MIXTURES else (HARD,))
        for seed in range(2 if quick else RUNS)
    ]


def measure(data: str, model: str, assignment: str, seed: int) -> dict[str, Any]:
    """Return the entropy of the clusters, and the share of rows that a mixture is not sure of."""
    found, X = fit(data, model, assignment, seed)
    soft = model in MIXTURES and assignment == SOFT
    unsure = float((found.predict_proba(X).max(axis=1) < SURE).mean()) if soft else None
    return {"entropy": cluster_entropy(documents(data).target, found.labels_), "unsure": unsure}


def judge(results: Results) -> Verdict:
    """Ask what is better on most sets, and whether probabilities have a range."""
    pairs = [((model, SOFT), (K_LATENT, HARD)) for model in (DIAG, TIED)]
    pairs += [((SPHERICAL, HARD), (K_MEANS, HARD))]
    pairs += [((model, SOFT), (model, HARD)) for model in MIXTURES]
    claims = [lower_on_most(results, *pair) for pair in pairs]
    return Verdict.of(claims + [_range(results, model) for model in MIXTURES])


def _range(results: Results, model: str) -> Claim:
    unsure = results.where(model=model, assignment=SOFT).mean("unsure").mean
    text = f"{model}: probabilities have a range: {unsure:.0%} of the rows have none above {SURE}"
    return Claim(text, unsure >= FEW)


def tabulate(results: Results) -> Table:
    """Return the entropies, sets side by side."""
    return results.pivot("entropy", by=["model", "assignment"], across="data")


def draw(results: Results, figure: Any) -> None:
    """Draw a panel per set, and a column per model and kind of assignment."""
    how: dict[str, Any] = {"x": "model", "y": "entropy", "line": "assignment", "marks": bars}
    axes = charts(figure, results, "data", labels=("", "entropy"), **how)
    for number, ax in enumerate(axes):  # only the last row has names
        slant(ax, 55)
        ax.tick_params(labelbottom=number + 3 >= len(axes))
    figure.set_size_inches(7.8, 5.6)
