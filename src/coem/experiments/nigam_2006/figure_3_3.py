"""Nigam et al. (2006), Fig. 3.3: Reuters, acq, model probability against accuracy.

On the left the negative class has one component, on the right ten. A point is a model of EM after
some rounds, from ten training sets; large points are the ends. All have the same 1,000 words (by
mutual information with all train stories) and the probability is that of the same 7,000 stories.
"""

from typing import Any

import numpy as np
from scipy.stats import pearsonr

from coem.experiments import Claim, Results, Table, Verdict, chance
from coem.experiments.drawing import panels
from coem.experiments.nigam_2006._setting import QUICK, REUTERS, classifier, hidden, stories
from coem.text import SelectWords

NEEDS = ("reuters21578", "cluto")
ROUNDS, PAPER = (1, 2, 3, 5, 7, 10, 20, 200), {1: -0.9906, 10: 0.5474}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per training set and number of components."""
    data, topic, sets = (QUICK, "2", 2) if quick else (REUTERS, "acq", 10)
    each = [(k, i) for k in PAPER for i in range(sets)]
    return [{"data": data, "topic": topic, "components": k, "number": i} for k, i in each]


def measure(data: str, topic: str, components: int, number: int) -> list[dict[str, float]]:
    """Return the log probability of the unlabelled stories and the accuracy, by round."""
    rows, found = stories(data, topic), []
    train, n = rows.train((40, 10), number)
    known = np.concatenate([rows.unlabelled, *rows.to_label])
    X = SelectWords(1000).fit(rows.X[known], rows.y[known]).transform(rows.X)
    for t in ROUNDS:
        model = classifier(components_per_class={"no": components}, max_iter=t, random_state=0)
        model.fit(X[train], hidden(rows.y[train], n))
        right = model.predict(X[rows.test]) == rows.y[rows.test]
        value = float(np.mean(model.score_samples(X[rows.unlabelled])))
        found.append({"round": t, "objective": value, "accuracy": 100 * right.mean()})
    return found


def judge(results: Results) -> Verdict:
    """Ask for the signs of the two correlations."""
    claims = []
    for (k,), mine in results.groups("components").items():
        r, p = _correlation(mine.where(round=ROUNDS[-1]))
        rest = f"({chance(p)}); over all rounds {_correlation(mine)[0]:.2f}"
        text = f"{k} negative component(s): r is {r:.2f}, in the paper {PAPER[k]} {rest}"
        claims.append(Claim(text, r * PAPER[k] > 0 and p < 0.05))
    return Verdict.of(claims)


def _correlation(results: Results) -> Any:
    return pearsonr(results.values("objective"), results.values("accuracy"))


def tabulate(results: Results) -> Table:
    """Return mean probability and accuracy by round."""
    groups = results.groups("components", "round").items()
    rows = [[*key, *mine.mean("objective")[:2], *mine.mean("accuracy")] for key, mine in groups]
    heads = ["log probability", "log probability error", "accuracy", "accuracy error", "n"]
    return Table(["components", "round", *heads], rows)


def draw(results: Results, figure: Any) -> None:
    """Draw a point per model."""
    for ax, mine in panels(figure, results, "components"):
        ends = mine.where(round=ROUNDS[-1])
        ax.plot(mine.values("objective"), mine.values("accuracy"), ".", alpha=0.6)
        ax.plot(ends.values("objective"), ends.values("accuracy"), "o", color="C1")
        ax.set(xlabel="log probability per story", ylabel="accuracy, %")
        ax.set_title(f"{ax.get_title()}, r = {_correlation(mine)[0]:.2f}")
        ax.locator_params("x", nbins=4)
        ax.spines[["top", "right"]].set_visible(False)
