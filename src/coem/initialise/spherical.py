"""init="spherical": a few rounds of k-means before the first round of EM.

It calls `em` with hard posteriors and the coupling of the model, on rows that are rescaled for
k-means. docs/starts.md has the measurements behind the constants.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import normalize

from coem.em import Result, em
from coem.engine.sessions import WholeSession
from coem.families import Gaussian, VonMisesFisher
from coem.families.base import AnyFamily
from coem.families.mixture_of import innermost
from coem.initialise.seeds import Distances, by_content, choose_apart, filled, squares_of
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.latent.sphere import Sphere, SphereState, refill
from coem.latent.weights import UniformWeights
from coem.posterior import Hard
from coem.protocols import Latent, Session, SummaryOut, Theta
from coem.schedules import Constant
from coem.typing import CSR, Array, Matrix, Rng, is_sparse

BEGINNINGS = 8
FIRST_ROUNDS = 3  # for each beginning
MORE_ROUNDS = 7  # for the best beginning
CELLS = 1 << 26  # of the means of a view whose parameters are not a dense table: 0.5 GB of sums


class Found(NamedTuple):
    """The result of some rounds of k-means."""

    objective: float
    labels: Array  # (n_views, n_rows), or (1, n_rows) if all views share the clusters
    fits: Array  # how well each row fits its cluster; same shape


def spherical(model: Mixture, part: Partition) -> Callable[[Rng], Array]:
    """Return a function that draws seeds and returns the clusters after a few rounds of k-means.

    `rescaled` scales every view such that its rows have unit length on average. There are several
    beginnings, each from seeds far apart. After a few rounds, only the best of them continues.
    Under co-EM every view has its own clusters and learns them from those of the other views: the
    multi-view k-means of Bickel & Scheffer (2004, Sec. 4.3).
    """
    pairs = enumerate(zip(model.emissions.families, part.views, strict=True))
    k = model.n_components
    families, rows = zip(
        *(
            rescaled(family, _fitting(family, X, k), part.view_weight(v))
            for v, (family, X) in pairs
        ),
        strict=True,
    )
    seen = Partition(rows, part.empty, part.weight)
    distances = Distances([(X, squares_of(X)) for X in rows], part.empty)
    # A view that is empty in all rows must not change what is drawn.
    drawn = [X for v, X in enumerate(rows) if part.empty is None or not part.empty[:, v].all()]
    weight, order = part.row_weight(), by_content(drawn or rows)
    weights = [seen.view_weight(slot[0]) for slot in model.slots]
    weights = weights if len(weights) > 1 or len(rows) == 1 else [weight]

    def draw(rng: Rng) -> Array:
        means = k_means(model, families, seen)
        _, beginnings = choose_apart(weight, distances, k, rng, BEGINNINGS, order)
        tries = [means.improve(labels, FIRST_ROUNDS) for labels in beginnings]
        best = means.improve(best_of(tries).labels, MORE_ROUNDS)
        for labels, fit, mass in zip(best.labels, best.fits, weights, strict=True):
            fill_gaps(labels, fit, mass, k)
        return best.labels

    return draw


def best_of(tries: Sequence[Found]) -> Found:
    """Return the first of the best. Beginnings that end alike differ by rounding alone."""
    top = max(found.objective for found in tries)
    return next(found for found in tries if found.objective >= top - 1e-12 * abs(top))


def k_means(model: Mixture, families: Sequence[AnyFamily], part: Partition) -> "Means | Directions":
    """Return k-means over views that are rescaled, with the coupling of a model."""
    if len(families) == 1 and isinstance(families[0], VonMisesFisher):
        return Directions(Sphere(1, model.n_components, refills=False), part)
    emissions = Emissions(tuple(families))
    hard = Mixture(emissions, model.n_components, model.coupling, Hard(), UniformWeights())
    return Means(hard, part)


@dataclass
class Means:
    """K-means as a mixture with hard posteriors."""

    latent: Mixture
    part: Partition

    def improve(self, labels: Array, rounds: int) -> Found:
        """Run some rounds from given labels."""
        start = self.part.starting_from(labels)
        session = WholeSession(self.latent, start, self.latent.unknown())
        result = _rounds(self.latent, session, rounds)
        (state,) = session.states
        return Found(result.objective, state.resp.argmax(axis=2), state.evidence)


@dataclass
class Directions:
    """K-means of the directions of one view: the same result as `Means`, with less memory and time.

    A call updates the sums of the call before it, because fewer rows change than in a new start.
    """

    latent: Sphere
    part: Partition
    state: SphereState | None = None

    def improve(self, labels: Array, rounds: int) -> Found:
        """Run some rounds from given labels."""
        start = self.part.starting_from(labels)
        session = WholeSession(self.latent, start, self.latent.unknown(), self.state)
        result = _rounds(self.latent, session, rounds)
        (self.state,) = session.states
        self.state.version = [0]  # the next call has other concept vectors
        rows = self.state.views[0]
        return Found(result.objective, rows.labels[np.newaxis].copy(), rows.cosines[np.newaxis])


def _rounds(
    latent: Latent[Any, Theta, Any, SummaryOut], session: Session[Theta, Any, SummaryOut], n: int
) -> Result[Theta]:
    """Run a fixed number of rounds."""
    one = Constant(1.0)
    return em(latent, session, eta=one, beta=one, max_iter=n, tol=0.0)


def fill_gaps(labels: Array, fit: Array, weight: Array | None, k: int) -> None:
    """Give each component without rows the row that fits worst; never the only row of another."""
    present = labels if weight is None else np.where(weight > 0, labels, -1)
    for component, row in refill(present, fit, k):
        labels[row] = component


def rescaled(family: AnyFamily, X: Matrix, weight: Array | None) -> tuple[AnyFamily, Matrix]:
    """Return the rows of a view as k-means is to see them, and the family that does so.

    Directions do not change. Sparse counts become TF-IDF rows of unit length. All other rows are
    divided by the standard deviations of their columns, and then scaled such that their mean
    squared distance from the mean is one. In each of these families the log likelihood of a row
    falls by half its squared distance from the centre, so that the views can be added.
    """
    family = innermost(family)
    if isinstance(family, VonMisesFisher):
        return replace(family, kappa=1.0), X
    mass = np.ones(X.shape[0]) if weight is None else weight
    if family.nonnegative and is_sparse(X):
        return VonMisesFisher(1.0), _tf_idf(X, mass)
    return Gaussian("unit"), _standardised(X, mass)


def _fitting(family: AnyFamily, X: Matrix, k: int) -> Matrix:
    """Return rows whose k means can be dense: if need be the words that most of the rows have."""
    n_most = max(CELLS // k, 1)
    if not (is_sparse(X) and family.lists_words(k, X.shape[1]) and X.shape[1] > n_most):
        return X
    frequency = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    most = np.sort(np.argsort(-frequency, kind="stable")[:n_most])
    places = np.full(X.shape[1], -1, dtype=np.int32)
    places[most] = np.arange(n_most)
    kept = places[X.indices]
    there = kept >= 0
    offsets = np.append(0, np.cumsum(there))[X.indptr]
    # By hand: SciPy takes columns one row after the other, in an order that depends on the rows.
    fitting: CSR = sp.csr_matrix((X.data[there], kept[there], offsets), shape=(X.shape[0], n_most))
    return fitting


def _tf_idf(X: CSR, mass: Array) -> CSR:
    """Return unit rows of log(1 + count) times how rare the word is."""
    X = X.astype(np.float32, copy=True)
    X.sum_duplicates()
    there = np.repeat(mass, np.diff(X.indptr)) * (X.data > 0)
    frequency = np.bincount(X.indices, weights=there, minlength=X.shape[1])
    rarity = np.log((1 + mass.sum()) / (1 + frequency)) + 1
    X.data = np.log1p(X.data) * rarity[X.indices].astype(np.float32)
    unit: CSR = normalize(X, copy=False)
    return unit


def _standardised(X: Matrix, mass: Array) -> Matrix:
    """Return rows whose columns have equal variances that sum to 1; sparse rows are not centred.

    A missing entry (NaN) becomes the mean of its column, and does not change its variance.
    """
    share = mass / max(float(mass.sum()), 1e-300)
    observed: float | Array = 1.0
    if not is_sparse(X) and np.isnan(X).any():
        observed, X = np.maximum(share @ ~np.isnan(X), 1e-300), filled(X, share)
    mean = np.asarray(share @ X)
    if is_sparse(X):
        squares = np.asarray(share @ X.multiply(X).tocsr())
        spread = np.sqrt(np.maximum(squares - mean * mean, 0.0))
    else:
        X = np.asarray(X - mean)
        spread = np.sqrt(share @ (X * X) / observed)
    varied = spread > 1e-12 * np.abs(mean)  # the spread of a constant column is a rounding error
    by = np.divide(1.0, spread, out=np.zeros(len(spread)), where=varied)
    by /= np.sqrt(max(int(varied.sum()), 1))
    scaled: Matrix = X.multiply(by).tocsr() if is_sparse(X) else X * by
    return scaled
