"""Nigam et al. (2006), Fig. 3.2: 20 Newsgroups, model probability against accuracy.

A point is a training set of Fig. 3.1. Its labels set the start of EM (the posteriors of naive
Bayes) and take no further part, so all points have the same 10,000 posts and their probabilities
compare. The paper has a correlation of 0.9798.
"""

from typing import Any

import numpy as np

from coem import MixtureClusterer
from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.nigam_2006._setting import classifier, posts
from coem.experiments.nigam_2006.figure_3_1 import NEEDS, trials

__all__ = ["NEEDS", "draw", "judge", "measure", "tabulate", "trials"]
PAPER = 0.9798


def measure(data: str, per_class: int, number: int) -> dict[str, float]:
    """Return the log probability of the model per post, and its accuracy."""
    rows = posts(data)
    train, n = rows.train([per_class] * len(rows.to_label), number)
    start = classifier().fit(rows.X[train[:n]], rows.y[train[:n]])
    X = rows.X[rows.unlabelled]
    model = MixtureClusterer(
        len(rows.to_label),
        family="multinomial",
        evidence="fixed",
        init=start.predict_proba(X),
        tol=1e-5,
    ).fit(X)
    right = start.classes_[model.predict(rows.X[rows.test])] == rows.y[rows.test]
    per_post = model.objective_ / X.shape[0]
    return {"labels": n, "objective": per_post, "accuracy": 100 * right.mean()}


def judge(results: Results) -> Verdict:
    """Ask for a strong correlation."""
    r = _correlation(results)
    text = f"the more probable models are the more accurate ones: r = {r:.3f} over {len(results)} "
    return Verdict.of([Claim(f"{text}training sets, the paper has {PAPER}", r > 0.9)])


def _correlation(results: Results) -> float:
    return float(np.corrcoef(results.values("objective"), results.values("accuracy"))[0, 1])


def tabulate(results: Results) -> Table:
    """Return mean probability and accuracy by the number of labels, with the correlation."""
    rows = [
        [n, *mine.mean("objective")[:2], *mine.mean("accuracy")]
        for (n,), mine in results.groups("labels").items()
    ]
    heads = ["log probability", "log probability error", "accuracy", "accuracy error", "n"]
    return Table(["labels", *heads], rows)


def draw(results: Results, figure: Any) -> None:
    """Draw a point per training set."""
    figure.set_size_inches(3.4, 2.6)
    ax = figure.subplots()
    for (n,), mine in results.groups("labels").items():
        ax.plot(mine.values("objective"), mine.values("accuracy"), "o", label=f"{n:,}")
    ax.set(xlabel="log probability per post", ylabel="accuracy, %")
    ax.set_title(f"r = {_correlation(results):.3f}")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(title="labels", fontsize=6, title_fontsize=6)
