"""Nigam et al. (2006), Fig. 3.1: 20 Newsgroups, accuracy with and without 10,000 unlabelled posts.

The last fifth of each group is the test set, 500 posts of each group have no label, and 300 make
training sets that do not overlap: ten per size, or as many as there are. Posts are scaled to 600
words (the paper names no length). Sec. 3.3 says what 20, 300 and 5,500 labels come to.
"""

from typing import Any

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.drawing import charts
from coem.experiments.nigam_2006._setting import (
    EM,
    NB,
    NEWS,
    QUICK,
    classifier,
    hidden,
    is_near,
    mean_accuracy,
    p_value,
    posts,
)
from coem.metrics import mcnemar

NEEDS, PER_CLASS = ("20newsgroups_19997", "cluto"), (1, 2, 5, 10, 15, 25, 50, 100, 275)
PAPER = {20: (20, 35), 300: (52, 66), 5500: (76, 78)}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per training set."""
    if quick:
        return [{"data": QUICK, "per_class": n, "number": i} for n in (1, 10) for i in range(2)]
    sets = [(n, i) for n in PER_CLASS for i in range(min(10, 299 // n))]
    return [{"data": NEWS, "per_class": n, "number": i} for n, i in sets]


def measure(data: str, per_class: int, number: int) -> list[dict[str, Any]]:
    """Return the accuracies without and with unlabelled posts, and the p-value of McNemar."""
    rows = posts(data)
    train, n = rows.train([per_class] * len(rows.to_label), number)
    X, y, truth = rows.X[train], rows.y[train], rows.y[rows.test]
    models = {NB: classifier().fit(X[:n], y[:n]), EM: classifier().fit(X, hidden(y, n))}
    found = {method: model.predict(rows.X[rows.test]) for method, model in models.items()}
    p = mcnemar(truth, found[NB], found[EM]).p_value
    return [
        {"labels": n, "method": m, "accuracy": 100 * (f == truth).mean(), "n": len(truth), "p": p}
        for m, f in found.items()
    ]


def judge(results: Results) -> Verdict:
    """Ask at the sizes that the paper names whether EM is better, and how near the numbers are."""
    claims = []
    for (size,), mine in results.groups("labels").items():
        if not (paper := PAPER.get(size, ())) and NEWS in results.unique("data"):
            continue
        (low, high), p = [mean_accuracy(mine.where(method=m)) for m in (NB, EM)], p_value(mine)
        text = f"{size} labels: EM raises the accuracy from {low:.1f} to {high:.1f} % (p = {p:.2g})"
        claims.append(Claim(text, high.mean > low.mean and p < 0.05))
        for method, own, printed in zip((NB, EM), (low, high), paper, strict=False):
            near = f"within two errors and rounding of {printed} (paper)"
            text = f"{size} labels, {method}: {own:.1f} %, {near}"
            claims.append(Claim(text, is_near(own, printed)))
    return Verdict.of(claims)


def tabulate(results: Results) -> Table:
    """Return the accuracies in %, methods side by side."""
    table = results.pivot("accuracy", by=["labels"], across="method")
    heads = [*table.columns, f"{NB} (paper)", f"{EM} (paper)"]
    return Table(heads, [[*row, *PAPER.get(row[0], (None, None))] for row in table.rows])


def draw(results: Results, figure: Any) -> None:
    """Draw a line per method over the number of labels, on a log scale, as the paper does."""
    along: dict[str, Any] = {"labels": ("labelled posts", "accuracy, %"), "line": "method"}
    charts(figure, results, "data", x="labels", y="accuracy", **along)[0].set(xscale="log")
