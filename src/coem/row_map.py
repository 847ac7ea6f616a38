"""A map of rows: points in the plane, neighbours beside each other."""

from numbers import Integral, Real

import numpy as np
import scipy.fft
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from coem.checks import check_number, undo_on_error
from coem.engine.blas import one_thread

EARLY, LATE = 50, 100  # steps with and without exaggeration; more of them change little
EXAGGERATION = 12.0
CELL = 0.5  # width of a cell of the grid, where forces change over a width of 1
BLOCK = 512  # rows whose neighbours are searched at a time
SAME = 1e-5  # squared distance of unit rows that differ only by rounding
FEWEST = 3.0  # effective number of landmarks that place a row which is not a landmark


class RowMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Place rows in the plane, so that rows of nearly the same direction are neighbours.

    Some rows, the *landmarks*, are placed by the method of t-SNE [1]_: neighbours attract each
    other, and all landmarks repel each other. Every other row is then placed between the landmarks
    that are closest to it, and so is a new row.

    Parameters
    ----------
    n_landmarks : int, default=4000
        The most rows that are landmarks. They are spread evenly over the rows.
    n_neighbors : int, default=30
        Number of closest landmarks that attract a landmark.
    perplexity : float, default=15
        Effective number of these neighbours; at most half of them count.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_rows, 2)
        The places of the rows of `fit`.
    landmarks_ : ndarray of shape (n_landmarks, n_features), in float32
        Landmarks, scaled to unit length.
    landmark_places_ : ndarray of shape (n_landmarks, 2)
        Their places.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    Nothing is random. Landmarks are chosen by their content, so the order of the rows changes
    nothing: if rows change places in `X`, so do their points in `embedding_`. A row of `fit` that
    is placed again gets the same place, up to rounding.

    The repulsion is added up on a grid, by a fast Fourier transform, as in [2]_. So time grows with
    the number of landmarks, not with its square. The first places are the two principal components.
    Distances between far points, and the sizes of groups, mean little, as in every map of this
    kind.

    References
    ----------
    .. [1] L. van der Maaten, G. Hinton (2008), Visualizing data using t-SNE, Journal of Machine
       Learning Research 9, 2579-2605.
    .. [2] G. Linderman et al. (2019), Fast interpolation-based t-SNE for improved visualization of
       single-cell RNA-seq data, Nature Methods 16, 243-245.

    Examples
    --------
    >>> import numpy as np
    >>> from coem.row_map import RowMap
    >>> rng = np.random.default_rng(0)
    >>> rows = np.eye(2).repeat(20, axis=0) + 0.1 * rng.random((40, 2))
    >>> places = RowMap().fit_transform(rows)
    >>> first, second = places[:20].mean(axis=0), places[20:].mean(axis=0)
    >>> bool(np.linalg.norm(first - second) > 2 * places[:20].std())
    True
    """

    def __init__(self, n_landmarks=4000, *, n_neighbors=30, perplexity=15.0):
        self.n_landmarks = n_landmarks
        self.n_neighbors = n_neighbors
        self.perplexity = perplexity

    def fit(self, X, y=None):
        """Place the rows.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows; only their directions count.
        y : ignored
            Here for scikit-learn's sake.

        Returns
        -------
        self : RowMap
            The fitted map.
        """
        self.fit_transform(X)
        return self

    @undo_on_error
    def fit_transform(self, X, y=None):
        """Place the rows, and return `embedding_`.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows; only their directions count.
        y : ignored
            Here for scikit-learn's sake.
        """
        check_number("n_landmarks", self.n_landmarks, Integral, 1)
        check_number("n_neighbors", self.n_neighbors, Integral, 1)
        check_number("perplexity", self.perplexity, Real, 1)
        rows = _unit(validate_data(self, X, dtype=[np.float64, np.float32]))
        order = _order(rows)
        with one_thread():
            self.landmarks_ = rows[_spread(order, self.n_landmarks)]
            self.landmark_places_ = _embed(self.landmarks_, self.n_neighbors, self.perplexity)
            self.embedding_ = np.empty((len(rows), 2))
            self.embedding_[order] = self._place(rows[order])
        self._n_features_out = 2
        return self.embedding_

    def transform(self, X):
        """Return the places of rows, each by itself, between the landmarks closest to it.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows.

        Returns
        -------
        places : ndarray of shape (n_rows, 2)
        """
        check_is_fitted(self)
        rows = _unit(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))
        with one_thread():
            return self._place(rows)

    def _place(self, rows):
        near, distance = _nearest(rows, self.landmarks_, min(10, len(self.landmarks_)))
        weights = _chances(distance, FEWEST)
        places = np.einsum("ij,ijk->ik", weights, self.landmark_places_[near])
        same = distance[:, 0] < SAME
        places[same] = self.landmark_places_[near[same, 0]]
        return places


# -- landmarks ----------------------------------------------------------------------------------


def _unit(X):
    """Return the rows at unit length; a row of zeros stays as it is."""
    X = np.asarray(X, dtype=np.float64)
    # A sum over the last axis has the same bits wherever the row is.
    length = np.sqrt(np.square(X).sum(axis=1, keepdims=True))
    return np.divide(X, length, out=np.zeros_like(X), where=length > 0).astype(np.float32)


def _order(rows):
    """Return an order of the rows that depends on what they are, and not on where they are."""
    waves = np.arange(1, rows.shape[1] + 1) * np.array([[1.0], [2.0**0.5]])
    first, second = ((rows * np.cos(wave)).sum(axis=1) for wave in waves)
    return np.lexsort((second, first))


def _spread(order, n):
    """Return so many places of an order, at equal distances; all of them if there are fewer."""
    if len(order) <= n:
        return order
    return order[np.linspace(0, len(order) - 1, n).round().astype(int)]


def _nearest(rows, others, n):
    """Return the `n` closest of the others to each row, and their squared distances."""
    near = np.empty((len(rows), n), dtype=np.intp)
    distance = np.empty((len(rows), n))
    for start in range(0, len(rows), BLOCK):
        block = slice(start, start + BLOCK)
        far = 2 - 2 * (rows[block] @ others.T)
        some = np.argpartition(far, n - 1, axis=1)[:, :n]
        values = np.take_along_axis(far, some, axis=1)
        ranks = np.lexsort((some, values), axis=1)
        near[block] = np.take_along_axis(some, ranks, axis=1)
        distance[block] = np.take_along_axis(values, ranks, axis=1)
    return near, np.maximum(distance, 0.0)


def _chances(distance, perplexity, n_halvings=40):
    """Return the chance of each neighbour: a Gaussian, as wide as the perplexity asks for."""
    far = distance - distance[:, :1]
    wanted = np.log(min(perplexity, max(distance.shape[1] / 2, 1.0)))
    low, high, beta = np.zeros(len(far)), np.full(len(far), np.inf), np.ones(len(far))
    for _ in range(n_halvings):
        chances = np.exp(-beta[:, np.newaxis] * far)
        total = chances.sum(axis=1)
        chances /= total[:, np.newaxis]
        entropy = np.log(total) + beta * (chances * far).sum(axis=1)
        low, high = np.where(entropy > wanted, (beta, high), (low, beta))
        beta = np.where(np.isinf(high), 2 * beta, (low + np.minimum(high, 1e300)) / 2)
    return chances


def _attractions(rows, n_neighbors, perplexity):
    """Return how much each row attracts each other: symmetric, sparse, with a sum of 1."""
    n, k = len(rows), min(n_neighbors, len(rows) - 1)
    near, distance = _nearest(rows, rows, k + 1)
    other = near != np.arange(n)[:, np.newaxis]
    other[other.all(axis=1), -1] = False  # so many rows are the same that it is not among them
    near, distance = near[other].reshape(n, k), distance[other].reshape(n, k)
    chances = _chances(distance, perplexity)
    ends = np.arange(0, n * k + 1, k)
    directed = sp.csr_array((chances.ravel(), near.ravel(), ends), (n, n))
    return ((directed + directed.T) / (2 * n)).tocsr()


# -- forces -------------------------------------------------------------------------------------


def _embed(rows, n_neighbors, perplexity):
    """Return the places of landmarks, by descent on the divergence of t-SNE with momentum."""
    n = len(rows)
    places = _principal(rows)
    if n < 3:
        return places
    pull = _attractions(rows, n_neighbors, perplexity)
    ends = np.repeat(np.arange(n), np.diff(pull.indptr)), pull.indices
    grid, speed, gain = Grid(), np.zeros((n, 2)), np.ones((n, 2))
    for step in range(EARLY + LATE):
        early = step < EARLY
        rate, momentum = (n / EXAGGERATION, 0.5) if early else (n / 4, 0.8)
        if step == EARLY:
            gain[:] = 1.0
        total, push = grid.repulsion(places)
        force = (EXAGGERATION if early else 1.0) * _attraction(pull, ends, places) - push / total
        gain = np.maximum(np.where(force * speed > 0, 0.8 * gain, gain + 0.2), 0.01)
        speed = momentum * speed - rate * gain * 4 * force
        places = places + speed
        places -= places.mean(axis=0)
    return places


def _principal(rows, width=0.01):
    """Return the first two principal components of rows, small, with signs that are fixed."""
    centred = (rows - rows.mean(axis=0)).astype(np.float64)
    if centred.shape[1] < 2:
        centred = np.column_stack([centred, np.zeros(len(centred))])
    axes = np.linalg.eigh(centred.T @ centred)[1][:, :-3:-1]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), [0, 1]] < 0, -1.0, 1.0)
    places = centred @ axes
    spread = places[:, 0].std()
    return places * (width / spread) if spread > 0 else np.zeros_like(places)


def _attraction(pull, ends, places):
    """Return where the neighbours pull every place to, with the sign of the gradient."""
    way = places[ends[0]] - places[ends[1]]
    close = sp.csr_array(
        (pull.data / (1 + np.square(way).sum(axis=1)), pull.indices, pull.indptr), pull.shape
    )
    return close.sum(axis=1)[:, np.newaxis] * places - close @ places


class Grid:
    """Adds up the repulsion of all pairs of places on a grid of cells."""

    def __init__(self):
        self._kernels = {}  # number of cells -> transforms

    def repulsion(self, places):
        """Return the sum of 1 / (1 + d^2) over all pairs, and the push of all on each place."""
        low = places.min(axis=0)
        n_cells = 16 * int(np.ceil((np.max(places.max(axis=0) - low) / CELL + 3) / 16))
        corners = list(_corners((places - low) / CELL + 1, n_cells))
        mass = sum(np.bincount(at, share, n_cells**2) for at, share in corners)
        mass = mass.reshape(n_cells, n_cells).astype(np.float32)
        shape = (2 * n_cells, 2 * n_cells)  # room for what would come around the edge
        spectra = self._kernel(n_cells) * scipy.fft.rfft2(mass, shape)
        fields = scipy.fft.irfft2(spectra, shape)[:, :n_cells, :n_cells].reshape(3, -1)
        near, *push = sum(fields[:, at].astype(np.float64) * share for at, share in corners)
        return max(near.sum() - len(places), 1.0), np.column_stack(push)

    def _kernel(self, n_cells):
        """Return the transforms of 1 / (1 + d^2), and of x and y over its square's inverse."""
        if n_cells not in self._kernels:
            side = scipy.fft.fftfreq(2 * n_cells, 1 / (2 * n_cells * CELL)).astype(np.float32)
            x, y = np.meshgrid(side, side, indexing="ij")
            close = 1 / (1 + x * x + y * y)
            self._kernels[n_cells] = scipy.fft.rfft2(np.stack([close, x * close**2, y * close**2]))
        return self._kernels[n_cells]


def _corners(places, n_cells):
    """Yield for each corner of a cell the nodes that the places have there, and their shares."""
    cell = np.floor(places)
    part = places - cell
    cell = cell.astype(np.intp)
    for x in (0, 1):
        for y in (0, 1):
            across = part[:, 0] if x else 1 - part[:, 0]
            yield (
                (cell[:, 0] + x) * n_cells + cell[:, 1] + y,
                across * (part[:, 1] if y else 1 - part[:, 1]),
            )
