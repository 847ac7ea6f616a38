"""Nigam et al. (2006), Fig. 3.1: naive Bayes, by the number of words left out.

The paper leaves out stop words and does not name its list. Fig. 3.1 above has the 318 words of
scikit-learn. Here, the words that are in the most posts are left out, 0 to 1,200 of them, and
nothing else differs. Naive Bayes alone; 20, 300 and 5,500 labels.
"""

from typing import Any

from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.drawing import charts
from coem.experiments.nigam_2006._setting import (
    NB,
    NEWS,
    QUICK,
    classifier,
    is_near,
    mean_accuracy,
    posts,
)

NEEDS = ("20newsgroups_19997", "cluto")
PAPER = {20: 20, 300: 52, 5500: 76}
LISTS = (0, 50, 100, 200, 300, 400, 500, 600, 800, 1200)


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of words that are left out, and training set."""
    data, lists, sizes = (QUICK, (0, 50), (1, 5)) if quick else (NEWS, LISTS, (1, 15, 275))
    each = [(w, n, i) for w in lists for n in sizes for i in range(2 if quick else 10)]
    kept = [(w, n, i) for w, n, i in each if (i + 1) * n < 300]
    return [{"data": data, "words": w, "per_class": n, "number": i} for w, n, i in kept]


def measure(data: str, words: int, per_class: int, number: int) -> dict[str, Any]:
    """Return the accuracy of naive Bayes."""
    rows = posts(data, words)
    train, n = rows.train([per_class] * len(rows.to_label), number)
    model = classifier().fit(rows.X[train[:n]], rows.y[train[:n]])
    right = model.predict(rows.X[rows.test]) == rows.y[rows.test]
    return {"labels": n, "accuracy": 100 * right.mean(), "n": len(right)}


def judge(results: Results) -> Verdict:
    """Ask whether one list gives the numbers of the paper at all sizes."""
    near = []
    for (words,), mine in results.groups("words").items():
        means = {size: mean_accuracy(own) for (size,), own in mine.groups("labels").items()}
        if all(is_near(mean, PAPER.get(size, mean.mean)) for size, mean in means.items()):
            near.append(f"{words} ({', '.join(f'{mean:.1f}' for mean in means.values())} %)")
    text = "with so many words left out, all sizes are within two errors and rounding of the paper"
    return Verdict.of([Claim(f"{text}: {', '.join(near) or 'none'}", bool(near))])


def tabulate(results: Results) -> Table:
    """Return the accuracies in %, numbers of labels side by side, and those of the paper."""
    table = results.pivot("accuracy", by=["words"], across="labels")
    line = [cell for size in results.unique("labels") for cell in (PAPER.get(size), None)]
    return Table(table.columns, [*table.rows, ["paper", *line, None]])


def draw(results: Results, figure: Any) -> None:
    """Draw a line per number of labels over the number of words that are left out."""
    along: dict[str, Any] = {"labels": ("words left out", f"accuracy of {NB}, %")}
    ax = charts(figure, results, "data", x="words", y="accuracy", line="labels", **along)[0]
    ax.set(xticks=range(0, 1201, 400))
    for number, size in enumerate(sorted(set(PAPER) & set(results.unique("labels")))):
        ax.axhline(PAPER[size], linestyle=":", color=f"C{number}")
