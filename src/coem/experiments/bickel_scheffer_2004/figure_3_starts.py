"""Bickel & Scheffer (2004), Fig. 3 with five clusters: other starts and settings.

The paper does not say which start and which counts EM has. Entropy in bits (Eq. 1) of pairs of
posts, ten draws. "2005": weights and assignment of the later paper. The claims are those of Fig. 3.
"""

import warnings
from functools import partial
from typing import Any

from coem.experiments import Results, Table, Verdict
from coem.experiments.bickel_scheffer_2004._setting import (
    K_MEANS,
    N_CLASSES,
    PAIRS,
    RUNS,
    SMALL,
    better,
    case,
    compared,
    each,
    em,
    entropies,
    k_means,
)
from coem.experiments.drawing import bars, charts, slant

NEEDS = ("20newsgroups_19997",)
TF_IDF = "EM, TF-IDF"
MAKERS: dict[str, Any] = {
    "EM, random": em,
    "EM, rows": partial(em, init="rows"),
    "EM, k-means++": partial(em, init="k-means++"),
    "EM, spherical": partial(em, init="spherical"),
    "EM, 2005": partial(em, weights="global", assign="joint", tol=1e-6, patience=None),
    TF_IDF: em,
    K_MEANS: k_means,
    f"{K_MEANS}, rows": partial(k_means, init="rows"),
    f"{K_MEANS}, 10 restarts": partial(k_means, n_init=10),
}


def trials(quick: bool) -> list[dict[str, Any]]:
    """Return one trial per setting and draw."""
    return each(2 if quick else RUNS, data=[SMALL if quick else PAIRS], setting=MAKERS)


def measure(data: str, setting: str, seed: int) -> list[dict[str, Any]]:
    """Return the entropy with one view and with two."""
    given = case(data, seed)
    views = given.tf_idf if setting == TF_IDF or setting.startswith(K_MEANS) else given.counts
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*as TF-IDF rows have"
        )  # as EM of the paper may get
        return entropies(given.target, views, MAKERS[setting], N_CLASSES[data], seed)


def judge(results: Results) -> Verdict:
    """Ask of each setting whether two views are better."""
    return Verdict.of(better(name, mine) for (name,), mine in results.groups("setting").items())


def tabulate(results: Results) -> Table:
    """Return the entropies, numbers of views side by side."""
    return compared(results, by=["setting"])


def draw(results: Results, figure: Any) -> None:
    """Draw two columns per setting."""
    how: dict[str, Any] = {"x": "setting", "y": "entropy", "line": "views", "marks": bars}
    (ax,) = charts(figure, results, labels=("", "entropy"), **how)
    slant(ax)
    figure.set_size_inches(5.2, 3.2)
