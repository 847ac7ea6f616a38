"""The corpus of the speed tables: Zipf counts, about 85 non-zeros a row."""

import numpy as np
import scipy.sparse as sp


def zipf_counts(n_rows=20_000, n_words=50_000, n_draws=110, seed=0):
    """Return a CSR matrix of counts whose words follow Zipf's law, in no order of frequency."""
    rng = np.random.default_rng(seed)
    prob = 1.0 / np.arange(1, n_words + 1)
    ranks = rng.choice(n_words, size=n_rows * n_draws, p=prob / prob.sum())
    words = rng.permutation(n_words)[ranks]
    rows = np.repeat(np.arange(n_rows), n_draws)
    X = sp.csr_matrix((np.ones(len(rows)), (rows, words)), shape=(n_rows, n_words))
    X.sum_duplicates()
    return X


def random_responsibilities(n_rows, n_components, seed=1):
    """Return a start for both sides of a comparison."""
    return np.random.default_rng(seed).dirichlet(np.ones(n_components), n_rows)
