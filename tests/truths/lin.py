"""Lin (2006) transcribed line by line with dense arrays, as slow as the paper reads.

p(h) is `ph` (k,), p(x|h) is `xh` (k, n), p(y|h) is `yh` (k, m), the counts a dense (n, m) array.
"""

import numpy as np


def em(counts, ph, xh, yh, betas):
    """Return the parameters after one iteration for each beta; beta = 1 is EM (Sec. 3.1)."""
    empirical = counts / counts.sum()
    for beta in betas:
        joint = (ph[:, None, None] * xh[:, :, None] * yh[:, None, :]) ** beta  # (k, n, m)
        posterior = joint / joint.sum(axis=0)
        expected = posterior * empirical
        ph = expected.sum(axis=(1, 2))
        xh = expected.sum(axis=2) / ph[:, None]
        yh = expected.sum(axis=1) / ph[:, None]
    return ph, xh, yh


def kl(counts, ph, xh, yh):
    """Return KL(p~ || p) in nats."""
    empirical = counts / counts.sum()
    model = np.einsum("h,hx,hy->xy", ph, xh, yh)
    seen = empirical > 0
    return float((empirical[seen] * np.log(empirical[seen] / model[seen])).sum())


def tempered(counts, ph, xh, yh, beta):
    """Return 1/beta sum n(x, y) log sum_h p(x, y, h)^beta."""
    joint = (ph[:, None, None] * xh[:, :, None] * yh[:, None, :]) ** beta
    seen = counts > 0
    return float((counts[seen] * np.log(joint.sum(axis=0)[seen])).sum() / beta)


def h_given(ph, zh):
    """Return p(h|z) (k, n_z) from the joint distribution p(h) p(z|h)."""
    joint = ph[:, None] * zh
    return joint / joint.sum(axis=0)


def couple_xy(counts, a, b):
    """Sec. 3.3, step 2: p(x|h) through Y, and p(y|h) through X."""
    (pa, xa, ya), (pb, xb, yb) = a, b
    empirical = counts / counts.sum()
    joint_a = (h_given(pa, ya) * empirical.sum(axis=0)) @ h_given(pb, yb).T  # p_a(h1, h2)
    joint_b = (h_given(pa, xa) * empirical.sum(axis=1)) @ h_given(pb, xb).T  # p_b(h1, h2)
    new_xa, new_xb = _mixed(joint_a, xa, xb)
    new_ya, new_yb = _mixed(joint_b, ya, yb)
    return (pa, new_xa, new_ya), (pb, new_xb, new_yb)


def couple(counts, a, b, via):
    """Sec. 4.3: "a" to "d" are H1-W-H2, H1-D-H2, H1-W-D-H2 and H1-D-W-H2; X is D, Y is W."""
    (pa, xa, ya), (pb, xb, yb) = a, b
    empirical = counts / counts.sum()  # p~(d, w)
    one_d, one_w = h_given(pa, xa), h_given(pa, ya)  # p(h1|d), p(h1|w)
    two_d, two_w = h_given(pb, xb), h_given(pb, yb)
    joint = {
        "a": (one_w * empirical.sum(axis=0)) @ two_w.T,
        "b": (one_d * empirical.sum(axis=1)) @ two_d.T,
        "c": one_w @ empirical.T @ two_d.T,
        "d": one_d @ empirical @ two_w.T,
    }[via]
    new_xa, new_xb = _mixed(joint, xa, xb)
    new_ya, new_yb = _mixed(joint, ya, yb)
    return (pa, new_xa, new_ya), (pb, new_xb, new_yb)


def _mixed(joint, a, b):
    """Return sum_h2 p(z|h2) p(h2|h1), and sum_h1 p(z|h1) p(h1|h2), for a joint p(h1, h2)."""
    two_given_one = joint / joint.sum(axis=1, keepdims=True)
    one_given_two = (joint / joint.sum(axis=0)).T
    return two_given_one @ b, one_given_two @ a
