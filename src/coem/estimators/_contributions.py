"""What the features of one row add to the log odds between two components."""

from typing import Any

import numpy as np
from sklearn.utils import Bunch

from coem.latent.block import Block
from coem.latent.emissions import Emissions
from coem.typing import Theta, is_sparse


def log_odds(
    theta: dict[str, Theta],
    emissions: Emissions,
    row: Block,
    label: int,
    against: int,
    prior: float,
) -> dict[str, Any]:
    """Return the fields `log_odds`, `prior` and `views` of an explanation.

    `row` is a block of one row, `theta` maps the views to their parameters, and `prior` is the
    part of the log odds that the row itself does not say.
    """
    views = {}
    for v, (name, params) in enumerate(theta.items()):
        if row.empty is None or not row.empty[0, v]:
            views[name] = _contributions(emissions, params, row, v, label, against)
    total = sum(float(np.sum(part.contributions)) + part.rest for part in views.values())
    return {"log_odds": prior + total, "prior": prior, "views": views}


def _contributions(
    emissions: Emissions, params: Theta, row: Block, v: int, label: int, against: int
) -> Bunch:
    """Return what the features of view `v` add."""
    X = row.views[v]
    if is_sparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    family, beta = emissions.families[v], emissions.beta(v)
    found = family.terms(X, params)
    if found is None:  # the density is not a product over features
        whole = family.log_prob(X, params)[0]
        found = np.empty(0, dtype=int), np.empty((0, len(whole))), whole
    features, terms, rest = found
    return Bunch(
        features=np.asarray(features),
        contributions=beta * (terms[:, label] - terms[:, against]),
        rest=beta * float(rest[label] - rest[against]),
    )
