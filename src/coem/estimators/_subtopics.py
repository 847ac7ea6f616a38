"""Several components per class: how many, and which number predicts best."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from coem.estimators._classifier_methods import ClassifierMethods
from coem.estimators._held_out import Classifier, Split, held_out, is_leave_one_out, like, splits_of
from coem.estimators._keeping import kept_folds
from coem.io.kept import Content, Kept, Part, discard, once, part_of
from coem.labels import Knowledge
from coem.records import Records
from coem.row_store import RowStore
from coem.typing import Array
from coem.views import Views

LADDER = (1, 2, 3, 5, 10, 20, 40)  # numbers of components that "cv" tries

Sizes = int | dict[Any, int]  # components per class: of every class, or by class


def check_sizes(value: Any) -> None:
    """Raise unless `value` is a number, a dict, "cv" or a list of candidates."""
    if isinstance(value, str) and value == "cv":
        return
    tries = value if isinstance(value, list | tuple) else [value]
    numbers = [n for one in tries for n in (one.values() if isinstance(one, dict) else [one])]
    whole = [isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 1 for n in numbers]
    if not tries or not all(whole):
        raise ValueError(
            "components_per_class must be a number of 1 or more, a dict from class to number, a "
            f"list of such candidates, or 'cv', got {value!r}"
        )


def is_choice(value: Any) -> bool:
    """Return whether there are candidates to choose from."""
    return isinstance(value, str | list | tuple)


def sizes_of(value: Sizes, classes: Array) -> Array:
    """Return the number of components of every class; 1 for a class that a dict leaves out."""
    if not isinstance(value, dict):
        return np.full(len(classes), int(value))
    unknown = [label for label in value if label not in classes.tolist()]
    if unknown:
        raise ValueError(
            f"components_per_class: {unknown[0]!r} is not one of the classes {classes.tolist()}"
        )
    return np.array([int(value.get(label, 1)) for label in classes.tolist()])


def kept_choices(
    estimator: ClassifierMethods,
    views: Views | RowStore,
    knowledge: Knowledge,
    weight: Array | None,
) -> Kept | None:
    """Return the folder of a fit that needs fits to folds, or None if nothing is to be kept."""
    if not needs_folds(estimator):
        return None
    return kept_folds(estimator.checkpoint, estimator.get_params(), views, knowledge, weight)


def needs_folds(estimator: ClassifierMethods) -> bool:
    """Return whether parameters of a classifier ask for fits to folds of the labelled rows."""
    chosen = is_choice(estimator.components_per_class) or estimator.unlabeled_weight == "auto"
    return bool(chosen or estimator.calibrate)


def candidates(value: str | Sequence[Sizes], knowledge: Knowledge) -> list[Sizes]:
    """Return the candidates to choose from; those of "cv" begin with the simplest.

    "cv" tries every number of the ladder for all classes together, and for each class alone, with
    one component for the others. A class is tried with at most as many components as it has
    labelled rows.
    """
    if not isinstance(value, str):
        return list(value)
    classes = knowledge.classes.tolist()
    n_labelled = (knowledge.allowed & knowledge.exact[:, np.newaxis]).sum(axis=0).tolist()
    tries: list[Sizes] = [1]
    for n in LADDER[1:]:
        enough = [label for label, most in zip(classes, n_labelled, strict=True) if n <= most]
        tries += [n] if len(enough) == len(classes) > 1 else []
        tries += [{label: n} for label in enough]
    return tries


def choose(
    estimator: Classifier,
    X: Any,
    y: Any,
    sample_weight: Array | None,
    knowledge: Knowledge,
    kept: Kept | None = None,
) -> tuple[Classifier, Records]:
    """Return the fitted candidate with the best score, and a record of every candidate.

    The score is the accuracy on labelled rows that the model has not seen: by leave-one-out, or
    by folds, which are the same for all candidates. Of candidates with the same score, the one
    with the fewest components is taken. `kept` keeps the scores, and the fit of the best candidate.
    """
    splits = None
    if not is_leave_one_out(estimator.cv):
        splits = splits_of(
            estimator.cv, len(knowledge.exact), knowledge, sample_weight, estimator.random_state
        )
    table, best, best_rank = Records(), "", (-np.inf, 0)
    fitted: dict[str, Classifier] = {}  # the best one, unless it was fitted before a stop

    def fit(candidate: Sizes, part: Part | None) -> Classifier:
        model = like(estimator, components_per_class=candidate, checkpoint=part)
        return model.fit(X, y, sample_weight=sample_weight)

    for number, candidate in enumerate(candidates(estimator.components_per_class, knowledge)):
        name = f"size-{number}"

        def work(part: Part | None, candidate: Sizes = candidate, name: str = name) -> Content:
            model = fitted[name] = fit(candidate, part)
            score = _score(model, X, y, sample_weight, knowledge, splits, kept, f"{name}-")
            n_components = len(model.weights_)
            return dict(n_components=n_components, score=score, objective=model.objective_), {}

        found, _ = once(kept, name, work, stays=True)
        table.append(Bunch(components_per_class=candidate, **found))
        rank = found["score"], -found["n_components"]
        worse, best, best_rank = (
            (best, name, rank) if not best or rank > best_rank else (name, best, best_rank)
        )
        fitted.pop(worse, None)
        discard(part_of(kept, worse) if worse else None)
    if best not in fitted:
        chosen = table[int(best.removeprefix("size-"))].components_per_class
        fitted[best] = fit(chosen, part_of(kept, best))
    return fitted[best], table


def _score(
    model: Classifier,
    X: Any,
    y: Any,
    sample_weight: Array | None,
    knowledge: Knowledge,
    splits: list[Split] | None,
    kept: Kept | None,
    name: str,
) -> float:
    """Return the accuracy on held-out rows, or by leave-one-out if `splits` is None."""
    if splits is None:
        rows = np.flatnonzero(knowledge.exact)
        log_proba = model._log_leave_one_out(X, y, sample_weight)
    else:
        rows, log_proba, _ = held_out(
            model, X, sample_weight, knowledge, splits, kept=kept, name=name
        )
    right = log_proba.argmax(axis=1) == knowledge.codes[rows]
    return float(np.average(right, weights=None if sample_weight is None else sample_weight[rows]))
