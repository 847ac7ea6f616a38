"""The map of documents: every row a point, beside the rows that say the same."""

import numpy as np
import scipy.sparse as sp

from coem.families.auto import has_unit_rows
from coem.report.readers import read
from coem.row_map import RowMap
from coem.text import LatentDirections

POSTERIOR = 0.2  # share of the posterior in the cosine of two documents
# Quicker than the directions of a view: a picture shows no third digit of them.
SEARCH = {"n_directions": 50, "n_passes": 4, "oversampling": 30, "min_df": 2, "name": "map"}
LEAST = 3  # rows, and words, below which there are no directions to find


class DocumentMap:
    """Places the documents of a fitted model on a square, from 0 to 1 both ways.

    Two documents are neighbours if they have nearly the same directions and the same groups. The
    cosine that is compared is 80 % that of the directions and 20 % that of the roots of the
    posteriors. Directions are those views that are unit rows (latent directions, sentence vectors).
    If there are none, latent directions of the counts are found. Columns of numbers count by
    their standard scores.

    Parameters
    ----------
    model : estimator
        A fitted model that `coem.report.read` can read.
    n_landmarks : int, default=4000
        The most documents that are placed by their neighbours; others are placed between them. See
        `coem.row_map.RowMap`.

    Attributes
    ----------
    places_ : ndarray of shape (n_rows, 2)
        The places of the rows of `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MixtureClusterer
    >>> from coem.report import DocumentMap
    >>> X = np.array([[5, 1, 0], [4, 2, 0], [6, 1, 0], [0, 1, 6], [0, 2, 5], [0, 1, 4]])
    >>> chart = DocumentMap(MixtureClusterer(2, random_state=0).fit(X)).fit(X)
    >>> chart.places_.shape
    (6, 2)
    >>> bool(np.allclose(chart.transform(X[:1]), chart.places_[:1], atol=1e-3))
    True
    """

    def __init__(self, model, n_landmarks=4000):
        self.model = model
        self.n_landmarks = n_landmarks

    def fit(self, views, reading=None):
        """Place rows.

        Parameters
        ----------
        views : matrix, list, dict or Views
            Rows in the form that the model takes.
        reading : Reading, optional
            What `coem.report.read` returned for these rows.
        """
        reading = read(self.model, views) if reading is None else reading
        self._parts = _parts(reading)
        self._map = RowMap(self.n_landmarks)
        places = self._map.fit_transform(self._rows(reading))
        self._middle = (places.min(axis=0) + places.max(axis=0)) / 2
        self._width = max(np.ptp(places, axis=0).max(), np.finfo(np.float64).tiny)
        self.places_ = self._framed(places)
        return self

    def transform(self, views):
        """Return the places of rows, new or old, each by itself.

        Parameters
        ----------
        views : matrix, list, dict or Views
            Rows in the form that the model takes.
        """
        return self._framed(self._map.transform(self._rows(read(self.model, views))))

    def _framed(self, places):
        return np.clip((places - self._middle) / self._width + 0.5, 0.0, 1.0)

    def _rows(self, reading):
        """Return rows whose inner products are the cosines that are compared."""
        share = reading.proba
        if share is None:
            share = np.eye(reading.n_groups)[reading.groups]
        found = [np.sqrt(POSTERIOR * np.asarray(share, dtype=np.float64))]
        weight = np.sqrt((1 - POSTERIOR) / max(len(self._parts), 1))
        return np.hstack(found + [weight * part(reading.views) for part in self._parts])


# -- directions: functions from views to rows of length 1, or of zeros ---------------------------


def _parts(reading):
    """Return the functions that find the directions of rows in the views of a model."""
    heard = {n: m for n, m in reading.views.items() if m.shape[1] and n not in reading.silent}
    dense = {name: matrix for name, matrix in heard.items() if not sp.issparse(matrix)}
    given = [name for name, matrix in dense.items() if has_unit_rows(matrix)]
    parts = [_given(name) for name in given]
    parts += [_standard(name, matrix) for name, matrix in dense.items() if name not in given]
    counts = [n for n, m in heard.items() if n not in dense and m.nnz and m.data.min() >= 0]
    if counts and not given:
        parts += _latent(counts, reading.views)
    return parts


def _given(name):
    return lambda views: np.nan_to_num(np.asarray(views[name], dtype=np.float64))


def _latent(names, views):
    """Return the latent directions of counts, if there are any to find."""
    words = views[names]
    seen = sum(
        int((np.bincount(m.indices, minlength=m.shape[1]) >= SEARCH["min_df"]).sum())
        for _, m in words.items()
    )
    if len(words) < LEAST or seen < LEAST:
        return []
    finder = LatentDirections(**SEARCH).fit(words)
    return [lambda views: np.nan_to_num(finder.transform(views[names])[finder.name])]


def _standard(name, matrix):
    """Return the standard scores of the columns of numbers, at unit length."""
    values = np.asarray(matrix, dtype=np.float64)
    there = np.isfinite(values).all(axis=1)
    mean = values[there].mean(axis=0) if there.any() else np.zeros(values.shape[1])
    spread = values[there].std(axis=0) if there.any() else np.ones(values.shape[1])
    spread = np.where(spread > 0, spread, 1.0)

    def scores(views):
        rows = (np.asarray(views[name], dtype=np.float64) - mean) / spread
        rows[~np.isfinite(rows).all(axis=1)] = 0.0
        length = np.sqrt(np.square(rows).sum(axis=1, keepdims=True))
        return rows / np.where(length > 0, length, 1.0)

    return scores
