"""Parameters of aspect and traffic models as a user gives them: arrays, or a fitted model."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_choice
from coem.latent.aspect import Aspects
from coem.latent.traffic import Traffic
from coem.typing import Array

TOLERANCE = 1e-6  # distributions whose sums differ from one by more are scaled

Params = TypeVar("Params")


def given_aspects(init: Any, k: int, shape: tuple[int, int]) -> list[Aspects] | None:
    """Return the starts of an aspect model that a user gives, or None."""
    wanted = (k,), (k, shape[0]), (k, shape[1])
    form = "(p_h, x_given_h, y_given_h) or a fitted AspectModel"
    return _given_starts(init, 3, lambda start, name: as_aspects(start, name, wanted), form)


def given_traffic(init: Any, k: int, n: int) -> list[Traffic] | None:
    """Return the starts of a traffic model that a user gives, or None."""
    form = "(alpha, beta) or a fitted TrafficModel"

    def read(given: Any, name: str) -> Traffic:
        shaped = f"{form} of the shapes (k, n_nodes) and (k, k)"
        given = _fitted(given, name, ("alpha_", "beta_"), shaped)
        alpha, beta = _arrays(given, name, shaped, (2, 2))
        _check_shapes((alpha, beta), ((k, n), (k, k)), name)
        return Traffic(_distribution(alpha, name), _distribution(beta.ravel(), name).reshape(k, k))

    return _given_starts(init, 2, read, form)


def as_aspects(given: Any, name: str, shapes: tuple[tuple[int, ...], ...] | None = None) -> Aspects:
    """Return the parameters of a fitted model, or three given arrays, as float64 distributions.

    Raise unless they have the given shapes, if any.
    """
    form = (
        "a fitted AspectModel or (p_h, x_given_h, y_given_h) of the shapes (k,), (k, n_rows) and "
        "(k, n_columns)"
    )
    given = _fitted(given, name, ("weights_", "x_given_h_", "y_given_h_"), form)
    arrays = _arrays(given, name, form, (1, 2, 2))
    if shapes is not None:
        _check_shapes(arrays, shapes, name)
    return Aspects(*(_distribution(array, name) for array in arrays))


def _given_starts(
    init: Any, n_parts: int, read: Callable[[Any, str], Params], form: str
) -> list[Params] | None:
    """Return the starts that a user gives, one per run, or None if `init` is "random".

    A start is a tuple of `n_parts` arrays, or a fitted model. `read` checks one start, which has a
    name for error messages; `form` describes a start in words.
    """
    if isinstance(init, str):
        check_choice("init", init, ("random",))
        return None
    several = isinstance(init, tuple) and any(map(_is_start, init))
    one = hasattr(init, "fit") or (isinstance(init, tuple) and len(init) == n_parts)
    starts = [init] if one and not several else init
    if not isinstance(starts, list | tuple) or len(starts) == 0:
        raise ValueError(
            f"init must be 'random', or a list with {form} for each run, got {type(init).__name__}"
        )
    return [read(start, f"init[{i}]") for i, start in enumerate(starts)]


def _is_start(part: Any) -> bool:
    """Return True for a whole start, False for one array of a start.

    A whole start is a model, or arrays that do not form a matrix.
    """
    try:
        return hasattr(part, "fit") or np.ndim(part) > 2
    except ValueError:  # its arrays have different shapes
        return True


def _fitted(given: Any, name: str, attributes: Sequence[str], form: str) -> Any:
    """Return the parameters of a fitted model; anything else is returned as it is."""
    if not hasattr(given, "fit"):
        return given
    if not all(hasattr(given, attribute) for attribute in attributes):
        check_is_fitted(given)
        raise TypeError(f"{name} must be {form}, got {type(given).__name__}")
    return tuple(getattr(given, attribute) for attribute in attributes)


def _arrays(given: Any, name: str, form: str, ndims: tuple[int, ...]) -> list[Array]:
    """Return given arrays as float64; raise unless they have the same number of components."""
    try:
        arrays = [np.asarray(part, dtype=np.float64) for part in given]
    except (TypeError, ValueError):
        arrays = []
    if tuple(a.ndim for a in arrays) != ndims or len({len(a) for a in arrays}) != 1:
        raise ValueError(f"{name} must be {form}")
    return arrays


def _check_shapes(arrays: Sequence[Array], wanted: tuple[tuple[int, ...], ...], name: str) -> None:
    """Raise unless the arrays have the wanted shapes."""
    got = tuple(array.shape for array in arrays)
    if got != wanted:
        raise ValueError(f"{name} must have arrays of the shapes {wanted}, got {got}")


def _distribution(values: Array, name: str) -> Array:
    """Return values whose last axis sums to one; raise unless they are probabilities."""
    if not np.isfinite(values).all() or values.min(initial=0.0) < 0:
        raise ValueError(f"{name} must hold probabilities, finite and 0 or more")
    sums = values.sum(axis=-1, keepdims=True)
    if not sums.all():
        raise ValueError(f"{name}: a distribution has no probability above 0")
    return values / sums if np.abs(sums - 1).max() > TOLERANCE else values
