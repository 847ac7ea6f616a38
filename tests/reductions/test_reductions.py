"""One algorithm equals another in a limiting case: naive Bayes, k-means, GaussianMixture, plain EM.

Unless a test says otherwise everything is computed in double precision from the same start, and
the two sides differ by the order of their sums alone: some 1e-14 a step, relative. 1e-9 leaves
room for a few rounds of EM to amplify that and would let no wrong formula pass.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB

from coem import MixtureClassifier, MixtureClusterer, Views
from coem.families import Bernoulli, Categorical, Gaussian, Multinomial
from coem.schedules import Linear, Steps

K = 3
TOL = {"rtol": 1e-9, "atol": 1e-9}
close = np.testing.assert_allclose

every_seed = pytest.mark.parametrize("seed", range(4))
every_covariance = pytest.mark.parametrize("covariance", ["full", "tied", "diag", "spherical"])
exact_weights = pytest.mark.parametrize("weights", ["per_view", "uniform"])


# -- data and starts ------------------------------------------------------------------------------


def topics_of(rng, n):
    return np.concatenate([np.arange(K), rng.integers(K, size=n - K)])  # none without rows


def count_rows(rng, topics, width=25, length=9):
    words = rng.dirichlet(np.full(width, 0.8), size=K)
    return np.array([rng.multinomial(1 + rng.poisson(length), words[j]) for j in topics], float)


def binary_rows(rng, topics, width=12):
    rows = rng.random((len(topics), width)) < rng.uniform(0.15, 0.85, size=(K, width))[topics]
    rows[:, 0] |= ~rows.any(axis=1)  # a row without any feature would be an empty one
    return rows.astype(float)


def code_rows(rng, topics, levels=(2, 3, 4, 5)):
    columns = []
    for m in levels:
        chances = rng.dirichlet(np.ones(m), size=K)[topics].cumsum(axis=1)
        codes = (rng.random((len(topics), 1)) > chances[:, :-1]).sum(axis=1)
        codes[:m] = np.arange(m)  # every level once, whatever the draw
        columns.append(codes)
    return np.stack(columns, axis=1)


def real_rows(rng, topics, width=4, apart=2.0):
    shapes = rng.standard_normal((K, width, width)) / 2 + np.eye(width)
    noise = (rng.standard_normal((len(topics), 1, width)) @ shapes[topics])[:, 0]
    return apart * rng.standard_normal((K, width))[topics] + noise


def soft_start(rng, topics):
    """Return responsibilities that know a little of the topics."""
    return 0.4 * np.eye(K)[topics] + 0.6 * rng.dirichlet(np.ones(K), size=len(topics))


def clusterer(resp, rounds, **options):
    return MixtureClusterer(
        K, **{"init": resp, "max_iter": rounds, "tol": 0, "dtype": np.float64} | options
    )


def arrays(theta):
    """Return the arrays that the parameters of a view consist of."""
    return theta if isinstance(theta, tuple) else (theta,)


def same_parameters(one, other, **tol):
    """Compare weights and parameters, view by view in their order."""
    tol = tol or TOL
    close(one.weights_, other.weights_, **tol)
    for mine, theirs in zip(one.theta_.values(), other.theta_.values(), strict=True):
        for a, b in zip(arrays(mine), arrays(theirs), strict=True):
            close(a, b, **tol)


# -- all labelled: naive Bayes --------------------------------------------------------------------

NAIVE_BAYES = {
    "multinomial": (Multinomial(), count_rows, lambda p: MultinomialNB(alpha=1, class_prior=p)),
    "multinomial 0.1": (
        Multinomial(alpha=0.1),
        count_rows,
        lambda p: MultinomialNB(alpha=0.1, class_prior=p),
    ),
    "bernoulli": (Bernoulli(), binary_rows, lambda p: BernoulliNB(alpha=1, class_prior=p)),
    "categorical": (Categorical(), code_rows, lambda p: CategoricalNB(alpha=1, class_prior=p)),
    "gaussian": (
        Gaussian("diag", reg=0),
        real_rows,
        lambda p: GaussianNB(priors=p, var_smoothing=0),
    ),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAIVE_BAYES)
def test_all_labelled_is_naive_bayes(name, weighted):
    family, rows_of, naive_bayes = NAIVE_BAYES[name]
    rng = np.random.default_rng(11)
    topics = topics_of(rng, 150)
    X, y = rows_of(rng, topics), np.array(["ham", "news", "spam"])[topics]
    weight = rng.gamma(1.0, size=150) if weighted else None
    model = MixtureClassifier(family=family, dtype=np.float64).fit(X, y, sample_weight=weight)
    mass = np.bincount(topics, weights=weight)
    close(model.weights_, (1 + mass) / (K + mass.sum()), **TOL)  # Nigam 2006, Eq. 3.6
    truth = naive_bayes(model.weights_).fit(X, y, sample_weight=weight)
    assert model.classes_.tolist() == truth.classes_.tolist()
    expected = truth.predict_log_proba(X)
    assert expected.min() > -300  # or else log(predict_proba) would be log(0)
    close(np.log(model.predict_proba(X)), expected, **TOL)
    np.testing.assert_array_equal(model.predict(X), truth.predict(X))


@pytest.mark.parametrize("name", NAIVE_BAYES)
def test_all_labelled_default_precision(name):
    """A log probability is good to 3e-7, a row is some ten features long."""
    family, rows_of, naive_bayes = NAIVE_BAYES[name]
    rng = np.random.default_rng(12)
    topics = topics_of(rng, 150)
    X = rows_of(rng, topics)
    model = MixtureClassifier(family=family).fit(X, topics)
    truth = naive_bayes(model.weights_).fit(X, topics)
    close(model.predict_proba(X), truth.predict_proba(X), rtol=0, atol=1e-5)


@pytest.mark.parametrize("coupling", ["joint", "co-em"])
def test_all_labelled_views_multiply(coupling):
    """With several views, log p(x | class) is the sum over the views, Eq. 19 of 2005."""
    rng = np.random.default_rng(13)
    topics = topics_of(rng, 120)
    X = Views(words=count_rows(rng, topics), marks=binary_rows(rng, topics))
    model = MixtureClassifier(
        family={"words": "multinomial", "marks": "bernoulli"}, coupling=coupling, dtype=np.float64
    ).fit(X, topics)
    uniform = np.full(K, 1 / K)
    words = MultinomialNB(class_prior=uniform).fit(X["words"], topics)
    marks = BernoulliNB(class_prior=uniform).fit(X["marks"], topics)
    log_joint = words.predict_joint_log_proba(X["words"]) + np.log(model.weights_)
    log_joint = log_joint + marks.predict_joint_log_proba(X["marks"])
    proba = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    close(model.predict_proba(X), proba / proba.sum(axis=1, keepdims=True), **TOL)


# -- unlabeled_weight = 0: supervised -------------------------------------------------------------


@pytest.mark.parametrize("coupling", ["joint", "co-em"])
@pytest.mark.parametrize("posterior", ["soft", "hard"])
def test_unlabeled_weight_0_is_supervised(coupling, posterior):
    rng = np.random.default_rng(14)
    topics = topics_of(rng, 150)
    X = Views(a=count_rows(rng, topics), b=count_rows(rng, topics, width=12))
    known = np.arange(150) < 40
    options = {"coupling": coupling, "posterior": posterior, "dtype": np.float64}
    model = MixtureClassifier(unlabeled_weight=0, **options).fit(X, np.where(known, topics, -1))
    truth = MixtureClassifier(**options).fit(X[known], topics[known])
    same_parameters(model, truth)
    close(model.predict_proba(X), truth.predict_proba(X), **TOL)
    other = MixtureClassifier(**options).fit(X, np.where(known, topics, -1))
    assert np.abs(other.predict_proba(X) - truth.predict_proba(X)).max() > 0.01


def nigam(X, y, rounds, unlabeled_weight):
    """Return word logs and priors of Nigam 2006, Table 3.1, after so many rounds of E and M."""
    known = y >= 0
    weight = np.where(known, 1.0, unlabeled_weight)[:, None]
    given = np.eye(K)[y] * known[:, None]
    resp = given  # the first M step sees the labelled rows alone
    for _ in range(rounds):
        theta, prior = laplace(X, resp * weight)
        log_joint = X @ theta.T + np.log(prior)
        soft = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        resp = np.where(known[:, None], given, soft / soft.sum(axis=1, keepdims=True))
    return laplace(X, resp * weight)


def laplace(X, resp):
    """Return the M step with one pseudo-count a word and a class (Eq. 3.5, 3.6)."""
    counts, mass = 1 + resp.T @ X, 1 + resp.sum(axis=0)
    return np.log(counts / counts.sum(axis=1, keepdims=True)), mass / mass.sum()


@pytest.mark.parametrize("unlabeled_weight", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("rounds", [1, 2, 10])
def test_some_labelled_is_nigam(unlabeled_weight, rounds):
    rng = np.random.default_rng(15)
    topics = topics_of(rng, 150)
    X, y = count_rows(rng, topics), np.where(np.arange(150) < 20, topics, -1)
    model = MixtureClassifier(
        unlabeled_weight=unlabeled_weight, max_iter=rounds, tol=0, dtype=np.float64
    ).fit(X, y)
    theta, prior = nigam(X, y, rounds, unlabeled_weight)
    close(model.theta_["view0"], theta, **TOL)
    close(model.weights_, prior, **TOL)
    # Labelled rows are worth their log joint, unlabelled ones their log likelihood.
    log_joint = X @ theta.T + np.log(prior)
    worth = np.where(y >= 0, log_joint[np.arange(150), y], np.log(np.exp(log_joint).sum(axis=1)))
    expected = worth @ np.where(y >= 0, 1.0, unlabeled_weight)
    expected += theta.sum() + np.log(prior).sum()
    assert model.objective_ == pytest.approx(expected, rel=1e-11)
    trace = [record.objective for record in model.history_]
    assert np.all(np.diff(trace) >= -1e-9 * np.abs(trace[-1]))


# -- unit Gaussian, hard posterior, uniform weights: k-means --------------------------------------


@every_seed
def test_hard_unit_gaussian_is_k_means(seed):
    rng = np.random.default_rng(seed)
    topics = topics_of(rng, 200)
    X = real_rows(rng, topics, apart=1.0)
    centres = X[rng.choice(200, size=K, replace=False)]
    nearest = ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    model = clusterer(
        np.eye(K)[nearest], 60, family=Gaussian("unit"), posterior="hard", weights="uniform"
    ).fit(X)
    truth = KMeans(K, init=centres, n_init=1, tol=0, max_iter=60, algorithm="lloyd").fit(X)
    assert 3 <= truth.n_iter_ < 60  # it had something to do, and it is done
    np.testing.assert_array_equal(model.labels_, truth.labels_)
    np.testing.assert_array_equal(model.predict(X), truth.predict(X))
    close(model.theta_["view0"].means, truth.cluster_centers_, **TOL)
    # Every row is worth log(1 / k), the constant of the density and half its squared distance.
    constant = len(X) * (np.log(K) + X.shape[1] / 2 * np.log(2 * np.pi))
    close(-2 * (model.objective_ + constant), truth.inertia_, rtol=1e-9)


@every_seed
def test_k_means_round_by_round(seed):
    """After so many rounds the centres are those of as many steps of Lloyd's algorithm."""
    rng = np.random.default_rng(seed)
    topics = topics_of(rng, 200)
    X = real_rows(rng, topics, apart=1.0)
    labels = rng.integers(K, size=200)
    options = {"family": Gaussian("unit"), "posterior": "hard", "weights": "uniform"}
    for rounds in (1, 2, 5):
        model = clusterer(np.eye(K)[labels], rounds, **options).fit(X)
        mine = labels
        for _ in range(rounds):
            centres = np.array([X[mine == j].mean(axis=0) for j in range(K)])
            mine = ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
        close(model.theta_["view0"].means, centres, **TOL)
        np.testing.assert_array_equal(model.labels_, mine)


# -- every covariance type: GaussianMixture -------------------------------------------------------


def moments(X, resp, covariance, reg):
    """Return weights, means and covariances of a covariance type, by the definitions."""
    mass = resp.sum(axis=0)
    means = resp.T @ X / mass[:, None]
    centred = X[:, None] - means
    full = np.einsum("nk,nkd,nke->kde", resp, centred, centred) / mass[:, None, None]
    full = full + reg * np.eye(X.shape[1])
    if covariance == "tied":
        return mass / len(X), means, np.einsum("k,kde->de", mass / len(X), full)
    diagonal = np.einsum("kdd->kd", full)
    kinds = {"full": full, "diag": diagonal, "spherical": diagonal.mean(axis=1)}
    return mass / len(X), means, kinds[covariance]


def gaussian_mixture(X, resp, covariance, reg, rounds):
    """Return scikit-learn's model after so many M steps, the first on `resp`."""
    weights, means, covariances = moments(X, resp, covariance, reg)
    matrix = covariance in ("full", "tied")
    precisions = np.linalg.inv(covariances) if matrix else 1 / covariances
    return GaussianMixture(
        K,
        covariance_type=covariance,
        reg_covar=reg,
        tol=0,
        max_iter=rounds - 1,  # its start has had one M step
        weights_init=weights,
        means_init=means,
        precisions_init=precisions,
    ).fit(X)


@every_covariance
@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@pytest.mark.parametrize("reg", [0.0, 1e-6, 0.1])
@pytest.mark.parametrize("rounds", [2, 10])
def test_gaussian_is_gaussian_mixture(covariance, reg, rounds):
    """scikit-learn centres before it squares, and adds 2e-15 to every mass: 1e-8 is far above."""
    rng = np.random.default_rng(21)
    topics = topics_of(rng, 300)
    X, resp = real_rows(rng, topics), soft_start(rng, topics)
    truth = gaussian_mixture(X, resp, covariance, reg, rounds)
    model = clusterer(resp, rounds, family=Gaussian(covariance, reg=reg)).fit(X)
    theta, tol = model.theta_["view0"], {"rtol": 1e-8, "atol": 1e-8}
    covariances = truth.covariances_
    if covariance == "tied":
        covariances = np.broadcast_to(covariances, (K, *covariances.shape))
    close(model.weights_, truth.weights_, **tol)
    close(theta.means, truth.means_, **tol)
    close(theta.covariances, covariances, **tol)
    close(model.predict_proba(X), truth.predict_proba(X), **tol)
    close(model.score_samples(X), truth.score_samples(X), **tol)
    close(model.objective_ / len(X), truth.score(X), **tol)
    np.testing.assert_array_equal(model.labels_, truth.predict(X))


@every_covariance
def test_gaussian_information_criteria(covariance):
    """The criteria count the same free parameters as scikit-learn's."""
    rng = np.random.default_rng(22)
    topics = topics_of(rng, 200)
    X, resp = real_rows(rng, topics), soft_start(rng, topics)
    model = clusterer(resp, 1, family=Gaussian(covariance)).fit(X)
    truth = GaussianMixture(K, covariance_type=covariance, random_state=0).fit(X)
    log_likelihood = model.score(X) * len(X)
    penalty = truth.bic(X) + 2 * truth.score(X) * len(X)
    close(model.bic(X), penalty - 2 * log_likelihood, rtol=1e-9)


# -- views that are no views ----------------------------------------------------------------------


@exact_weights
@pytest.mark.parametrize("posterior", ["soft", "hard"])
def test_co_em_on_identical_views_is_em(weights, posterior):
    """At eta = 1 a view goes on from its twin: a round of two views is two rounds of EM.

    The first view is one step behind. (Global weights average over the twins, of which one is
    behind; they agree where EM ends, as the next test has it.)
    """
    rng = np.random.default_rng(31)
    topics = topics_of(rng, 120)
    X, resp = count_rows(rng, topics), soft_start(rng, topics)
    options = {"weights": weights, "posterior": posterior}
    for rounds in (1, 3, 10):
        model = clusterer(resp, rounds, eta=1, **options).fit([X, X])
        views = model.view_proba([X, X])
        for v, steps in enumerate((2 * rounds - 1, 2 * rounds)):
            truth = clusterer(resp, steps, **options).fit(X)
            close(model.theta_[f"view{v}"], truth.theta_["view0"], **TOL)
            close(model.view_weights_[v], truth.weights_, **TOL)
            close(views[:, v], truth.predict_proba(X), **TOL)


@pytest.mark.parametrize("eta", [0.3, 1.0])
@pytest.mark.parametrize("weights", ["global", "per_view", "uniform"])
def test_co_em_on_identical_views_ends_where_em_ends(eta, weights):
    """After 300 rounds nothing moves any more but the last digits."""
    rng = np.random.default_rng(32)
    topics = topics_of(rng, 120)
    X, resp = count_rows(rng, topics), soft_start(rng, topics)
    model = clusterer(resp, 300, eta=eta, weights=weights).fit([X, X])
    truth = clusterer(resp, 300, weights=weights).fit(X)
    assert abs(truth.history_[-1].objective - truth.history_[-2].objective) < 1e-10
    close(model.weights_, truth.weights_, **TOL)
    for v in range(2):
        close(model.theta_[f"view{v}"], truth.theta_["view0"], **TOL)
        close(model.view_proba([X, X])[:, v], truth.predict_proba(X), **TOL)
    assert model.history_[-1].dissent == pytest.approx(0, abs=1e-9)
    assert model.history_[-1].agreement_rate == 1


@exact_weights
@pytest.mark.parametrize("posterior", ["soft", "hard"])
def test_eta_0_is_em_in_every_view(weights, posterior):
    """Views apart: each is plain EM on its own rows, the empty ones left out."""
    rng = np.random.default_rng(33)
    topics = topics_of(rng, 150)
    views = [count_rows(rng, topics), count_rows(rng, topics, width=12), real_rows(rng, topics)]
    views[0][10:20] = 0
    views[2][15:30] = np.nan
    resp, families = soft_start(rng, topics), ["multinomial", "multinomial", Gaussian("diag")]
    options = {"weights": weights, "posterior": posterior}
    named = {f"view{v}": family for v, family in enumerate(families)}
    model = clusterer(resp, 8, eta=0, family=named, **options).fit(views)
    proba = model.view_proba(views)
    for v, family in enumerate(families):
        truth = clusterer(resp, 8, family=family, **options).fit(views[v])
        mine = arrays(model.theta_[f"view{v}"])
        for a, b in zip(mine, arrays(truth.theta_["view0"]), strict=True):
            close(a, b, **TOL)
        close(model.view_weights_[v], truth.weights_, **TOL)
        close(proba[:, v], truth.predict_proba(views[v]), **TOL)
        traces = zip(model.history_, truth.history_, strict=True)
        for one, other in traces:
            log_likelihood = other.log_likelihood["view0"]
            assert one.log_likelihood[f"view{v}"] == pytest.approx(log_likelihood, rel=1e-11)


CONCATENATE = {
    "bernoulli": (Bernoulli(), binary_rows),
    "categorical": (Categorical(), code_rows),
    "diag": (Gaussian("diag"), real_rows),
    "unit": (Gaussian("unit"), real_rows),
}


@pytest.mark.parametrize("posterior", ["soft", "hard"])
@pytest.mark.parametrize("name", CONCATENATE)
def test_joint_is_em_on_the_concatenation(name, posterior):
    """Columns that are independent given the component do not mind in which view they are."""
    family, rows_of = CONCATENATE[name]
    rng = np.random.default_rng(34)
    topics = topics_of(rng, 150)
    X, resp = Views(a=rows_of(rng, topics), b=rows_of(rng, topics)), soft_start(rng, topics)
    options = {"family": family, "posterior": posterior}
    joint = clusterer(resp, 8, coupling="joint", **options).fit(X)
    whole = clusterer(resp, 8, **options).fit(X.concat())
    close(joint.predict_proba(X), whole.predict_proba(X.concat()), **TOL)
    close(joint.weights_, whole.weights_, **TOL)
    mine, theirs = ([r.objective for r in model.history_] for model in (joint, whole))
    close(mine, theirs, rtol=1e-11)


def test_joint_multinomials_are_not_the_concatenation():
    """The concatenation also knows, for each component, how many words come from which view.

    p(w | j) = p(view of w | j) p(w | j, view): dividing the first factor out of the concatenated
    multinomial gives an M step of the joint one, pseudo-counts left out.
    """
    rng = np.random.default_rng(35)
    topics = topics_of(rng, 150)
    X, resp = Views(a=count_rows(rng, topics), b=count_rows(rng, topics)), soft_start(rng, topics)
    family = Multinomial(alpha=0)
    joint = clusterer(resp, 1, coupling="joint", family=family).fit(X)
    whole = clusterer(resp, 1, family=family).fit(X.concat())
    width = X["a"].shape[1]
    for name, columns in (("a", slice(0, width)), ("b", slice(width, None))):
        part = np.exp(whole.theta_["view0"][:, columns])
        close(np.exp(joint.theta_[name]), part / part.sum(axis=1, keepdims=True), **TOL)
    assert np.abs(joint.predict_proba(X) - whole.predict_proba(X.concat())).max() > 1e-3


# -- temperature ----------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [Linear(1, 1, 5), Steps([1.0, 1.0], 3), 1])
def test_beta_1_is_plain_em(beta):
    rng = np.random.default_rng(41)
    topics = topics_of(rng, 120)
    X, resp = count_rows(rng, topics), soft_start(rng, topics)
    model, truth = (clusterer(resp, 10, beta=b).fit(X) for b in (beta, 1.0))
    same_parameters(model, truth, rtol=0, atol=0)
    assert [r.objective for r in model.history_] == [r.objective for r in truth.history_]


@pytest.mark.parametrize("views", [1, 2])
def test_small_beta_gives_uniform_responsibilities(views):
    """The log odds of a row are some tens; beta times that is what is left of them."""
    rng = np.random.default_rng(42)
    topics = topics_of(rng, 120)
    X, resp = [count_rows(rng, topics) for _ in range(views)], soft_start(rng, topics)
    for beta, atol in ((1e-6, 1e-4), (0.0, 1e-15)):
        model = clusterer(resp, 1, beta=beta).fit(X)
        assert np.ptp(model.view_proba(X)) <= 2 * atol
        close(model.predict_proba(X), 1 / K, rtol=0, atol=atol)
        # One more round, and the components are the same.
        model = clusterer(resp, 2, beta=beta).fit(X)
        for theta in model.theta_.values():
            close(theta, theta[:1].repeat(K, axis=0), rtol=0, atol=20 * atol)
        close(model.weights_, 1 / K, rtol=0, atol=atol)


# -- starts ---------------------------------------------------------------------------------------

STARTS = {
    "one view": {"n_views": 1},
    "joint": {"n_views": 2, "coupling": "joint"},
    "hard": {"n_views": 1, "posterior": "hard"},
    "uniform": {"n_views": 1, "weights": "uniform"},
    "tempered": {"n_views": 1, "beta": 0.5},
    "co-em": {"n_views": 3, "eta": 0.8},
    "co-em, weights per view": {"n_views": 3, "eta": 0.8, "weights": "per_view"},
    "co-em, hard": {"n_views": 2, "posterior": "hard", "weights": "uniform"},
}


@pytest.mark.parametrize("name", STARTS)
def test_warm_start_goes_on(name):
    """Five rounds, and five more from the fitted model, are ten."""
    options = dict(STARTS[name])
    rng = np.random.default_rng(51)
    topics = topics_of(rng, 120)
    X = [count_rows(rng, topics) for _ in range(options.pop("n_views"))]
    resp = soft_start(rng, topics)
    half = clusterer(resp, 5, **options).fit(X)
    model = clusterer(half, 5, **options).fit(X)
    truth = clusterer(resp, 10, **options).fit(X)
    same_parameters(model, truth)
    close(model.predict_proba(X), truth.predict_proba(X), **TOL)
    whole = half.history_ + model.history_
    close([r.objective for r in whole], [r.objective for r in truth.history_], rtol=1e-12)


def test_schedule_from_parameters_heats_the_first_e_step():
    """A start from parameters has an E step before round 1, which takes the first beta."""
    rng = np.random.default_rng(54)
    topics = topics_of(rng, 120)
    X = count_rows(rng, topics)
    warm = clusterer(soft_start(rng, topics), 2).fit(X)
    model = clusterer(warm, 6, beta=Linear(0.2, 1, 5)).fit(X)
    heated = (X @ np.asarray(warm.theta_["view0"]).T + np.log(warm.weights_)) * 0.2
    resp = np.exp(heated) / np.exp(heated).sum(axis=1, keepdims=True)
    later = [0.36, 0.52, 0.68, 0.84, 1.0]
    same_parameters(model, clusterer(resp, 6, beta=Steps(later)).fit(X))
    close([record.beta for record in model.history_], [*later, 1.0], rtol=1e-12)


@pytest.mark.parametrize("weights", ["global", "per_view", "uniform"])
def test_warm_start_of_a_fixed_point_stays(weights):
    """Where co-EM has ended, going on changes nothing but the last digits."""
    rng = np.random.default_rng(52)
    topics = topics_of(rng, 120)
    X = [count_rows(rng, topics), count_rows(rng, topics, width=12)]
    model = clusterer(soft_start(rng, topics), 300, weights=weights).fit(X)
    again = clusterer(model, 3, weights=weights).fit(X)
    same_parameters(again, model, rtol=0, atol=1e-7)


def test_one_round_from_an_array_is_one_m_step():
    rng = np.random.default_rng(53)
    topics = topics_of(rng, 120)
    X, resp = count_rows(rng, topics), soft_start(rng, topics)
    model = clusterer(resp, 1).fit(sp.csr_matrix(X))
    counts = resp.T @ X + 1
    close(np.exp(model.theta_["view0"]), counts / counts.sum(axis=1, keepdims=True), **TOL)
    close(model.weights_, resp.mean(axis=0), **TOL)
    assert len(model.history_) == model.n_iter_ == 1
    log_joint = X @ np.asarray(model.theta_["view0"]).T + np.log(model.weights_)
    evidence = np.log(np.exp(log_joint).sum(axis=1))
    penalty = model.theta_["view0"].sum()
    assert model.objective_ == pytest.approx(evidence.sum() + penalty, rel=1e-11)


# -- what the objective is ------------------------------------------------------------------------


@pytest.mark.parametrize("weights", ["global", "uniform"])
@pytest.mark.parametrize("n_views", [1, 2])
def test_hard_objective_is_the_classification_likelihood(weights, n_views):
    rng = np.random.default_rng(61)
    topics = topics_of(rng, 120)
    X, resp = [count_rows(rng, topics) for _ in range(n_views)], soft_start(rng, topics)
    model = clusterer(resp, 7, coupling="joint", posterior="hard", weights=weights).fit(X)
    tables = [np.asarray(table) for table in model.theta_.values()]
    log_joint = np.log(model.weights_) + sum(
        rows @ table.T for rows, table in zip(X, tables, strict=True)
    )
    expected = log_joint.max(axis=1).sum() + sum(table.sum() for table in tables)
    assert model.objective_ == pytest.approx(expected, rel=1e-11)
    np.testing.assert_array_equal(model.labels_, log_joint.argmax(axis=1))


@pytest.mark.parametrize("n_views", [1, 2])
def test_objective_is_score_and_penalty(n_views):
    rng = np.random.default_rng(62)
    topics = topics_of(rng, 120)
    X, resp = [count_rows(rng, topics) for _ in range(n_views)], soft_start(rng, topics)
    model = clusterer(resp, 7, coupling="joint").fit(X)
    penalty = sum(np.asarray(table).sum() for table in model.theta_.values())
    assert model.objective_ == pytest.approx(model.score_samples(X).sum() + penalty, rel=1e-11)
    assert model.score(X) == pytest.approx(model.score_samples(X).mean(), rel=1e-12)
