"""Features of components, ranked: the common part of the methods `top_features`."""

from numbers import Integral
from typing import Literal, TypeAlias

from coem.checks import check_choice, check_number
from coem.kernels.sparse_tables import SparseTable
from coem.ranking import Ranked, best
from coem.typing import Array

By: TypeAlias = Literal["wllr", "prob"]


def best_features(prob: Array | SparseTable, weights: Array, n: int, by: By) -> Ranked:
    """Return the `n` best features of every component, with their values.

    `prob` (n_components, n_features) is p(feature | component), and `weights` are p(component). A
    single component is ranked by probability, because there is no other to compare with.
    """
    check_number("n", n, Integral, 1)
    check_choice("by", by, ("wllr", "prob"))
    return best(prob, None if by == "prob" or len(prob) == 1 else weights, n)
