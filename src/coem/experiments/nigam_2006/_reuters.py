"""What the tables about Reuters share: the numbers of the paper, and which model is chosen."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coem.experiments import Results, Table
from coem.experiments.nigam_2006._setting import (
    REUTERS,
    classifier,
    hidden,
    scores,
    stories,
    words_of,
)

METHODS = ("NB1", "EM1", "NB*", "EM*", "EM*CV")
PAPER = {
    "acq": (86.9, 81.3, 88.0, 93.1, 91.1),
    "corn": (94.6, 93.2, 96.0, 97.2, 93.2),
    "crude": (94.3, 94.9, 95.7, 96.3, 95.4),
    "earn": (94.9, 95.2, 95.9, 95.7, 95.2),
    "grain": (94.1, 93.6, 96.2, 96.9, 94.7),
    "interest": (91.8, 87.6, 95.3, 95.8, 92.0),
    "money-fx": (93.0, 90.4, 94.1, 95.0, 92.3),
    "ship": (94.9, 94.1, 96.3, 95.9, 94.4),
    "trade": (91.8, 90.2, 94.3, 95.0, 90.7),
    "wheat": (94.0, 94.5, 96.2, 97.8, 96.3),
}
SIZES = {"words": (10, 20, 100, 1000, 5000), "k": (1, 3, 5, 10, 20, 40)}
QUICK_SIZES = {"words": (20, 100), "k": (1, 3)}


def many_sizes(data: str, topic: str, number: int) -> list[dict[str, Any]]:
    """Return accuracies by method, words and components of the negative class."""
    rows, found = stories(data, topic), []
    (train, n), sizes = rows.train((40, 10), number), SIZES if data == REUTERS else QUICK_SIZES
    y, truth = rows.y[train], rows.y[rows.test]
    for words in sizes["words"]:
        X, T = words_of(rows, train, n, words)
        for k in sizes["k"]:
            for method, end in (("NB", n), ("EM", len(train))):
                model = classifier(components_per_class={"no": k}, random_state=0)
                model.fit(X[:end], hidden(y, n)[:end])
                loo, accuracy = scores(model, X[:end], y[:end], n, (T, truth))
                row = {"method": method, "k": k, "words": words, "loo": loo, "accuracy": accuracy}
                found.append(row)
    return found


def rounds(
    data: str, topic: str, length: int, number: int, when: Sequence[int]
) -> list[dict[str, Any]]:
    """Return accuracies by words and round; round 0 is naive Bayes, a length of 0 raw counts."""
    rows, found = stories(data, topic), []
    (train, n), sizes = rows.train((40, 10), number), SIZES if data == REUTERS else QUICK_SIZES
    y, truth = rows.y[train], rows.y[rows.test]
    for words in sizes["words"]:
        X, T = words_of(rows, train, n, words, length)
        for t in when:
            end = len(train) if t else n
            model = classifier(max_iter=t or 1).fit(X[:end], hidden(y, n)[:end])
            loo, accuracy = scores(model, X[:end], y[:end], n, (T, truth))
            found.append({"words": words, "round": t, "loo": loo, "accuracy": accuracy})
    return found


def by_words(results: Results, *names: str) -> Results:
    """Return of each group the row whose number of words leave-one-out chooses."""
    groups = results.groups(*names).values()
    return Results([max(rows, key=lambda row: (row["loo"], row["words"])) for rows in groups])


def chosen(results: Results) -> Results:
    """Return the rows of the models of Tables 3.2 and 3.3, one of each per training set."""
    found = []
    for mine in (
        by_words(results, "topic", "number", "method", "k").groups("topic", "number").values()
    ):
        of: dict[str, Any] = {method: list(mine.where(method=method)) for method in ("NB", "EM")}
        best = {f"{m}1": next(r for r in of[m] if r["k"] == 1) for m in of}
        best |= {f"{m}*": max(of[m], key=lambda r: r["accuracy"]) for m in of}
        best["EM*CV"] = max(of["EM"], key=lambda r: (r["loo"], -r["k"]))
        found += [{**best[model], "model": model} for model in METHODS]
    return Results(found)


def side_by_side(best: Results) -> Table:
    """Return a row per topic: accuracies, those of the paper, medians of components."""
    table = best.pivot("accuracy", by=["topic"], across="model")
    several = METHODS[2:]
    rows = []
    for row in table.rows:
        mine = best.where(topic=row[0])
        sizes = [float(np.median(mine.where(model=m).values("k"))) for m in several]
        rows.append([*row, *PAPER.get(row[0], [None] * len(METHODS)), *sizes])
    paper, medians = [f"{m} (paper)" for m in METHODS], [f"components of {m}" for m in several]
    return Table([*table.columns, *paper, *medians], rows)


def by_rule(results: Results) -> Results:
    """Return the results of `rounds` by three rules for the number of words."""
    found = []
    for (_, length, _), mine in results.groups("topic", "length", "number").items():
        first = by_words(mine.where(round=0), "round").rows[0]["words"]
        fixed = max(words for words in mine.unique("words") if words <= 1000)
        rules = {"1,000 words": mine.where(words=fixed)}
        rules["words chosen by naive Bayes"] = mine.where(words=first)
        rules["words chosen by the model"] = by_words(mine, "round")
        counts = f"length {length}" if length else "raw counts"
        rows = ((row, rule) for rule, chosen in rules.items() for row in chosen)
        found += [{**row, "rule": rule, "counts": counts} for row, rule in rows]
    return Results(found)
