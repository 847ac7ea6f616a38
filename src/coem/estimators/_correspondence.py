"""Which class a component stands for. Annealing may change it."""

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from coem.latent.block import Partition
from coem.latent.fitted import Fitted
from coem.typing import Array


def check_correspondence(value: Any) -> None:
    """Raise unless `value` is "labels", "em" or a dict that is not empty."""
    named = isinstance(value, str) and value in ("labels", "em")
    if not named and not (isinstance(value, dict) and value):
        raise ValueError(
            "correspondence must be 'labels', 'em' or a dict from component to class, "
            f"got {value!r}"
        )


def by_hand(mapping: Mapping[Any, Any], classes: Array, component_classes: Array) -> Array:
    """Return the class of every component as `mapping` says; the other components keep theirs."""
    out = np.array(component_classes)
    for component, label in mapping.items():
        number = isinstance(component, Integral) and not isinstance(component, bool)
        if not number or component not in range(len(out)):
            raise ValueError(
                f"correspondence: {component!r} is not a component; components are 0 to "
                f"{len(out) - 1}"
            )
        if label not in classes.tolist():
            raise ValueError(
                f"correspondence: {label!r} is not one of the classes {classes.tolist()}"
            )
        out[component] = classes.tolist().index(label)
    return out


def allowed_components(
    allowed: Array, component_classes: Array, weight: Array | None
) -> tuple[Array | None, Array]:
    """Return the weights of the rows, and which components they may have.

    `allowed` (n_rows, n_classes) are the classes that they may have. A class may have no
    components. Its rows then get a weight of 0, and all components.
    """
    allowed = allowed[:, component_classes]
    homeless = np.logical_not(allowed.any(axis=1))
    if not homeless.any():
        return weight, allowed
    weight = np.where(homeless, 0.0, 1.0 if weight is None else weight)
    return weight, allowed | homeless[:, np.newaxis]


def by_labels(fitted: Fitted, part: Partition, shares: Array, component_classes: Array) -> Array:
    """Return the classes that the labelled rows give to the components.

    Rows are classified as if they had no label. The components get the classes for which as many
    rows as possible are in their class (Nigam et al. 2006, Sec. 3.5.2). Every class keeps the
    number of its components. `shares` (n_rows, n_classes) is what the rows teach their classes.
    """
    votes = np.zeros((len(component_classes), shares.shape[1]))
    for block in part.blocks:
        votes += fitted.joint(block, 1.0).resp.T @ shares[block.rows]
    return _assigned(-votes[:, component_classes], component_classes)


def by_model(fitted: Fitted, other: Fitted, part: Partition, component_classes: Array) -> Array:
    r"""Return for each component the class of the nearest component of `other`, another fit.

    Nearest is by the Kullback-Leibler divergence, and each component of `other` is taken once
    (Nigam et al. 2006, Sec. 3.5.3). The expectation is over the rows of a component: up to a
    constant, :math:`-\sum_i r_{ij} \log q_l(x_i) / \sum_i r_{ij}`. So it works for every family,
    and for rows with empty views.
    """
    k = len(component_classes)
    cross, mass = np.zeros((k, k)), np.zeros(k)
    for block in part.blocks:
        resp = fitted.joint(block, 1.0).resp
        resp *= block.row_weight()[:, np.newaxis]
        views = range(len(other.mixture.emissions))
        cross -= resp.T @ sum(other.log_prob(block, v) for v in views)
        mass += resp.sum(axis=0)
    return _assigned(cross / np.maximum(mass, 1e-12)[:, np.newaxis], component_classes)


def _assigned(cost: Array, component_classes: Array) -> Array:
    """Return the classes after the assignment of components with the lowest cost."""
    _, partner = linear_sum_assignment(cost)
    classes: Array = np.asarray(component_classes)[partner]
    return classes
