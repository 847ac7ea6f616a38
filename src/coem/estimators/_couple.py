"""The function `couple`: two fitted models learn from each other."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from coem.checks import check_choice
from coem.estimators._aspect_starts import as_aspects
from coem.estimators._counts import as_counts
from coem.estimators._starts import check_responsibilities
from coem.latent.aspect import Aspects
from coem.latent.shared_rows import couple_resp
from coem.latent.transitions import couple_runs
from coem.run_coupling import VIAS, RunCoupling, Via
from coem.typing import CSR, Array


def couple(
    a: Any, b: Any, via: Via = "xy", X: Any = None
) -> tuple[Aspects, Aspects] | tuple[Array, Array]:
    """Couple two models, so that each can go on from what the other has learnt.

    Parameters
    ----------
    a, b : AspectModel or (p_h, x_given_h, y_given_h); with "rows", mixture or responsibilities
        Fitted models of the same rows and columns, or their parameters. With "rows", fitted
        mixtures of any families, views and numbers of components, or P(component | row).
    via : {"xy", "a", "b", "c", "d", "rows"}, default="xy"
        What the components of the two models have in common; see the parameter `coupling` of
        `AspectModel` (Lin 2006, Sec. 3.3 and 4.3). "rows" is for mixtures.
    X : matrix of shape (n_rows, n_columns), or views, optional
        The counts; "c" and "d" need them. With "rows", the rows, in a form that both mixtures
        accept.

    Returns
    -------
    a, b : tuples (weights, x_given_h, y_given_h), or arrays (n_rows, n_components)
        The coupled parameters; p(h) does not change. With "rows", responsibilities: what the other
        model says of every row, translated into the components of this model. You can pass either
        as `init`.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import AspectModel, couple
    >>> X = np.array([[5, 1, 0, 0], [4, 2, 0, 0], [0, 0, 3, 3], [0, 0, 6, 1]])
    >>> one, two = (AspectModel(2, n_runs=1, random_state=seed).fit(X) for seed in (0, 1))
    >>> model = AspectModel(2, init=[*couple(one, two, "c", X)]).fit(X)
    >>> len(model.runs_)
    2
    """
    check_choice("via", via, (*VIAS, "rows"))
    return _couple_mixtures(a, b, X) if via == "rows" else _couple_aspects(a, b, via, X)


# -- aspect models ------------------------------------------------------------------------------


def _couple_aspects(a: Any, b: Any, via: Via, X: Any) -> tuple[Aspects, Aspects]:
    """Return the coupled parameters of two aspect models."""
    coupling = RunCoupling(via)
    for given, name in ((a, "a"), (b, "b")):
        _check_is_aspect(given, name, via)
    first, second = as_aspects(a, "a"), as_aspects(b, "b")
    if any(p.shape[1] != q.shape[1] for p, q in zip(first[1:], second[1:], strict=True)):
        raise ValueError("a and b must be models of the same rows and columns")
    counts = _counts_for(first, via, X) if coupling.needs_counts else None
    coupled, _ = couple_runs([first, second], coupling, counts)
    # Copy p(h), so that the caller shares no memory with the models.
    first, second = (run._replace(weights=run.weights.copy()) for run in coupled)
    return first, second


def _counts_for(aspects: Aspects, via: Via, X: Any) -> CSR:
    """Return the counts as CSR; raise unless they have the rows and columns of the model."""
    if X is None:
        raise ValueError(f"via={via!r} goes from rows to columns: pass the counts as X")
    counts: CSR = sp.csr_matrix(as_counts(X, "X"))
    shape = aspects.x_given_h.shape[1], aspects.y_given_h.shape[1]
    if counts.shape != shape:
        raise ValueError(f"X must have the shape {shape} of the models, got {counts.shape}")
    return counts


def _check_is_aspect(given: Any, name: str, via: Via) -> None:
    """Raise if a model has to be coupled in another way; the message says how."""
    message = f"via={via!r} couples aspect models, but {name} is of type {type(given).__name__}; "
    if hasattr(given, "fit") and hasattr(given, "predict_proba"):
        raise TypeError(message + "to couple mixtures, use via='rows' and pass the rows as X")
    if hasattr(given, "n_hubs"):
        raise TypeError(message + "to couple the runs of a traffic model, set its coupling='x'")


# -- mixtures -----------------------------------------------------------------------------------


def _couple_mixtures(a: Any, b: Any, X: Any) -> tuple[Array, Array]:
    """Return for each model the responsibilities of the other, in its own components."""
    runs = [_responsibilities(given, name, X) for given, name in ((a, "a"), (b, "b"))]
    if len(runs[0]) != len(runs[1]):
        raise ValueError(f"a and b must have the same rows, got {[len(run) for run in runs]}")
    (first, second), _ = couple_resp(runs, RunCoupling("rows", include_self=False))
    return first, second


def _responsibilities(given: Any, name: str, X: Any) -> Array:
    """Return the posterior of a fitted mixture, or given responsibilities, as float64."""
    if not hasattr(given, "fit"):
        return check_responsibilities(given, name)
    if not hasattr(given, "predict_proba"):
        raise TypeError(
            f"via='rows' couples mixtures, but {name} is of type {type(given).__name__}; "
            "couple aspect models via 'xy', for example; to couple the runs of a traffic model, "
            "set its coupling='x'"
        )
    if X is None:
        raise ValueError("via='rows' needs the posteriors of both models: pass the rows as X")
    return np.asarray(given.predict_proba(X), dtype=np.float64)
