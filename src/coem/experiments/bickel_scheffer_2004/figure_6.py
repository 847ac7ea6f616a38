"""Bickel & Scheffer (2004), Fig. 6: two views, continued as one view, against one view.

Log likelihood per row (Eq. 17) and entropy in bits, ten runs. In the space "product" each view has
a distribution of its own (`coupling="joint"`), in "concatenated" both have one, as in the paper.
"""

from typing import Any

import numpy as np

from coem.experiments import Claim, Results, Table, Verdict, chance
from coem.experiments.bickel_scheffer_2004._setting import N_CLASSES, case, em, on_two_sets
from coem.experiments.drawing import bars, charts
from coem.metrics import cluster_entropy, paired_t_test

NEEDS = ("20newsgroups_19997", "webkb")
PRODUCT, CONCAT = "product", "concatenated"
MULTI, ONWARD, SINGLE = "two views", "continued", "one view"
LIKELIHOOD, GAIN = "log likelihood", "log likelihood less that of one view"
MORE, STILL = "one view is more likely than two", "two that go on as one are more likely still"
SAME, SLIGHT = "going on changes the entropy by less than 0.1 bits", 0.1


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per set, space and seed."""
    return on_two_sets(quick, space=[PRODUCT, CONCAT])


def measure(data: str, space: str, seed: int) -> list[dict[str, Any]]:
    """Return likelihood and entropy of the three models."""
    given, k = case(data, seed), N_CLASSES[data]
    views, two = given.counts, em(k, seed).fit(given.counts)
    X: Any = views.concat()
    start: Any = two
    entropy = {MULTI: cluster_entropy(given.target, two.labels_)}
    value = {MULTI: two.score(views)}
    if space == PRODUCT:
        X, options = views, {"coupling": "joint", "assign": "joint"}
    else:
        start, options = two.set_params(assign="joint").predict_proba(views), {}
        # Two vectors of probabilities end to end sum to two; the best scale is the share of words.
        words = np.array([counts.sum() for _, counts in views.items()])
        value[MULTI] += words @ np.log(words / words.sum()) / len(views)
    for model, init in {ONWARD: start, SINGLE: "random"}.items():
        fit = em(k, seed, init, **options).fit(X)
        entropy[model] = cluster_entropy(given.target, fit.labels_)
        value[model] = fit.score(X)
    gain = {model: value[model] - value[SINGLE] for model in value}
    found = {LIKELIHOOD: value, GAIN: gain, "entropy": entropy}
    return [{"what": w, "model": m, "value": v} for w, by in found.items() for m, v in by.items()]


def judge(results: Results) -> Verdict:
    """Ask for the order of the likelihoods, and whether the entropy stays."""
    claims = []
    for (data, space), mine in results.groups("data", "space").items():
        for text, what, models in (
            (MORE, LIKELIHOOD, (SINGLE, MULTI)),
            (STILL, LIKELIHOOD, (ONWARD, SINGLE)),
            (SAME, "entropy", (ONWARD, MULTI)),
        ):
            pair = mine.where(what=what).paired("value", model=models, on=["seed"])
            gap, p = paired_t_test(*pair)[::3]
            holds = abs(gap) < SLIGHT if text == SAME else gap > 0 and p < 0.05
            claims.append(Claim(f"{data}, {space}: {text}: {gap:+.2f} ({chance(p)})", holds))
    return Verdict.of(claims)


def tabulate(results: Results) -> Table:
    """Return likelihoods and entropies, models side by side."""
    return results.pivot("value", by=["data", "space", "what"], across="model")


def draw(results: Results, figure: Any) -> None:
    """Draw likelihood and entropy of the three models, set by set."""
    how: dict[str, Any] = {"x": "space", "y": "value", "line": "model", "marks": bars, "columns": 2}
    shown = results.where(what=[GAIN, "entropy"])
    for ax in charts(figure, shown, "data", "what", labels=("", ""), **how):
        ax.set_title(ax.get_title().replace(GAIN, "gain in likelihood"))
