"""A latent semantic view: counts of words as a few directions."""

from numbers import Integral

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_flag, check_number, check_workers, undo_on_error
from coem.corpus import Corpus
from coem.engine import LocalEngine
from coem.families.auto import has_unit_rows
from coem.families.base import check_magnitude
from coem.io.loaded import is_table_of, need
from coem.io.registry import register
from coem.text._base import CountTransformer, check_counts, check_transformer
from coem.text._streamed import (
    frequencies,
    mean_of,
    streamed_rows,
    views_of_directions,
    with_directions,
)
from coem.text._svd import WholeRows, leading_directions, project
from coem.text._tf_idf import rarity, tf_idf
from coem.views import Views, is_several

# Rows nearer to the mean have no direction: the difference is rounding in single precision.
NEAREST = 1e-6


class LatentDirections(CountTransformer):
    r"""Turn counts of words into unit rows in a few latent directions.

    Words that occur in the same rows share directions, so that rows can be close to each other
    without a word in common. Such rows are a good view for a `VonMisesFisher` family, beside the
    words themselves. It is latent semantic analysis, with rows that are centred and scaled.

    Counts become TF-IDF rows of unit length. These are projected on their leading right singular
    vectors (the directions), centred on the mean of the fitted rows, and scaled to unit length.

    Parameters
    ----------
    n_directions : int, default=100
        Number of directions. If the rank of the rows is smaller, there are fewer.
    min_df : int, default=3
        Use words that occur in at least this number of rows.
    sublinear : bool, default=True
        Count a word that occurs c times as 1 + log(c), not as c. Counts below 1 stay as they are.
    n_passes : int, default=10
        How often random directions are multiplied by the rows and their transpose. More passes
        bring the directions closer to the singular vectors.
    oversampling : int, default=150
        How many more directions than `n_directions` are searched. More of them bring the
        directions closer to the singular vectors.
    random_state : int, RandomState or None, default=0
        Where the search begins.
    n_jobs : int, optional
        Number of threads; it never changes a bit of the result.
    name : str, default="latent"
        Name of the new view, if there are several views.

    Attributes
    ----------
    n_directions_ : int
        Number of directions that were found.
    components_ : ndarray of shape (n_directions_, n_words), in float32
        The directions, from the largest singular value to the smallest. The sign is such that the
        largest entry is positive.
    words_ : ndarray of shape (n_words,)
        The columns that are used: numbers of columns of all views of counts, side by side.
    idf_ : ndarray of shape (n_words,)
        The weights of these words.
    mean_ : ndarray of shape (n_directions_,)
        The mean of the projected rows, rows without words left out.
    singular_values_ : ndarray of shape (n_directions_,)
        The singular values, as far as the search has found them.
    explained_share_ : float
        The share of the squared lengths of all TF-IDF rows that lies in the directions.
    count_views_ : tuple of str
        The views that are used.
    n_features_in_ : int
        Number of columns, of all views together.
    view_names_, view_widths_ : tuple
        Names and numbers of columns of the views.

    Notes
    -----
    The weight of a word that occurs in :math:`n_w` of :math:`n` rows is
    :math:`1 + \log((1 + n) / (1 + n_w))`, as in scikit-learn's `TfidfTransformer`.

    Several views in, several views out: all views as they were, and one more, made of the columns
    of all views of counts side by side. Dense views of unit rows, such as sentence vectors, are not
    used. One matrix in, one dense matrix out. Results are float32, the precision of
    `VonMisesFisher`.

    A row without a known word is NaN as a whole, and empty for `VonMisesFisher`. So is a row at the
    mean, such as the only row, or a row of equal rows: it has no direction.

    Each row is transformed by itself, to the same bits in any company. The order of the rows of
    `fit` has no effect, except for rounding. The order of the columns decides where the search
    begins, so that it has a small effect unless the search finds the singular vectors exactly.

    References
    ----------
    .. [1] S. Deerwester et al. (1990), Indexing by latent semantic analysis, Journal of the
       American Society for Information Science 41, 391-407.
    .. [2] N. Halko, P.-G. Martinsson, Y. Shkolnisky, M. Tygert (2011), An algorithm for the
       principal component analysis of large data sets, SIAM Journal on Scientific Computing 33,
       2580-2594.

    Examples
    --------
    >>> from coem.text import LatentDirections
    >>> X = [[2, 1, 0, 0], [0, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 3], [0, 0, 0, 1], [0, 0, 0, 0]]
    >>> rows = LatentDirections(2, min_df=2).fit_transform(X)
    >>> (rows @ rows.T).round(1)[3].tolist()  # cosines with the fourth row
    [-1.0, -1.0, -1.0, 1.0, 1.0, nan]
    """

    _takes_corpora = True

    def __init__(
        self,
        n_directions=100,
        *,
        min_df=3,
        sublinear=True,
        n_passes=10,
        oversampling=150,
        random_state=0,
        n_jobs=None,
        name="latent",
    ):
        self.n_directions = n_directions
        self.min_df = min_df
        self.sublinear = sublinear
        self.n_passes = n_passes
        self.oversampling = oversampling
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.name = name

    def __sklearn_tags__(self):
        """Tell scikit-learn of the precision."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def fit(self, X, y=None):
        """Find the directions.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Counts. The rows of a corpus are read once in every pass, and a few times more.
        y : ignored
            Here for scikit-learn's sake.

        Returns
        -------
        self : LatentDirections
            The fitted transformer.
        """
        self._fit(X)
        return self

    def fit_transform(self, X, y=None):
        """Find the directions, and return the rows in them, as `transform` does.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Counts. The rows of a corpus are read once in every pass, and a few times more.
        y : ignored
            Here for scikit-learn's sake.
        """
        if isinstance(X, Corpus):
            return self.fit(X).transform(X)
        views, projected = self._fit(X)
        return self._result(X, views, projected)

    def transform(self, X):
        """Return the rows in the latent directions: a dense matrix for a matrix, else `Views`.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Counts. Several views are returned as they are, with one more. A corpus is returned as
            a corpus with one more view, which is computed when its rows are read; ``.load()``
            returns all rows in memory.
        """
        check_is_fitted(self, "components_")
        views = self._read(X, reset=False)
        if isinstance(views, Corpus):
            return with_directions(self, views)
        with LocalEngine(self.n_jobs):
            projected = self._projected(self._tf_idf(self._counts(views)))
        return self._result(X, views, projected)

    def rows_of(self, views):
        """Return checked views of counts in the latent directions, as a dense matrix."""
        return _unit(self._projected(self._tf_idf(self._counts(views))))

    @property
    def _n_features_out(self):
        return self.n_directions_ + (self.n_features_in_ if self._several else 0)

    def get_feature_names_out(self, input_features=None):
        """Return the names of the directions; for several views a dict with those of all views.

        Parameters
        ----------
        input_features : array of str, dict or None
            Names of the columns; for several views a dict from view to them.
        """
        check_is_fitted(self, "components_")
        names = self._names_in(input_features)
        own = np.array([f"{self.name}{i}" for i in range(self.n_directions_)], dtype=object)
        return {**names, self.name: own} if self._several else own

    def by_word(self, X, shares):
        r"""Divide a sum over the directions of one row among the words of the row.

        A row :math:`z` in the directions is linear in its TF-IDF row :math:`t`, except for its
        length: :math:`z = (t V^\top - m) / l`. So any sum :math:`\sum_j w_j z_j` is a sum over
        words and a part that no word has, :math:`-w^\top m / l`.

        Parameters
        ----------
        X : matrix, list, dict or Views
            Counts of one row, which is not empty.
        shares : array of shape (n_directions_,)
            What each direction adds to the sum, such as the contributions that `explain` returns.

        Returns
        -------
        words : ndarray of shape (m,)
            The words of the row: numbers of columns of all views of counts, side by side.
        contributions : ndarray of shape (m,)
            What each of them adds.
        rest : float
            What belongs to no word. The contributions and the rest add up to the sum of `shares`.
        """
        check_is_fitted(self, "components_")
        row = self._tf_idf(self._counts(self._read(X, reset=False)))
        offsets = self._projected(row)[0]
        # The weights are w / l. A direction in which the row has nothing adds nothing.
        there = (offsets != 0) & np.isfinite(offsets)
        weights = np.divide(shares, offsets, out=np.zeros(len(offsets)), where=there)
        contributions = row.data * (weights @ self.components_[:, row.indices])
        rest = float(np.sum(shares) - contributions.sum())
        return self.words_[row.indices], contributions, rest

    @undo_on_error
    def _fit(self, X):
        """Find the directions; return the views, and their rows in the directions."""
        self._check_parameters()
        views = self._read(X, reset=True)
        if isinstance(views, Corpus):
            return self._fit_corpus(views), None
        unit = tuple(view for view, X in views.items() if has_unit_rows(X))
        self.count_views_ = _count_views(views.names, unit, self.name, self._several)
        counts = self._counts(views)
        self._choose_words(np.bincount(counts.indices, minlength=counts.shape[1]), len(views))
        with LocalEngine(self.n_jobs):
            rows = self._tf_idf(counts)
            self._find_directions(WholeRows(rows))
            projected = self._projected(rows)
        filled = np.diff(rows.indptr) > 0
        self.mean_ = projected[filled].mean(axis=0)
        self.explained_share_ = float(np.square(self.singular_values_).sum() / filled.sum())
        return views, projected - self.mean_

    def _fit_corpus(self, corpus):
        """Find the directions of a corpus; its rows are read once in every pass."""
        unit = views_of_directions(corpus)
        self.count_views_ = _count_views(corpus.names, unit, self.name, self._several)
        words = corpus[list(self.count_views_)]
        self._choose_words(frequencies(words, self._counts), len(corpus))

        def rows_of(views):
            return self._tf_idf(self._counts(views))

        with LocalEngine(self.n_jobs):
            self._find_directions(streamed_rows(words, rows_of, len(self.words_)))
            self.mean_, n_filled = mean_of(words, lambda views: self._projected(rows_of(views)))
        self.explained_share_ = float(np.square(self.singular_values_).sum() / n_filled)
        return corpus

    def _choose_words(self, frequency, n_rows):
        """Set the words that occur often enough, and their weights."""
        self.words_ = np.flatnonzero(frequency >= self.min_df)
        if not len(self.words_):
            raise ValueError(
                f"no word occurs in min_df={self.min_df} rows or more (n_samples={n_rows}); "
                "lower min_df, add rows, or leave the latent directions out"
            )
        self.idf_ = rarity(n_rows, frequency[self.words_])

    def _find_directions(self, rows):
        """Set the directions of a source of products, and a mean of zero."""
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        directions, self.singular_values_ = leading_directions(
            rows, self.n_directions, self.n_passes, self.oversampling, np.random.default_rng(seed)
        )
        self.n_directions_ = len(directions)
        self.components_ = np.ascontiguousarray(directions, dtype=np.float32)
        self.mean_ = np.zeros(self.n_directions_)

    def _check_parameters(self):
        """Raise unless the parameters are valid."""
        for name in ("n_directions", "min_df", "n_passes"):
            check_number(name, getattr(self, name), Integral, 1)
        check_number("oversampling", self.oversampling, Integral, 0)
        check_flag("sublinear", self.sublinear)
        check_workers(self.n_jobs, 0)
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name must be the name of the new view, got {self.name!r}")

    def _counts(self, views):
        """Return the views of counts side by side, without duplicates and stored zeros."""
        views = views[list(self.count_views_)]
        for name, matrix in views.items():
            check_counts(matrix, name, "give LatentDirections only views of counts")
            check_magnitude(matrix, name)
        counts = sp.csr_array(views.concat(), dtype=np.float64, copy=True)
        counts.sum_duplicates()
        counts.eliminate_zeros()
        return counts

    def _tf_idf(self, counts):
        """Return TF-IDF rows of the words that are used."""
        return tf_idf(counts, self.words_, self.idf_, self.sublinear)

    def _projected(self, rows):
        """Return TF-IDF rows in the directions, centred but not scaled; NaN if they are empty."""
        projected = project(rows, self.components_) - self.mean_
        projected[np.diff(rows.indptr) == 0] = np.nan
        return projected

    def _result(self, X, views, projected):
        """Return what `transform` returns, for rows that are not scaled yet."""
        rows = _unit(projected)
        return Views({**dict(views.items()), self.name: rows}) if is_several(X) else rows


def _unit(projected):
    """Return rows of unit length in float32; NaN for rows at the mean."""
    lengths = np.linalg.norm(projected, axis=1)
    lengths[~(lengths > NEAREST)] = np.nan
    return (projected / lengths[:, np.newaxis]).astype(np.float32)


def _count_views(names, unit, name, several):
    """Return the names of the views of counts; raise if there are none, or if a name is taken.

    `unit` are the views that are directions already.
    """
    found = tuple(view for view in names if view not in unit)
    if not found:
        raise ValueError(
            f"view {names[0]!r}: all rows have Euclidean length 1, as sentence vectors do; "
            "latent directions are made of counts of words"
        )
    if several and name in names:
        raise ValueError(f"there is a view {name!r} already; give another name=")
    return found


def _check_directions(model):
    """Refuse a loaded transformer whose directions do not fit its views."""
    check_transformer(model)
    if not hasattr(model, "components_"):
        return
    widths = dict(zip(model.view_names_, model.view_widths_, strict=True))
    used, words, n_words = model.count_views_, model.words_, len(model.idf_)
    need(isinstance(used, tuple) and used and set(used) <= set(widths), "count_views_")
    whole = isinstance(words, np.ndarray) and words.dtype.kind == "i" and words.shape == (n_words,)
    inside = whole and n_words and words[0] >= 0 and words[-1] < sum(widths[v] for v in used)
    need(bool(inside and (np.diff(words) > 0).all()), "words_")
    need(is_table_of(model.idf_, n_words), "idf_")
    need(is_table_of(model.components_, model.n_directions_, n_words), "components_")
    need(is_table_of(model.mean_, model.n_directions_), "mean_")
    need(is_table_of(model.singular_values_, model.n_directions_), "singular_values_")
    model._check_parameters()


register(LatentDirections, check=_check_directions)
