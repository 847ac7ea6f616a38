"""Several components a class: how many, and which number serves best."""

from numbers import Integral

import numpy as np
from sklearn.utils import Bunch

from coem.estimators._held_out import held_out, like, splits_of
from coem.records import Records

LADDER = (1, 2, 3, 5, 10, 20, 40)  # numbers of components that "cv" tries


def check_spec(spec):
    """Refuse what is no number, dict, "cv" or list of candidates."""
    if isinstance(spec, str) and spec == "cv":
        return
    tries = spec if isinstance(spec, list | tuple) else [spec]
    numbers = [n for one in tries for n in (one.values() if isinstance(one, dict) else [one])]
    whole = [isinstance(n, Integral) and not isinstance(n, bool) and n >= 1 for n in numbers]
    if not tries or not all(whole):
        raise ValueError(
            "components_per_class must be a number of 1 or more, a dict from class to number, a "
            f"list of such candidates, or 'cv', got {spec!r}"
        )


def is_choice(spec):
    """Tell if there are candidates to choose from."""
    return isinstance(spec, str | list | tuple)


def sizes_of(spec, classes):
    """Return the number of components of every class; one for a class that a dict leaves out."""
    if not isinstance(spec, dict):
        return np.full(len(classes), int(spec))
    strange = [label for label in spec if label not in classes.tolist()]
    if strange:
        raise ValueError(
            f"components_per_class: {strange[0]!r} is none of the classes {classes.tolist()}"
        )
    return np.array([int(spec.get(label, 1)) for label in classes.tolist()])


def candidates(spec, knowledge):
    """Return the candidates to choose from, the simplest first.

    "cv" tries every number of the ladder for all classes alike, and for each class with one
    component in the others, as far as a class has that many labelled rows.
    """
    if not isinstance(spec, str):
        return list(spec)
    classes = knowledge.classes.tolist()
    n_labelled = (knowledge.allowed & knowledge.exact[:, np.newaxis]).sum(axis=0).tolist()
    tries = [1]
    for n in LADDER[1:]:
        enough = [label for label, most in zip(classes, n_labelled, strict=True) if n <= most]
        tries += [n] if len(enough) == len(classes) > 1 else []
        tries += [{label: n} for label in enough]
    return tries


def choose(estimator, X, y, sample_weight, knowledge):
    """Return the fitted candidate with the best score, and the table of all of them.

    The score is the accuracy on labelled rows that the model has not seen: by leave-one-out, or
    by folds, the same for all. Of equals the one with the fewest components is taken.
    """
    table, best, place = Records(), None, None
    weight = None if sample_weight is None else np.asarray(sample_weight)
    loo = estimator._by_loo()
    splits = None
    if not loo:
        splits = splits_of(
            estimator.cv, len(knowledge.exact), knowledge, weight, estimator.random_state
        )
    for candidate in candidates(estimator.components_per_class, knowledge):
        model = like(estimator, components_per_class=candidate)
        model.fit(X, y, sample_weight=sample_weight)
        if loo:
            rows, log_proba = np.flatnonzero(knowledge.exact), model._loo(X, y, sample_weight)
        else:
            rows, log_proba, _ = held_out(model, X, sample_weight, knowledge, splits)
        right = log_proba.argmax(axis=1) == knowledge.codes[rows]
        score = float(np.average(right, weights=None if weight is None else weight[rows]))
        row = Bunch(
            components_per_class=candidate,
            n_components=len(model.weights_),
            score=score,
            objective=model.objective_,
        )
        table.append(row)
        if best is None or (score, -row.n_components) > place:
            best, place = model, (score, -row.n_components)
    return best, table
