"""Latent directions of the rows of a corpus, which are read a shard at a time in every pass."""

import hashlib
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from coem.corpus import Shard
from coem.derived import DerivedCorpus
from coem.engine.corpus import read_ahead
from coem.families.auto import has_unit_rows
from coem.stored import StoredView
from coem.text._svd import PartedRows


@dataclass(frozen=True)
class StoredShard:
    """A shard, and what is made of its rows when they are read."""

    shard: Shard
    lo: int
    hi: int
    work: Callable[..., Any]

    @property
    def n_rows(self):
        """Number of rows."""
        return self.hi - self.lo

    def load(self):
        """Return what is made of the rows."""
        try:
            return self.work(self.shard.read())
        except ValueError as error:
            raise ValueError(f"rows {self.lo} to {self.hi - 1} of the corpus: {error}") from error


def each_shard(corpus, work):
    """Yield what `work` makes of the views of every shard; a thread reads ahead."""
    pairs = zip(corpus.shards, pairwise(corpus.bounds), strict=True)
    return read_ahead([StoredShard(shard, lo, hi, work) for shard, (lo, hi) in pairs])


def views_of_directions(corpus):
    """Return the views of which every row is a direction."""
    dense = [view.name for view in corpus.views if not view.sparse]
    if not dense:
        return ()
    found = [
        [has_unit_rows(views[name]) for name in dense]
        for views in each_shard(corpus[dense], lambda views: views)
    ]
    return tuple(name for name, unit in zip(dense, np.all(found, axis=0), strict=True) if unit)


def frequencies(corpus, counts_of):
    """Return in how many rows each word occurs; `counts_of` makes counts of views."""

    def work(views):
        counts = counts_of(views)
        return np.bincount(counts.indices, minlength=counts.shape[1])

    return sum(each_shard(corpus, work))


def streamed_rows(corpus, rows_of, n_words):
    """Return the TF-IDF rows of a corpus as a source of products."""
    return PartedRows(lambda: each_shard(corpus, rows_of), (len(corpus), n_words))


def mean_of(corpus, project_rows):
    """Return the mean of the projected rows, and the number of rows that are not NaN."""
    total, n_filled = 0.0, 0
    for projected in each_shard(corpus, project_rows):
        filled = ~np.isnan(projected[:, 0])
        total, n_filled = total + projected[filled].sum(axis=0), n_filled + int(filled.sum())
    return total / n_filled, n_filled


def with_directions(model, corpus):
    """Return a corpus with a view of latent directions beside its own."""
    new = StoredView(model.name, model.n_directions_, False, "float32")
    stamp = hashlib.blake2b(digest_size=16)
    for array in (model.components_, model.mean_, model.idf_, model.words_):
        stamp.update(np.ascontiguousarray(array).data)
    stamp.update(f"{model.sublinear} {model.count_views_}".encode())
    # A copy: the view must not change if the model is fitted again.
    return DerivedCorpus(corpus, new, copy(model).rows_of, stamp.hexdigest())
