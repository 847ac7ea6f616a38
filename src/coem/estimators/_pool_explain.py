"""What the features of a row say to a pool."""

from collections.abc import Sequence

import numpy as np
from sklearn.utils import Bunch

from coem.calibration import floored
from coem.estimators._linear import LinearModel, features_of
from coem.estimators.classifier import MixtureClassifier
from coem.typing import Array
from coem.views import Views


def explained(
    mixture: MixtureClassifier,
    linear: LinearModel,
    weights: Array,
    log_change: Array,
    views: Views,
    votes: Sequence[Array],
    log_proba: Array,
) -> list[Bunch]:
    """Return which features speak for the best class of each row, against the second best.

    `weights` (n_rows, 2) are what mixture and regression count in each row.
    """
    pairs = np.argsort(-log_proba, axis=1, kind="stable")[:, :2]
    weights = _within_the_floor(weights, votes[0], pairs)
    features = features_of(linear.scales, mixture.families_, views)
    found = []
    for i, explained in enumerate(mixture.explain_pairs(views, pairs)):
        best, second = pairs[i].tolist()
        of_mixture, of_linear = weights[i].tolist()
        bias = of_linear * linear.intercept + log_change
        prior = of_mixture * explained.prior + float(bias[best] - bias[second])
        parts = {}
        for name, part in explained.views.items():
            parts[name] = Bunch(
                features=part.features,
                contributions=of_mixture * part.contributions,
                rest=of_mixture * part.rest,
            )
            if name in features:
                columns, terms = linear.terms(name, features[name][[i]])
                add = of_linear * (terms[:, best] - terms[:, second])
                parts[name] = _added(parts[name], columns, add)
        total = sum(float(np.sum(part.contributions)) + part.rest for part in parts.values())
        found.append(
            Bunch(
                label=explained.label,
                against=explained.against,
                log_odds=prior + total,
                prior=prior,
                views=parts,
            )
        )
    return found


def _within_the_floor(weights: Array, vote: Array, pairs: Array) -> Array:
    """Return weights with which the terms of the mixture come to its floored vote."""
    best, second = np.take_along_axis(vote, pairs, axis=1).T
    least_best, least_second = floored(np.stack([best, second]))
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = (least_best - least_second) / (best - second)
    return np.asarray(
        weights * np.column_stack([np.where(ratio > 0, ratio, 1.0), np.ones(len(best))])
    )


def _added(part: Bunch, columns: Array, terms: Array) -> Bunch:
    """Return the part of a view with the terms of some columns added."""
    both = np.concatenate([part.features, columns]).astype(np.intp)
    features, place = np.unique(both, return_inverse=True)
    values = np.concatenate([part.contributions, terms])
    sums = np.bincount(place, weights=values, minlength=len(features))
    return Bunch(features=features, contributions=sums, rest=part.rest)
