"""Corpora for tests: the same rows in memory and in a folder."""

from itertools import pairwise

import numpy as np
import scipy.sparse as sp

from coem import open_corpus
from coem.io.corpus_writer import CorpusWriter
from coem.views import Views

N, K = 420, 3
CUTS = (0, 90, 91, 300, N)  # uneven, one of them a single row


def groups(seed=0):
    return np.random.default_rng(seed).integers(K, size=N)


def views_of(*names, seed=0):
    """Return some views of the same groups, which overlap, so that no label is certain."""
    rng, group = np.random.default_rng(seed), groups(seed)
    rates = 0.4 * np.exp(0.7 * rng.standard_normal((K, 30)))
    words = sp.csr_matrix(rng.poisson(rates[group]).astype(np.float32))
    words = sp.csr_matrix(words.multiply(rng.random((N, 1)) > 0.05), dtype=np.float32)
    points = rng.standard_normal((K, 4))[group] + rng.standard_normal((N, 4)) + 100
    gaps = np.where(rng.random((N, 4)) < 0.1, np.nan, points)
    unit = rng.standard_normal((K, 6))[group] + 0.8 * rng.standard_normal((N, 6))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    unit[rng.random(N) < 0.05] = np.nan
    kinds = rng.integers(4, size=(N, 3)) * (rng.random((N, 3)) < 0.5) + group[:, np.newaxis]
    marks = sp.csr_matrix((rng.random((K, 12))[group] > 0.6 * rng.random((N, 12))).astype(float))
    every = {
        "words": words,
        "points": points,
        "gaps": gaps,
        "unit": unit,
        "kinds": kinds.astype(float),
        "marks": marks,
    }
    return Views({name: every[name] for name in names})


def stored(folder, views, cuts=CUTS):
    """Return the corpus of some rows, cut into shards."""
    writer = CorpusWriter(folder)
    for lo, hi in pairwise(cuts):
        writer.append(views[lo:hi])
    return open_corpus(folder)
