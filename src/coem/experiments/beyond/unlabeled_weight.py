"""EM-lambda on 20 Newsgroups: the weight of posts without a label, with labels and with sets.

Here 5, 15 or 50 posts of each newsgroup have a label, exact or one of two (the right newsgroup and
another by chance), and 3,000 others have none. These count 0 to 1 each, or what held-out labels say
("auto"). Every word has 1 pseudo-count, as in Nigam et al. (2006), or .1. Posts are scaled to 600
words. Accuracy on 4,000 other posts, mean of five draws.
"""

from typing import Any

import numpy as np

from coem import MixtureClassifier
from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.beyond._setting import NEWS, QUICK, above, documents, sample, words
from coem.experiments.drawing import charts
from coem.families import Multinomial

NEEDS = ("20newsgroups_19997", "20newsgroups_minilm", "cluto")
WEIGHTS, AUTO, NEAR = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0), "auto", 0.01
EXACT, PAIRS = "exact labels", "one of two"


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of labels and draw; it fits all weights."""
    data, sizes, seeds = (QUICK, (3,), 2) if quick else (NEWS, (5, 15, 50), 5)
    return [{"data": data, "labels": n, "seed": seed} for seed in range(seeds) for n in sizes]


def measure(data: str, labels: int, seed: int) -> list[dict[str, Any]]:
    """Return the accuracy on posts that were not in the fit, by labels, weight and smoothing."""
    train, n, test = sample(data, labels, 3000 if data == NEWS else 100, seed)
    (X, Z), y, rng = words(data, train, test), documents(data).y, np.random.default_rng(seed)
    exact = np.full(len(train), None, dtype=object)
    pairs, exact[:n] = exact.copy(), y[train[:n]]
    pairs[:n] = [frozenset([c, rng.choice(np.setdiff1d(y, [c]))]) for c in exact[:n]]
    found = []
    for kind, given in ((EXACT, exact), (PAIRS, pairs)):
        for alpha in (1.0, 0.1):
            for weight in (*WEIGHTS, AUTO):
                how: Any = {"family": Multinomial(alpha), "unlabeled_weight": weight, "tol": 1e-5}
                model = MixtureClassifier(**how, random_state=seed).fit(X, given)
                accuracy = float((model.predict(Z) == y[test]).mean())
                row = {"kind": kind, "pseudo-counts": alpha, "weight": weight}
                found.append({**row, "accuracy": accuracy})
    return found


def judge(results: Results) -> Verdict:
    """Ask whether unlabelled posts help, whether less weight is better, and what "auto" finds."""
    claims = []
    for (kind, alpha, n), mine in results.groups("kind", "pseudo-counts", "labels").items():
        means = {w: rows.mean("accuracy").mean for (w,), rows in mine.groups("weight").items()}
        best = max(WEIGHTS, key=means.__getitem__)
        about = f"{kind}, {n} per class, {alpha:g} pseudo-counts"
        for more, less in ((1.0, 0.0), (0.1, 1.0)):
            text = f"{about}: a weight of {more:g} is above {less:g}"
            claims.append(above(mine, text, "accuracy", "weight", (more, less)))
        told = f"{means[AUTO]:.3f} against {means[best]:.3f} with {best:g}"
        text = f"{about}: auto is at most {NEAR} below the best weight: {told}"
        claims.append(Claim(text, means[AUTO] >= means[best] - NEAR))
    return Verdict.of(claims)


def tabulate(results: Results) -> Table:
    """Return the mean accuracies, weights side by side."""
    return results.pivot("accuracy", by=["kind", "pseudo-counts", "labels"], across="weight")


def draw(results: Results, figure: Any) -> None:
    """Draw a line per number of labels, without those of "auto"."""
    rows = results.where(weight=WEIGHTS)
    fixed = Results([{**row, "line": f"{row['labels']} per class"} for row in rows])
    what: Any = {"x": "weight", "y": "accuracy", "line": "line", "columns": 2}
    what["labels"] = "weight of a post", "accuracy"
    for ax in charts(figure, fixed, "kind", "pseudo-counts", **what):
        ax.set_xscale("symlog", linthresh=0.01)
        ax.set(xticks=WEIGHTS, xticklabels=[f"{w:g}" for w in WEIGHTS], ylim=(0, 1))
    figure.set_size_inches(6.4, 4.4)
