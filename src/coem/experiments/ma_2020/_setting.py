"""What the experiments share: documents in three forms, and the models of the review."""

from functools import cache
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer

from coem import MixtureClusterer, SphericalKMeans
from coem.datasets import fetch_cluto
from coem.experiments import Claim, Results
from coem.families import Gaussian, Multinomial, VonMisesFisher
from coem.metrics import paired_t_test
from coem.text import LatentDirections

SETS = ("tr11", "re0", "fbis", "la1", "hitech", "wap")
K_MEANS, SPHERICAL = "k-means, TF-IDF", "spherical k-means, TF-IDF"
K_LATENT, DIAG, TIED = "k-means, latent", "Gaussian (diag), latent", "Gaussian (tied), latent"
FISHER, WORDS = "von Mises-Fisher, latent", "multinomial, counts"
HARD, SOFT = "hard", "soft"
MODELS: dict[str, Any] = {  # the form of the rows, and the family
    K_MEANS: ("TF-IDF", Gaussian("unit")),
    SPHERICAL: ("TF-IDF", None),
    K_LATENT: ("latent", Gaussian("unit")),
    DIAG: ("latent", Gaussian("diag")),
    TIED: ("latent", Gaussian("tied")),
    FISHER: ("latent", VonMisesFisher()),
    WORDS: ("counts", Multinomial()),
}
MIXTURES = (DIAG, TIED, FISHER, WORDS)
N_DIRECTIONS = 50


@cache
def documents(data: str) -> Any:
    """Return counts of words, with the classes of the documents."""
    return fetch_cluto(data)


@cache
def rows(data: str, form: str) -> Any:
    """Return documents as counts, as TF-IDF rows of length 1, or in latent directions."""
    words = documents(data).views["words"]
    if form == "TF-IDF":
        return TfidfTransformer().fit_transform(words)
    return words if form == "counts" else LatentDirections(N_DIRECTIONS).fit_transform(words)


def fit(data: str, model: str, posterior: str, seed: int) -> tuple[Any, Any]:
    """Return a fitted model with as many clusters as classes, and its rows."""
    form, family = MODELS[model]
    X, k = rows(data, form), len(np.unique(documents(data).target))
    if family is None:
        return SphericalKMeans(k, random_state=seed).fit(X), X
    weights = "uniform" if family == Gaussian("unit") else "global"
    # The log density of thousands of columns is large, and hides small changes from a larger tol.
    how: dict[str, Any] = {"init": "k-means++", "evidence": "fixed", "tol": 1e-10}
    how |= {"family": family, "posterior": posterior, "weights": weights}
    return MixtureClusterer(k, random_state=seed, **how).fit(X), X


def lower_on_most(results: Results, ours: tuple[str, str], other: tuple[str, str]) -> Claim:
    """Ask whether a model and its kind of assignment have the lower entropy on most sets."""
    tests = []
    for mine in results.groups("data").values():
        sides = [mine.where(model=model, assignment=kind) for model, kind in (ours, other)]
        tests.append(paired_t_test(*(side.values("entropy") for side in sides)))
    better = [test for test in tests if test.difference < 0]
    clear = sum(test.p_value < 0.05 for test in better)
    worse = sum(test.p_value < 0.05 for test in tests if test.difference > 0)
    mean = sum(test.difference for test in tests) / len(tests)
    return Claim(
        f"{ours[0]} ({ours[1]}) is below {other[0]} ({other[1]}) on {len(better)} of {len(tests)} "
        f"sets (p < .05: {clear} below, {worse} above); on average {mean:+.2f} bits",
        2 * len(better) > len(tests),
    )
