"""Nigam et al. (2006), Fig. 3.4: News5, deterministic annealing against EM.

Five comp.* groups, 4,000 words, 600 unlabelled posts per group, one EM step per temperature. After
annealing, a component has the class that it began with ("default"), that of the labelled posts
("by labels"), or the one that is best on the test posts. With two labels per class the paper has 58
% for EM and 51, 55 and 67 % for annealing. The length of the posts is a temperature too: at the
first beta of 0.02, a post of 100 words says as much as two words, one of 600 as much as twelve. So
600 words with a first beta of 0.02 / 6 should lose classes as 100 words do. Ten draws each.
"""

from typing import Any

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.drawing import charts
from coem.experiments.nigam_2006._setting import FIRST, NEWS, QUICK, annealing
from coem.metrics import aligned_accuracy, paired_t_test

NEEDS = ("20newsgroups_19997", "cluto")
EM, DEFAULT, BY_LABELS, BEST = "EM", "default", "by labels", "best"
FEW, COLD = 2, FIRST / 6
SETTINGS = {
    (100, FIRST): "100 words",
    (600, FIRST): "600 words",
    (600, COLD): "600 words, beta / 6",
}
PAPER = {EM: 58, DEFAULT: 51, BY_LABELS: 55, BEST: 67}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per setting, number of labels and draw; few labels alone if colder."""
    data, draws, sizes = (QUICK, 2, (FEW,)) if quick else (NEWS, 10, (FEW, 5, 20, 50))
    pairs = [(key, n) for key in SETTINGS for n in sizes if n == FEW or key[1] == FIRST]
    each = [(*key, n, seed) for key, n in pairs for seed in range(draws)]
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
    claims = []
    for key, mine in results.where(labels=FEW).groups("length", "first").items():
        means = {method: mine.where(method=method).mean("accuracy") for method in PAPER}
        test = paired_t_test(*mine.paired("accuracy", method=(BEST, EM), on=["seed"]))
        shown = ", ".join(f"{m} {means[m]:.1f} (paper: {PAPER[m]})" for m in (DEFAULT, EM))
        text = f"{SETTINGS[key]}: annealing loses classes, so default is below EM: {shown}"
        low = paired_t_test(*mine.paired("accuracy", method=(DEFAULT, EM), on=["seed"]))
        lost = low.difference < 0 and low.p_value < 0.05
        claims.append(Claim(f"{text} (p = {low.p_value:.2g})", lost))
        shown = f"{test.difference:.1f} ± {test.error:.1f} points, p = {test.p_value:.2g}"
        text = f"{SETTINGS[key]}: the best has {means[BEST]:.1f} (paper: 67), above EM"
        claims.append(Claim(f"{text} by {shown}", test.difference > 0 and test.p_value < 0.05))
    return Verdict.of(claims)


def tabulate(results: Results) -> Table:
    """Return the accuracies in %, methods side by side."""
    return results.pivot("accuracy", by=["length", "first", "labels"], across="method")


def draw(results: Results, figure: Any) -> None:
    """Draw a panel per length, as the paper does."""
    along: dict[str, Any] = {"x": "labels", "y": "accuracy", "line": "method"}
    names = "labels per class", "accuracy, %"
    for ax in charts(figure, results.where(first=FIRST), "length", labels=names, **along):
        ticks = results.unique("labels")
        ax.set(xscale="log", xticks=ticks, xticklabels=ticks)
        ax.minorticks_off()
