"""Nigam et al. (2006), Fig. 3.4: News5, deterministic annealing against EM.

Five comp.* groups, 4,000 words, 600 unlabelled posts per group, one EM step per temperature. After
annealing, a component has the class that it began with ("default"), that of the labelled posts
("by labels"), or the one that is best on the test posts. With two labels per class the paper has 58
% for EM and 51, 55 and 67 % for annealing. The length of the posts is a temperature too: at the
first beta of 0.02, a post of 100 words says as much as two words, one of 600 as much as twelve. So
600 words with a first beta of 0.02 / 6 should lose classes as 100 words do. Six draws each.
"""

from typing import Any

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.drawing import charts
from coem.experiments.nigam_2006._setting import NEWS, QUICK, annealing
from coem.metrics import aligned_accuracy, paired_t_test

NEEDS = ("20newsgroups_19997", "cluto")
EM, DEFAULT, BY_LABELS, BEST = "EM", "default", "by labels", "best"
FEW, WARM, COLD = 2, 0.02, 0.02 / 6
SETTINGS = {(100, WARM): "100 words", (600, WARM): "600 words", (600, COLD): "600 words, beta / 6"}
PAPER = {EM: 58, DEFAULT: 51, BY_LABELS: 55, BEST: 67}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per length, first beta, number of labels and draw."""
    data, draws = (QUICK, 2) if quick else (NEWS, 6)
    sizes = [(*key, n) for key in SETTINGS for n in (FEW, 5, 20, 50) if n == FEW or not quick]
    each = [
        (*size, seed)
        for size in sizes
        if size[2] == FEW or size[1] == WARM
        for seed in range(draws)
    ]
    return [{"data": data, "length": a, "first": b, "labels": c, "seed": d} for a, b, c, d in each]


def measure(data: str, length: int, first: float, labels: int, seed: int) -> list[dict[str, Any]]:
    """Return the accuracies of EM, and of annealing by correspondence."""
    plain, annealed, X, y = annealing(data, length, labels, seed, first)
    component = annealed.component_proba(X).argmax(axis=1)
    found = {
        EM: (plain.predict(X) == y).mean(),
        DEFAULT: (component == y).mean(),
        BY_LABELS: (annealed.predict(X) == y).mean(),
        BEST: aligned_accuracy(y, component),
    }
    return [{"method": method, "accuracy": 100 * value} for method, value in found.items()]


def judge(results: Results) -> Verdict:
    """Ask with two labels per class whether annealing loses the classes, and what it finds."""
    return Verdict.of(
        claim
        for (length, first), mine in results.where(labels=FEW).groups("length", "first").items()
        for claim in _claims(SETTINGS[length, first], mine)
    )


def _claims(name: str, results: Results) -> list[Claim]:
    means = {m: results.where(method=m).mean("accuracy") for m in PAPER}
    lost, found = (
        paired_t_test(*results.paired("accuracy", method=pair, on=["seed"]))
        for pair in ((BEST, DEFAULT), (BEST, EM))
    )
    shown = ", ".join(f"{m} {means[m]:.1f} (paper {PAPER[m]})" for m in (DEFAULT, BEST, EM))
    return [
        Claim(
            f"{name}: annealing loses classes, default is below EM: {shown}; the best is above default by {lost.difference:.1f} points (p = {lost.p_value:.2g})",
            means[DEFAULT].mean < means[EM].mean,
        ),
        Claim(
            f"{name}: the best is above EM by {found.difference:.1f} ± {found.error:.1f} points (p = {found.p_value:.2g})",
            found.difference > 0,
        ),
    ]


def tabulate(results: Results) -> Table:
    """Return the accuracies in %, methods side by side."""
    return results.pivot("accuracy", by=["length", "first", "labels"], across="method")


def draw(results: Results, figure: Any) -> None:
    """Draw a panel per length, as the paper does."""
    along: dict[str, Any] = {"x": "labels", "y": "accuracy", "line": "method"}
    names = "labels per class", "accuracy, %"
    for ax in charts(figure, results.where(first=WARM), "length", labels=names, **along):
        ax.set(xscale="log")
