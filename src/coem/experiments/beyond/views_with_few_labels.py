"""Words, sentence vectors and latent directions of 20 Newsgroups with few labels: accuracy.

The views are those of `views_without_labels`. Here 1, 5 or 15 posts of each newsgroup have a label
and 3,000 others do not. Accuracy on 4,000 other posts, mean of five draws, with the defaults of
`MixtureClassifier`; directions are found in the posts of the fit.
"""

from typing import Any

import numpy as np

from coem import MixtureClassifier
from coem.experiments import Results, Table, Verdict
from coem.experiments.beyond._setting import NEWS, QUICK, above, documents, sample
from coem.experiments.beyond._views import ALONE, TOGETHER, all_views, chosen, named
from coem.experiments.drawing import charts

NEEDS = ("20newsgroups_19997", "20newsgroups_minilm", "cluto")


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of labels and draw; it fits all sets of views."""
    data, sizes, unlabelled = (QUICK, (2,), 100) if quick else (NEWS, (1, 5, 15), 3000)
    seeds = range(2 if quick else 5)
    return [
        {"data": data, "labels": n, "unlabelled": unlabelled, "seed": seed}
        for seed in seeds
        for n in sizes
    ]


def measure(data: str, labels: int, unlabelled: int, seed: int) -> list[dict[str, Any]]:
    """Return the accuracy on posts that were not in the fit, by the views that are used."""
    train, n, test = sample(data, labels, unlabelled, seed)
    y = documents(data).y
    given = np.where(np.arange(len(train)) < n, y[train], -1)
    views, others = all_views(data, train, test)
    found = []
    for used in (*ALONE, *TOGETHER):
        X, family = chosen(views, used)
        model = MixtureClassifier(family=family, tol=1e-4, random_state=seed).fit(X, given)
        right = model.predict(chosen(others, used)[0]) == y[test]
        found.append({"views": named(used), "accuracy": float(right.mean())})
    return found


def judge(results: Results) -> Verdict:
    """Ask at each number of labels whether views together are above each of them alone."""
    pairs = [(named(used), view) for used in TOGETHER for view in used]
    claims = []
    for (labels,), mine in results.groups("labels").items():
        told = f"labels per class, {labels}"
        for pair in pairs:
            text = f"{told}: {pair[0]} is above {pair[1]} alone"
            claims.append(above(mine, text, "accuracy", "views", pair))
    return Verdict.of(claims)


def tabulate(results: Results) -> Table:
    """Return the mean accuracies, numbers of labels side by side."""
    return results.pivot("accuracy", by=["views"], across="labels")


def draw(results: Results, figure: Any) -> None:
    """Draw a line per set of views."""
    what: Any = {"x": "labels", "y": "accuracy", "line": "views"}
    axes = charts(figure, results, "data", labels=("labels per newsgroup", "accuracy"), **what)
    axes[0].set_xticks(results.unique("labels"))
    figure.set_size_inches(4.5, 4)
