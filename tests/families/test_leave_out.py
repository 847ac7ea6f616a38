"""Leave-one-out against the M step that it stands for, done again for every row with NumPy.

Both are in double precision. The fast way takes a row out of sums that have it, the slow one never
adds it, and centres Gaussians first: 1e-9 is what that costs at most where variances are of order
one.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq
from scipy.special import ive, log_softmax, logsumexp

from coem import MixtureClassifier, Not, Views
from coem.families import Bernoulli, Categorical, Family, Gaussian, Multinomial, VonMisesFisher

N, M = 36, 3
GROUP = np.arange(N) % M
TOL = {"rtol": 1e-9, "atol": 1e-12}


# -- the M steps and densities, by hand -----------------------------------------------------------


def slow_multinomial(family, X, r):
    words = family.alpha + r.T @ X
    words /= words.sum(axis=1, keepdims=True)
    return lambda x: x @ np.log(words).T


def slow_bernoulli(family, X, r):
    there = (family.alpha + r.T @ (X > 0)) / (2 * family.alpha + r.sum(axis=0))[:, None]
    return lambda x: (x > 0) @ np.log(there).T + (x == 0) @ np.log(1 - there).T


def slow_categorical(family, X, r):
    def log_prob(x):
        total = np.zeros((len(x), r.shape[1]))
        for i, j, c in np.ndindex(len(x), r.shape[1], X.shape[1]):
            if not np.isnan(x[i, c]):
                known = ~np.isnan(X[:, c])
                hits = family.alpha + r[X[:, c] == x[i, c], j].sum()
                total[i, j] += np.log(hits / (3 * family.alpha + r[known, j].sum()))
        return total

    return log_prob


def slow_gaussian(family, X, r):
    mass, d = r.sum(axis=0), X.shape[1]
    means = r.T @ X / mass[:, None]
    apart = X[None] - means[:, None]  # (k, n, d)
    scatter = np.einsum("nk,kni,knj->kij", r, apart, apart)
    covariances = scatter / mass[:, None, None]
    if family.covariance == "tied":
        covariances = np.tile(scatter.sum(axis=0) / mass.sum(), (len(mass), 1, 1))
    elif family.covariance == "diag":
        covariances = covariances * np.eye(d)
    elif family.covariance == "spherical":
        covariances = np.trace(covariances, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
    if family.covariance == "unit":
        covariances = np.tile(np.eye(d), (len(mass), 1, 1))
    else:
        covariances = covariances + family.reg * np.eye(d)

    def log_prob(x):
        gap = x[:, None] - means
        squares = np.einsum("nki,kij,nkj->nk", gap, np.linalg.inv(covariances), gap)
        return -0.5 * (squares + np.linalg.slogdet(2 * np.pi * covariances)[1])

    return log_prob


def slow_von_mises_fisher(family, X, r):
    d, sums = X.shape[1], r.T @ X
    lengths = np.linalg.norm(sums, axis=1)
    kappas = np.full(len(sums), 20.0)
    if family.kappa == "fit":
        wanted = lengths / (r.sum(axis=0) + family.alpha)
        kappas = np.array([solve(mean, d) for mean in wanted])
    log_bessel = np.log(ive(d / 2 - 1, kappas)) + kappas
    log_c = (d / 2 - 1) * np.log(kappas) - d / 2 * np.log(2 * np.pi) - log_bessel
    return lambda x: x @ (kappas / lengths * sums.T) + log_c


def solve(mean, d):
    """Return the concentration with that mean cosine."""
    return brentq(lambda k: ive(d / 2, k) / ive(d / 2 - 1, k) - mean, 1e-9, 1e4, xtol=1e-13)


FAMILIES = {
    "multinomial": (Multinomial(), slow_multinomial),
    "multinomial, alpha": (Multinomial(alpha=0.1), slow_multinomial),
    "bernoulli": (Bernoulli(alpha=0.5), slow_bernoulli),
    "categorical": (Categorical(levels=(3,) * 4), slow_categorical),
    "gaussian full": (Gaussian("full", reg=1e-2), slow_gaussian),
    "gaussian tied": (Gaussian("tied"), slow_gaussian),
    "gaussian diag": (Gaussian("diag"), slow_gaussian),
    "gaussian spherical": (Gaussian("spherical"), slow_gaussian),
    "gaussian unit": (Gaussian("unit"), slow_gaussian),
    "von_mises_fisher": (VonMisesFisher(), slow_von_mises_fisher),
    "von_mises_fisher, fit": (VonMisesFisher("fit"), slow_von_mises_fisher),
}
every_family = pytest.mark.parametrize("name", FAMILIES)
KINDS = [name for name in FAMILIES if name != "multinomial, alpha"]
every_kind = pytest.mark.parametrize("name", KINDS)


def draw(name, seed=0):
    """Return rows in three groups that overlap, such as the family takes."""
    rng, kind = np.random.default_rng(seed), name.split(",")[0].split()[0]
    if kind in ("multinomial", "bernoulli"):
        rates = 0.3 + 1.2 * (np.arange(4) == GROUP[:, None])
        return rng.poisson(rates) + 1.0 * (np.arange(4) == rng.integers(4, size=(N, 1)))
    if kind == "categorical":
        X = np.where(rng.random((N, 4)) < 0.4, GROUP[:, None], rng.integers(3, size=(N, 4))) * 1.0
        X[5, 1] = X[0, 2] = np.nan
        return X
    X = rng.normal(size=(N, 4)) + 1.2 * np.eye(M, 4)[GROUP]
    return X / np.linalg.norm(X, axis=1, keepdims=True) if kind == "von_mises_fisher" else X


def blank(name):
    return 0.0 if name.startswith(("multinomial", "bernoulli")) else np.nan


# -- the families ---------------------------------------------------------------------------------


@every_family
@pytest.mark.parametrize("sparse", [False, True])
def test_a_family_forgets_a_row(name, sparse):
    family, slow = FAMILIES[name]
    if sparse and name == "categorical":
        pytest.skip("codes are dense")
    X, rng = draw(name), np.random.default_rng(1)
    resp = rng.dirichlet(np.full(M, 0.7), size=N) * rng.gamma(2.0, size=(N, 1))
    bound = family.bind(X, np.float64)
    rows = bound.encode(sp.csr_matrix(X) if sparse else X)
    some = np.array([0, 5, 17, N - 1])
    found = bound.log_prob_without(rows[some], resp[some], bound.stats(rows, resp))
    for place, i in enumerate(some):
        others = np.arange(N) != i
        expected = slow(family, X[others], resp[others])(X[i : i + 1])[0]
        np.testing.assert_allclose(found[place], expected, **TOL)
    with_it = bound.log_prob(rows[some], bound.estimate(bound.stats(rows, resp)))
    assert np.abs(found - with_it).max() > 1e-3  # the row does count


@pytest.mark.parametrize("alpha", [1.0, 0.01])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64])
def test_the_short_cut_of_multinomials(alpha, dtype):
    """Only the words of a row change, but for the totals: the base class does all of them."""
    rng, family = np.random.default_rng(0), Multinomial(alpha=alpha, dtype=np.float64)
    X = sp.csr_matrix(rng.poisson(0.5, (50, 30)).astype(dtype))
    X.data[:5] = 0  # stored zeros
    twice = sp.csr_matrix((50, 30), dtype=dtype)  # every count in two parts, in no order
    order = np.concatenate([[*range(hi - 1, lo - 1, -1)] * 2 for lo, hi in limits(X.indptr)])
    twice.indptr, twice.indices, twice.data = 2 * X.indptr, X.indices[order], X.data[order]
    resp = rng.dirichlet(np.full(4, 0.1), size=50)
    for rows, factor in ((X, 1), (twice, 2)):
        stats = family.stats(rows, resp)
        np.testing.assert_allclose(stats.counts, factor * (resp.T @ X), rtol=1e-12)
        before = rows.copy()
        found = family.log_prob_without(rows, resp, stats)
        np.testing.assert_allclose(found, Family.log_prob_without(family, rows, resp, stats), **TOL)
        np.testing.assert_array_equal(rows.indices, before.indices)  # not the caller's


def limits(indptr):
    return zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)


@pytest.mark.parametrize("alpha", [1.0, 0.0])
def test_a_component_without_its_only_row(alpha):
    """Nothing is left but the pseudo-counts, and no rounding speaks for them."""
    family = Multinomial(alpha=alpha, dtype=np.float64)
    X = sp.csr_matrix(np.array([[3.0, 1, 0, 0], [0, 2, 2, 0], [0, 0, 0, 7]]))
    resp = np.array([[0.1 + 0.2, 0.0], [0.0, 0.7], [0.0, 0.3]])
    found = family.log_prob_without(X[:1], resp[:1], family.stats(X, resp))
    assert np.isfinite(found).all()
    if alpha:
        assert found[0, 0] == pytest.approx(4 * np.log(1 / 4), rel=1e-14)
    assert found.dtype == np.float64


@pytest.mark.parametrize("name", [name for name in FAMILIES if name.startswith("gaussian")])
@pytest.mark.parametrize("share", [1e-14, 1e-15, 1e-16, 1e-17, 0.0])
def test_a_gaussian_without_its_only_row_is_that_of_all_rows(name, share):
    """A mass of rounding errors once gave it a mean of rounding errors, 1e7 away."""
    (family, slow), X = FAMILIES[name], draw(name)
    resp = np.tile([share / N, 1.0], (N, 1))
    resp[0] = [1.0, 0.0]
    found = family.log_prob_without(X[:1], resp[:1], family.stats(X, resp))
    everyone = slow(family, X[1:], np.ones((N - 1, 1)))(X[:1])
    np.testing.assert_allclose(found, np.tile(everyone, (1, 2)), rtol=1e-6)


@every_family
def test_no_rows_no_answers(name):
    family, _ = FAMILIES[name]
    X = draw(name)
    bound = family.bind(X, np.float64)
    rows, resp = bound.encode(X), np.full((N, 2), 0.5)
    none = np.array([], dtype=int)
    found = bound.log_prob_without(rows[none], resp[none], bound.stats(rows, resp))
    assert found.shape == (0, 2)


# -- the classifier -------------------------------------------------------------------------------


def slow_leave_one_out(model, slow, views, allowed, weight):
    """Return P(class | row) of the rows with one class, by an M step on all the others."""
    families, theta = list(model.families_.values()), list(model.theta_.values())
    empty = np.stack([f.empty(X) for f, X in zip(families, views, strict=True)], axis=1)
    logs = []
    for v, (family, X) in enumerate(zip(families, views, strict=True)):
        log_prob = family.log_prob(family.encode(X), theta[v])
        logs.append(np.where(empty[:, [v]], 0.0, log_prob) + np.log(model.view_weights_[v]))
    separate = model.coupling == "co-em" and len(views) > 1
    if not separate:
        logs = [sum(logs) - (len(views) - 1) * np.log(model.weights_)] * len(views)
    mine = allowed[:, model.component_classes_]
    post = [np.exp(log_softmax(np.where(mine, model.beta_ * one, -1e9), axis=1)) for one in logs]
    learn, mean = list(post), post[0]
    if separate:
        learn = [blended(post, v, model.history_[-1].eta, empty) for v in range(len(views))]
        total = sum(~empty[:, [v]] * post[v] for v in range(len(views)))
        mean = total / np.maximum((~empty).sum(axis=1, keepdims=True), 1)
    heavy = weight * ~empty.all(axis=1)
    found = []
    for i in np.flatnonzero(allowed.sum(axis=1) == 1):
        others = np.arange(N) != i
        masses = [(heavy[:, None] * part)[others].sum(axis=0) for part in (mean, *learn)]
        weights = class_weights(masses[0], model)
        if model.weights == "per_view":
            there = ~empty.all(axis=0)
            parts = [class_weights(one, model) for one in masses[1:]]
            weights = np.mean([p for p, here in zip(parts, there, strict=True) if here], axis=0)
        log_joint = np.log(weights)
        for v, X in enumerate(views):
            if not empty[i, v]:
                use = others & ~empty[:, v]
                resp = (weight[:, None] * learn[v])[use]
                log_joint = log_joint + slow(families[v], X[use], resp)(X[i : i + 1])[0]
        log_joint = log_softmax(model.beta_ * log_joint)
        classes = range(len(model.classes_))
        found.append([np.exp(logsumexp(log_joint[model.component_classes_ == c])) for c in classes])
    return np.array(found)


def blended(post, v, eta, empty):
    """Return Equation 13 of Bickel & Scheffer (2005), row by row."""
    out = np.zeros_like(post[v])
    for i in np.flatnonzero(~empty[:, v]):
        others = [post[u][i] for u in range(len(post)) if u != v and not empty[i, u]]
        out[i] = (1 - eta) * post[v][i] + eta * np.mean(others or [post[v][i]], axis=0)
    return out


def class_weights(mass, model):
    """Return Equations 3.10 and 3.11 of Nigam et al. (2006)."""
    out = np.empty(len(mass))
    for c in range(len(model.classes_)):
        own = model.component_classes_ == c
        of_class = (1 + mass[own].sum()) / (len(model.classes_) + mass.sum())
        out[own] = of_class * (1 + mass[own]) / (own.sum() + mass[own].sum())
    return out


def labels(n_known=18):
    """Return labels, sets and nothing, and the classes that they allow."""
    y, allowed = np.full(N, None, dtype=object), np.ones((N, M), dtype=bool)
    for i in range(n_known):
        y[i], allowed[i] = "abc"[GROUP[i]], np.arange(M) == GROUP[i]
    y[20], allowed[20] = Not("b"), [True, False, True]
    y[21], allowed[21] = {"a", "b"}, [True, True, False]
    y[22], allowed[22] = {"c"}, [False, False, True]
    return y, allowed


SETTINGS = {
    "one": (1, {}),
    "joint": (2, {"coupling": "joint"}),
    "co-em": (3, {}),
    "co-em, per view": (3, {"weights": "per_view", "eta": 1.0}),
    "sub-topics": (1, {"components_per_class": {"a": 2, "c": 2}}),
    "sub-topics, co-em": (2, {"components_per_class": 2}),
    "warm": (2, {"beta": 0.6}),
}


def check(name, setting, *, lam=1.0, weighted=False, holes=False):
    family, slow = FAMILIES[name]
    n_views, options = SETTINGS[setting]
    views = [draw(name, seed) for seed in range(n_views)]
    if holes:
        for v, X in enumerate(views):
            X[[2 + v, 7, 19, 30 + v]] = blank(name)  # rows 7 and 19 say nothing at all
    y, allowed = labels()
    rng = np.random.default_rng(2)
    sample = rng.gamma(3.0, size=N) / 3 if weighted else np.ones(N)
    model = MixtureClassifier(
        family=family,
        unlabeled_weight=lam,
        dtype=np.float64,
        init="random" if name.startswith("gaussian") else "rows",
        max_iter=6,
        tol=0,
        random_state=0,
        **options,
    ).fit(views, y, sample_weight=sample if weighted else None)
    found = model.leave_one_out(views, y, sample_weight=sample if weighted else None)
    certainty = (M - allowed.sum(axis=1)) / (M - 1)
    weight = sample * (lam + (1 - lam) * certainty)
    expected = slow_leave_one_out(model, slow, views, allowed, weight)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)
    proba = model.predict_proba(views)[allowed.sum(axis=1) == 1]
    assert np.abs(found - proba).max() > 1e-3  # rows that were seen look better


@every_kind
@pytest.mark.parametrize("setting", SETTINGS)
def test_leave_one_out_is_the_slow_refit(name, setting):
    check(name, setting)


@every_kind
@pytest.mark.parametrize("setting", ["one", "joint", "co-em", "co-em, per view"])
def test_leave_one_out_with_weights_and_empty_rows(name, setting):
    check(name, setting, lam=0.3, weighted=True, holes=True)


@every_kind
@pytest.mark.parametrize("coupling", ["co-em", "joint"])
def test_with_all_rows_labelled_it_is_leave_one_out(name, coupling):
    """There is no E step then, so that nothing of the fit depends on the row."""
    views = Views(a=draw(name), b=draw(name, 1))
    family, y, weight = FAMILIES[name][0], np.array(list("abc"))[GROUP], 0.5 + GROUP
    model = MixtureClassifier(family=family, coupling=coupling, dtype=np.float64)
    found = model.fit(views, y, sample_weight=weight).leave_one_out(views, y, sample_weight=weight)
    for i in range(0, N, 8):
        others = np.arange(N) != i
        model.fit(views[others], y[others], sample_weight=weight[others])
        np.testing.assert_allclose(found[i], model.predict_proba(views[[i]])[0], **TOL)


@pytest.mark.parametrize("kind", [list, dict, Views])
def test_views_of_every_kind_have_weights(kind):
    views = {"a": draw("multinomial"), "b": draw("multinomial", 1)}
    X = list(views.values()) if kind is list else kind(views)
    y, weight = labels()[0], np.linspace(0.5, 2, N)
    model = MixtureClassifier(dtype=np.float64).fit(X, y, sample_weight=weight)
    found = model.leave_one_out(X, y, sample_weight=weight)
    np.testing.assert_array_equal(
        found, model.leave_one_out(Views(X) if kind is list else views, y, sample_weight=weight)
    )
    assert not np.allclose(found, model.leave_one_out(X, y))


def test_rows_that_are_not_exactly_labelled_are_not_tested():
    X, (y, allowed) = draw("multinomial"), labels()
    model = MixtureClassifier().fit(X, y)
    assert model.leave_one_out(X, y).shape == ((allowed.sum(axis=1) == 1).sum(), M) == (19, M)
    with pytest.raises(ValueError, match=r"y has 10 labels for 36 rows"):
        model.leave_one_out(X, y[:10])
    with pytest.raises(ValueError, match=r"sample_weight\.shape"):
        model.leave_one_out(X, y, sample_weight=np.ones(3))
