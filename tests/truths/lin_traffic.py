"""Lin (2006), Sec. 5, transcribed with dense arrays: every (x, x', h, h') has a cell of its own.

alpha(x|h) is `alpha` (k, n), beta(h, h') is `beta` (k, k), the counts a dense (n, n) array.
"""

import numpy as np


def joint(alpha, beta):
    """Return p(x, x', h, h') of shape (n, n, k, k)."""
    return np.einsum("hx,hg,gy->xyhg", alpha, beta, alpha)


def em(counts, alpha, beta, temperatures, prior=0.0):
    """Return the parameters after one iteration for each inverse temperature; 1 is EM."""
    empirical = counts / counts.sum()
    prior = prior / counts.sum()
    for power in temperatures:
        cells = joint(alpha, beta) ** power
        q = cells / cells.sum(axis=(2, 3), keepdims=True)
        expected = empirical[:, :, None, None] * q
        sources = expected.sum(axis=(1, 3))  # p~(X = x, H = h)
        destinations = expected.sum(axis=(0, 2))  # p~(X' = x, H' = h)
        entrances, exits = expected.sum(axis=(0, 1, 3)), expected.sum(axis=(0, 1, 2))
        above = sources + destinations + prior
        alpha = (above / (entrances + exits + len(counts) * prior)).T
        beta = expected.sum(axis=(0, 1))
    return alpha, beta


def kl(counts, alpha, beta):
    """Return D(p~(x, x') || sum_hh' alpha beta alpha) in nats."""
    empirical, seen = counts / counts.sum(), counts > 0
    model = joint(alpha, beta).sum(axis=(2, 3))
    return float((empirical[seen] * np.log(empirical[seen] / model[seen])).sum())


def tempered(counts, alpha, beta, power):
    """Return 1/power sum n(x, x') log sum_hh' p(x, x', h, h')^power."""
    seen = counts > 0
    cells = (joint(alpha, beta) ** power).sum(axis=(2, 3))
    return float((counts[seen] * np.log(cells[seen])).sum() / power)


def one_given_two(one, two):
    """Return p(h1|h2) = sum_x p(h1|x) alpha(x|h2) of shape (k2, k1)."""
    (alpha1, beta1), (alpha2, _) = one, two
    k1, n = alpha1.shape
    k2 = len(alpha2)
    out = np.zeros((k2, k1))
    for x in range(n):
        # A trip has two ends; either is at h1 with the mean of the marginals.
        at = [(beta1[h].sum() + beta1[:, h].sum()) / 2 * alpha1[h, x] for h in range(k1)]
        for h2 in range(k2):
            out[h2] += np.array(at) / sum(at) * alpha2[h2, x]
    return out


def learn(one, two):
    """Return the parameters of run 1, learnt from run 2."""
    (_, beta2), alpha2 = two, two[0]
    to_two, to_one = one_given_two(two, one), one_given_two(one, two)
    alpha = np.einsum("ab,bx->ax", to_two, alpha2)  # sum_h2 alpha(x|h2) p(h2|h1)
    beta = np.einsum("ba,bd,dc->ac", to_one, beta2, to_one)
    return alpha, beta


def couple(one, two):
    """Return both runs, each with what it learnt from the other."""
    return learn(one, two), learn(two, one)
