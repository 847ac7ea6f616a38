"""Labels that are sets of classes, on 20 Newsgroups: how much one of m classes tells.

Here 15 or 50 posts of each newsgroup have a label, and 5,000 others none. Each label is a set of m
newsgroups: the right one and others by chance, m = 1 is an exact label. "sets and 5 exact": five
posts of each newsgroup have exact labels instead, with m = 20 all others have none. "one guessed":
a method without sets needs one label, so one class of each set is drawn. The same posts in all
cases. Accuracy on 4,000 other posts, mean of five draws.
"""

from typing import Any

import numpy as np

from coem import MixtureClassifier
from coem.experiments import Claim, Results, Table, Verdict
from coem.experiments.beyond._setting import NEWS, QUICK, above, documents, sample, words
from coem.experiments.drawing import charts

NEEDS = ("20newsgroups_19997", "20newsgroups_minilm", "cluto")
SETS, MIXED, GUESSED = "sets", "sets and 5 exact", "one guessed"
ALLOWED, CERTAIN = (1, 2, 3, 5, 10, 20), 5
COST = 0.05


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per number of labels and draw; it fits sets of all sizes."""
    data, sizes, seeds = (QUICK, (6,), 2) if quick else (NEWS, (15, 50), 5)
    return [{"data": data, "labels": n, "seed": seed} for n in sizes for seed in range(seeds)]


def measure(data: str, labels: int, seed: int) -> list[dict[str, Any]]:
    """Return the accuracy on posts that were not in the fit, by size and use of the sets."""
    train, n, test = sample(data, labels, 5000 if data == NEWS else 200, seed)
    (X, Z), y, rng = words(data, train, test), documents(data).y, np.random.default_rng(seed)
    truth, every = y[train[:n]], np.unique(y)
    orders = [np.r_[c, rng.permutation(every[every != c])] for c in truth]
    chance, place, found = rng.random(n), np.arange(n) % labels, []
    for m in ALLOWED:
        sets = [frozenset(order[:m].tolist()) for order in orders]
        some = [o[0] if p < CERTAIN else s for o, p, s in zip(orders, place, sets, strict=True)]
        guesses = [o[int(u * min(m, len(o)))] for o, u in zip(orders, chance, strict=True)]
        for use, told in ((SETS, sets), (MIXED, some), (GUESSED, guesses)):
            if m >= len(every) and use != MIXED:
                continue  # nothing is known
            given = np.full(len(train), None, dtype=object)
            given[:n] = told
            model = MixtureClassifier(family="multinomial", tol=1e-5).fit(X, given)
            accuracy = float((model.predict(Z) == y[test]).mean())
            found.append({"use": use, "allowed": m, "accuracy": accuracy})
    return found


def judge(results: Results) -> Verdict:
    """Ask what sets cost, and whether they tell more than guesses and than nothing."""
    claims = []
    for (labels,), mine in results.groups("labels").items():
        exact, two = (mine.where(use=SETS, allowed=m).mean("accuracy").mean for m in (1, 2))
        about, cost = f"labels per class, {labels}", f"{two:.3f} against {exact:.3f}"
        text = f"{about}: one of two costs less than {COST} of exact labels: {cost}"
        claims.append(Claim(text, exact - two < COST))
        for m in (2, 3, 5):
            text, part = f"{about}: one of {m} is above a guess", mine.where(allowed=m)
            claims.append(above(part, text, "accuracy", "use", (SETS, GUESSED)))
        text, part = f"{about}: beside 5 exact, one of 10 is above nothing", mine.where(use=MIXED)
        claims.append(above(part, text, "accuracy", "allowed", (10, 20)))
    return Verdict.of(claims)


def tabulate(results: Results) -> Table:
    """Return the mean accuracies, uses of the sets side by side."""
    return results.pivot("accuracy", by=["labels", "allowed"], across="use")


def draw(results: Results, figure: Any) -> None:
    """Draw a line per use of the sets."""
    what: Any = {"x": "allowed", "y": "accuracy", "line": "use"}
    for ax in charts(figure, results, "labels", labels=("classes in a set", "accuracy"), **what):
        ax.set_xticks([1, 5, 10, 20])
