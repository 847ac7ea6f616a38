"""Angles between rows and the centres of clusters."""

from collections.abc import Mapping
from functools import reduce

import numpy as np

from coem.families import VonMisesFisher
from coem.families.von_mises_fisher import VonMisesFisherTheta
from coem.latent.block import Block
from coem.typing import Array

Centres = Mapping[str, Array]  # view -> (n_clusters, n_features), in the order of the views


def cosines(block: Block, centres: Centres, family: VonMisesFisher) -> Array:
    """Return cosines (n_views, n, n_clusters), NaN where a row is empty."""
    values = []
    for v, (X, own) in enumerate(zip(block.views, centres.values(), strict=True)):
        found = family.cosines(X, VonMisesFisherTheta(own, np.ones(len(own))))
        blank = block.blank(v)
        if blank is not None:
            found[blank] = np.nan
        values.append(found)
    return np.stack(values)


def angles(block: Block, centres: Centres, family: VonMisesFisher) -> Array:
    """Return the mean angles (n, n_clusters), NaN for rows that are empty in every view."""
    found = np.arccos(np.clip(cosines(block, centres, family), -1.0, 1.0))
    present = ~np.isnan(found)
    total = reduce(np.add, np.where(present, found, 0.0))
    n_views = np.maximum(present.sum(axis=0), 1)
    return np.asarray(np.where(present.any(axis=0), total, np.nan) / n_views)


def nearest(block: Block, centres: Centres, family: VonMisesFisher) -> Array:
    """Return the cluster of every row, -1 for rows that are empty in every view."""
    if len(centres) == 1:  # the smallest angle is the largest cosine
        found = cosines(block, centres, family)[0]
        return np.where(np.isnan(found[:, 0]), -1, found.argmax(axis=1))
    found = angles(block, centres, family)
    return np.where(np.isnan(found[:, 0]), -1, found.argmin(axis=1))
