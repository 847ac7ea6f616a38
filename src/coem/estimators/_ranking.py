"""Features of components, ranked: the common part of the methods `top_features`."""

from numbers import Integral
from typing import Literal, TypeAlias

import numpy as np

from coem.checks import check_choice, check_number
from coem.ranking import wllr
from coem.typing import Array

By: TypeAlias = Literal["wllr", "prob"]


def best_features(prob: Array, weights: Array, n: int, by: By) -> list[list[tuple[int, float]]]:
    """Return the `n` best features of every component, with their values.

    `prob` (n_components, n_features) is p(feature | component), and `weights` are p(component). A
    single component is ranked by probability, because there is no other to compare with.
    """
    check_number("n", n, Integral, 1)
    check_choice("by", by, ("wllr", "prob"))
    value = prob if by == "prob" or len(prob) == 1 else wllr(prob, weights)
    best = np.argsort(-value, axis=1, kind="stable")[:, :n]
    pairs = zip(value, best, strict=True)
    return [[(int(f), float(row[f])) for f in top] for row, top in pairs]
