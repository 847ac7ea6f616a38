"""init="spherical": a few rounds of k-means before the first round.

It is the loop itself, on the rows as k-means is to see them, with hard posteriors and the coupling
of the model. docs/starts.md has the figures behind the constants.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import normalize

from coem.em import Result, em
from coem.engine.sessions import WholeSession
from coem.families import Gaussian, VonMisesFisher
from coem.families.base import AnyFamily
from coem.initialise.seeds import Distances, by_content, choose_apart, squares_of
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
FIRST_ROUNDS = 3  # of every beginning
MORE_ROUNDS = 7  # of the best one


class Found(NamedTuple):
    """Where some rounds of k-means end."""

    objective: float
    labels: Array  # (n_views, n_rows), or (1, n_rows) for one partition of all views
    fits: Array  # the same shape: how well each row fits


def spherical(model: Mixture, part: Partition) -> Callable[[Rng], Array]:
    """Return what draws the partitions that a few rounds of k-means find.

    Every view is measured by a scale of its own (`rescaled`), by which its rows have unit length
    on average. Of several beginnings from seeds far apart, the one that is best after a few rounds
    goes on. Under co-EM every view has a partition of its own, learnt from those of the others:
    the multi-view k-means of Bickel & Scheffer (2004, Sec. 4.3).
    """
    pairs = enumerate(zip(model.emissions.families, part.views, strict=True))
    families, rows = zip(
        *(rescaled(family, X, part.view_weight(v)) for v, (family, X) in pairs), strict=True
    )
    seen, k = Partition(rows, part.empty, part.weight), model.n_components
    distances = Distances([(X, squares_of(X)) for X in rows], part.empty)
    weight, order = part.row_weight(), by_content(rows)
    weights = [seen.view_weight(slot[0]) for slot in model.slots]
    weights = weights if len(weights) > 1 or len(rows) == 1 else [weight]

    def draw(rng: Rng) -> Array:
        means = k_means(model, families, seen)
        _, beginnings = choose_apart(weight, distances, k, rng, BEGINNINGS, order)
        tries = [means.improve(labels, FIRST_ROUNDS) for labels in beginnings]
        best = max(tries, key=lambda found: found.objective)
        best = means.improve(best.labels, MORE_ROUNDS)
        for labels, fit, mass in zip(best.labels, best.fits, weights, strict=True):
            fill_gaps(labels, fit, mass, k)
        return best.labels

    return draw


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
        """Return where some rounds from given partitions end."""
        start = self.part.starting_from(labels)
        session = WholeSession(self.latent, start, self.latent.unknown())
        result = _rounds(self.latent, session, rounds)
        (state,) = session.states
        return Found(result.objective, state.resp.argmax(axis=2), state.evidence)


@dataclass
class Directions:
    """K-means of the directions of one view: the same, in less memory and time.

    The sums of one call serve the next, which changes fewer rows than a new start would.
    """

    latent: Sphere
    part: Partition
    state: SphereState | None = None

    def improve(self, labels: Array, rounds: int) -> Found:
        """Return where some rounds from a given partition end."""
        start = self.part.starting_from(labels)
        session = WholeSession(self.latent, start, self.latent.unknown(), self.state)
        result = _rounds(self.latent, session, rounds)
        (self.state,) = session.states
        self.state.version = [0]  # the next start has other concept vectors
        rows = self.state.views[0]
        return Found(result.objective, rows.labels[np.newaxis].copy(), rows.cosines[np.newaxis])


def _rounds(
    latent: Latent[Any, Theta, Any, SummaryOut], session: Session[Theta, Any, SummaryOut], n: int
) -> Result[Theta]:
    """Run a fixed number of rounds."""
    one = Constant(1.0)
    return em(latent, session, eta=one, beta=one, max_iter=n, tol=0.0)


def fill_gaps(labels: Array, fit: Array, weight: Array | None, k: int) -> None:
    """Give every component without rows the row that fits worst, but not another's only one."""
    present = labels if weight is None else np.where(weight > 0, labels, -1)
    for component, row in refill(present, fit, k):
        labels[row] = component


def rescaled(family: AnyFamily, X: Matrix, weight: Array | None) -> tuple[AnyFamily, Matrix]:
    """Return the rows of a view as k-means is to see them, and the family that does so.

    Directions stay as they are; counts become directions, TF-IDF rows of unit length. Any other
    rows are measured in standard deviations of their columns and have unit length about their
    mean, on average. Each of these families loses half a squared distance, so that views add up.
    """
    if isinstance(family, VonMisesFisher):
        return replace(family, kappa=1.0), X
    mass = np.ones(X.shape[0]) if weight is None else weight
    if family.nonnegative and is_sparse(X):
        return VonMisesFisher(1.0), _tf_idf(X, mass)
    return Gaussian("unit"), _standardised(X, mass)


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
    """Return rows whose columns have one variance, together 1; sparse ones are not centred."""
    share = mass / max(float(mass.sum()), 1e-300)
    mean = np.asarray(share @ X)
    if is_sparse(X):
        squares = np.asarray(share @ X.multiply(X).tocsr())
        spread = np.sqrt(np.maximum(squares - mean * mean, 0.0))
    else:
        X = np.asarray(X - mean)
        spread = np.sqrt(share @ (X * X))
    varied = spread > 1e-12 * np.abs(mean)  # a constant column has a spread by rounding alone
    by = np.divide(1.0, spread, out=np.zeros(len(spread)), where=varied)
    by /= np.sqrt(max(int(varied.sum()), 1))
    scaled: Matrix = X.multiply(by).tocsr() if is_sparse(X) else X * by
    return scaled
