"""Checks of what a pool is given, before any work."""

from numbers import Integral, Real
from typing import Any

import numpy as np

from coem.checks import check_choice, check_folder, check_number
from coem.estimators._held_out import is_leave_one_out
from coem.estimators._subtopics import is_choice
from coem.estimators.classifier import MixtureClassifier
from coem.io.kept import check_seed
from coem.labels import Knowledge
from coem.typing import Array


def is_mixture(value: Any) -> bool:
    """Return whether a pool takes this for its mixture."""
    return value is None or isinstance(value, MixtureClassifier)


def check_params(model: Any) -> None:
    """Raise unless the parameters of a `PooledClassifier` are usable."""
    if not is_mixture(model.mixture):
        raise ValueError(f"mixture must be None or a MixtureClassifier, got {model.mixture!r}")
    check_choice("class_shares", model.class_shares, ("auto", "labels"))
    check_number("C", model.C, Real, 0)
    if not 0 < model.C < np.inf:
        raise ValueError(f"C must be above 0 and finite, got {model.C!r}")
    if isinstance(model.cv, Real | str):
        check_number("cv", model.cv, Integral, 2)
    if model.mixture is not None:
        _check_mixture(model.mixture)
        check_folder("checkpoint", model.mixture.checkpoint)
        check_seed(model.mixture.random_state, model.mixture.checkpoint, "a pool")


def _check_mixture(mixture: MixtureClassifier) -> None:
    """Raise if a mixture has parameters that need one fit only, or rows of their own."""
    for name, used in (
        ("calibrate", mixture.calibrate),
        ("components_per_class", is_choice(mixture.components_per_class)),
        ("init", not isinstance(mixture.init, str)),
        ("cv", is_leave_one_out(mixture.cv)),
    ):
        if used:
            value = getattr(mixture, name)
            said = repr(value) if isinstance(value, str | bool) else type(value).__name__
            raise ValueError(
                f"mixture: {name}={said} cannot be used in a pool, which fits the mixture to "
                "several folds and calibrates it; leave it at its default"
            )


def check_exact(knowledge: Knowledge, rows: Array, where: str = "") -> None:
    """Raise unless every class has one of these rows, which have exactly one label."""
    lacking = np.setdiff1d(np.arange(len(knowledge.classes)), knowledge.codes[rows])
    if len(lacking):
        label = knowledge.classes.tolist()[lacking[0]]
        raise ValueError(
            f"{where}class {label!r} has no row with exactly this label and a weight, which the "
            "regression needs; label one, or use MixtureClassifier"
        )
