"""What the experiments of the paper share: its algorithm, and its collections."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy import sparse

from coem import MixtureClusterer, Views
from coem.datasets import fetch_citeseer, fetch_cluto, fetch_cora, fetch_cora_papers, fetch_webkb
from coem.families import Multinomial

CO_EM, CONCAT, MERGED = "co-EM", "concatenated", "merged"
RUNS = {0: 20, 1: 10}  # by pseudo-counts: none are those of the paper (Eq. 22), 1 the default here
PLAIN = ("re0", "fbis", "la1", "hitech", "tr11", "wap")  # documents of one view, of CLUTO


def mixture(k: int, alpha: float, seed: int, eta: Any = 1.0) -> MixtureClusterer:
    """Return the algorithm of Table 1, which is plain EM if there is one view."""
    paper: dict[str, Any] = {"family": Multinomial(alpha), "init": "random", "evidence": "fixed"}
    return MixtureClusterer(k, eta=eta, random_state=seed, **paper)


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


def each(runs: Mapping[int, int], **along: Iterable[Any]) -> list[dict[str, Any]]:
    """Return trials: all values of `along` together, by pseudo-counts and number of runs.

    Seeds change last, so that a run that is stopped has trials of everything.
    """
    values = [dict(zip(along, each, strict=True)) for each in product(*along.values())]
    return [
        {**value, "alpha": alpha, "seed": seed}
        for seed in range(max(runs.values()))
        for alpha, n in runs.items()
        if seed < n
        for value in values
    ]


def splits(quick: bool, **along: Any) -> list[dict[str, Any]]:
    """Return trials on the sets of one view."""
    sets, runs = (("tr11",), {0: 2, 1: 2}) if quick else (PLAIN, RUNS)
    return each(runs, data=sets, **along)


@cache
def plain(name: str) -> Any:
    """Return the words of one of the sets of CLUTO, its true classes and their number."""
    data = fetch_cluto(name)
    return data.views["words"], data.target, len(data.target_names)


LINKED: dict[str, Callable[[], Any]] = {
    "Cora": fetch_cora,
    "Citeseer": fetch_citeseer,
    "WebKB": fetch_webkb,
    "Cora, four views": fetch_cora_papers,
}
