"""Words weighted by how rare they are, in rows of unit length."""

import numpy as np


def rarity(n_rows, frequency):
    """Return the weights of words that occur in some of the rows, as `TfidfTransformer` has them.

    Parameters
    ----------
    n_rows : int
    frequency : array of int
        In how many rows each word occurs.
    """
    return 1 + np.log((1 + n_rows) / (1 + frequency))


def tf_idf(counts, words, weights, sublinear):
    """Return rows of unit length in float32; a row without any of the words stays empty.

    Parameters
    ----------
    counts : CSR array of float64, in canonical form and without stored zeros
    words : array of int
        The columns to use.
    weights : array of float
        How rare each of them is.
    sublinear : bool
        Count a word that occurs c times as 1 + log(c), not as c. Counts below 1 stay as they are:
        both the curve and its slope continue there, and no count becomes negative.
    """
    rows = counts[:, words]
    if sublinear:
        rows.data = np.where(rows.data < 1, rows.data, 1 + np.log(np.maximum(rows.data, 1)))
    rows.data *= weights[rows.indices]
    sizes = np.diff(rows.indptr)
    filled = np.flatnonzero(sizes)
    if len(filled):
        # Divide by the largest first: the squares of tiny values underflow.
        top = np.maximum.reduceat(rows.data, rows.indptr[filled])
        rows.data /= np.repeat(top, sizes[filled])
        lengths = np.sqrt(np.add.reduceat(np.square(rows.data), rows.indptr[filled]))
        rows.data /= np.repeat(lengths, sizes[filled])
    rows.data = rows.data.astype(np.float32)
    return rows
