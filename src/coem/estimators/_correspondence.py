"""Which class a component stands for, once annealing may have led it astray."""

from numbers import Integral

import numpy as np
from scipy.optimize import linear_sum_assignment

from coem.posterior import posterior


def check_correspondence(value):
    """Refuse what is neither a name nor a mapping."""
    named = isinstance(value, str) and value in ("labels", "em")
    if not named and not (isinstance(value, dict) and value):
        raise ValueError(
            "correspondence must be 'labels', 'em' or a dict from component to class, "
            f"got {value!r}"
        )


def by_hand(mapping, classes, component_classes):
    """Return the class of every component as a person says; the others keep theirs."""
    out = np.array(component_classes)
    for component, label in mapping.items():
        number = isinstance(component, Integral) and not isinstance(component, bool)
        if not number or component not in range(len(out)):
            raise ValueError(
                f"correspondence: {component!r} is no component; they are 0 to {len(out) - 1}"
            )
        if label not in classes.tolist():
            raise ValueError(f"correspondence: {label!r} is none of the classes {classes.tolist()}")
        out[component] = classes.tolist().index(label)
    return out


def allowed_components(allowed, component_classes, weight):
    """Return the weights of the rows, and which components they may have.

    A class may be left without components. Its rows belong to none of them, and weigh nothing.
    """
    allowed = allowed[:, component_classes]
    homeless = ~allowed.any(axis=1)
    if not homeless.any():
        return weight, allowed
    weight = np.where(homeless, 0.0, 1.0 if weight is None else weight)
    return weight, allowed | homeless[:, np.newaxis]


def by_labels(model, theta, data, shares, component_classes):
    """Return the classes that the labelled rows give to the components.

    Rows are classified as if they had no label; as many as possible of them shall end up in their
    class (Nigam et al. 2006, Sec. 3.5.2). Every class keeps the number of its components.
    """
    votes = np.zeros((model.n_components, shares.shape[1]))
    for block in data.blocks:
        log_prob = _log_prob(model, theta, block)
        resp = posterior(log_prob, theta.log_weights[theta.latest]).resp
        votes += resp.T @ shares[block.rows]
    return _assigned(-votes[:, component_classes], component_classes)


def by_model(model, theta, other, data, component_classes):
    r"""Return the classes of the components of `other`, another fit, that are nearest to these.

    Nearest by the Kullback-Leibler divergence, one component for one (Nigam et al. 2006, Sec.
    3.5.3). Its expectation is taken over the rows of a component: up to a constant
    :math:`-\sum_i r_{ij} \log q_l(x_i) / \sum_i r_{ij}`, which works for every family and for rows
    with empty views.
    """
    cross = np.zeros((model.n_components,) * 2)
    mass = np.zeros(model.n_components)
    for block in data.blocks:
        mine, theirs = _log_prob(model, theta, block), _log_prob(model, other, block)
        resp = posterior(mine, theta.log_weights[theta.latest]).resp
        resp *= block.row_weight()[:, np.newaxis]
        cross -= resp.T @ theirs
        mass += resp.sum(axis=0)
    return _assigned(cross / np.maximum(mass, 1e-12)[:, np.newaxis], component_classes)


def _assigned(cost, component_classes):
    _, partner = linear_sum_assignment(cost)
    return np.asarray(component_classes)[partner]


def _log_prob(model, theta, block):
    return sum(model.log_prob(block, theta, v) for v in range(len(model.families)))
