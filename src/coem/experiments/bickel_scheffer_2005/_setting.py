"""What the experiments of the paper share: its algorithm, and linked documents."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from coem import MixtureClusterer, Views
from coem.datasets import fetch_citeseer, fetch_cora, fetch_webkb

CO_EM, CONCAT, MERGED = "co-EM", "concatenated", "merged"


def mixture(k: int, seed: int, eta: Any = 1.0, **others: Any) -> MixtureClusterer:
    """Return the algorithm of Table 1, which is plain EM if there is one view."""
    paper: dict[str, Any] = {"family": "multinomial", "init": "random", "evidence": "fixed"}
    return MixtureClusterer(k, eta=eta, random_state=seed, **paper, **others)


@cache
def linked(name: str) -> tuple[dict[str, Any], Any]:
    """Return what each method gets of a collection, and the true classes."""
    data = LINKED[name]()
    links = {"links": [view for view in data.views.names if view.endswith("bound")]}
    merged = data.views.merge(links) if links["links"] else Views(text=_one_bag(data))
    inputs = {CO_EM: data.views, CONCAT: data.views.concat(), MERGED: merged.concat()}
    return inputs, data.target


def _one_bag(data: Any) -> sparse.csr_array:
    """Return the counts of all text views together, in the columns of all their words."""
    words = np.unique(np.concatenate([*data.feature_names.values()]))
    total = sparse.csr_array((len(data.target), len(words)), dtype=np.float32)
    for view, own in data.feature_names.items():
        places = np.arange(len(own)), np.searchsorted(words, own)
        ones = np.ones(len(own), dtype=np.float32)
        total += data.views[view] @ sparse.csr_array((ones, places), (len(own), len(words)))
    return total


LINKED: dict[str, Callable[[], Any]] = {
    "Cora": fetch_cora,
    "Citeseer": fetch_citeseer,
    "WebKB": fetch_webkb,
}
