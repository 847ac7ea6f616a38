"""From a table of documents to views."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_choice, check_workers, undo_on_error
from coem.engine import LocalEngine
from coem.io.model_file import Saves
from coem.phrases import first_few
from coem.runs import warn_user
from coem.text._hashing import HashMixin
from coem.text._inbound import known_links, outbound_links
from coem.text._latent import LatentMixin, latent_spec
from coem.text._lengths import LengthsMixin
from coem.text._parts import PartsMixin, names_of_numbers
from coem.text._sources import fill_gaps, read_rows, read_source
from coem.text._tables import with_separator
from coem.text._words import WordsMixin
from coem.text.counting import TOKENS, count, count_known, learn
from coem.text.guess import doubts, guess_views
from coem.text.scaling import kept_share
from coem.text.specs import by_view, check_columns, parse_views
from coem.text.vocabulary import SelectWords
from coem.views import Views


# Views are several matrices: there is no one data frame to wrap them in.
class TextViews(
    PartsMixin,
    HashMixin,
    LengthsMixin,
    LatentMixin,
    WordsMixin,
    Saves,
    TransformerMixin,
    BaseEstimator,
    auto_wrap_output_keys=None,
):
    r"""Turn a table of documents into `Views`: words, links, numbers and sentence vectors.

    Words, vocabulary and counts are those of scikit-learn's `CountVectorizer` with the parameters
    of the same names, counted by a kernel in threads.

    Parameters
    ----------
    views : dict or None, default=None
        For each view what it is made of:

        - ``"title"``: the words of a text column; ``["abstract", "text"]`` joins several by line
          breaks.
        - ``"refs:list"``: the items of a list column, each a feature and kept whole. A list is one
          of the table, or a JSON list, or text with items between ``|`` or ``;``, or between commas
          or blanks, if no row has a bar or a semicolon.
        - ``"refs:inbound"``: rows that link here. Row i has a count for each row whose list in the
          column `refs` has the id of row i.
        - ``"maker:category"``, ``["maker:category", "colour:category"]``: the value of a column as
          a whole, a feature each.
        - ``"price:number"``, ``["price:number", "year:number"]``: numbers, for a Gaussian.
        - ``"vec:vector"``: a column of lists of numbers, all of one length.
        - ``Embed(column, encoder)``: sentence vectors of a text column.
        - a two-dimensional array, or the path of a ``.npy`` file, with one row a row of the table.

        None guesses them from the columns; `guesses_` says what was guessed, and why. Columns of
        dates, ids, and with one value in nearly all rows are not guessed. Categories and numbers
        are, if there is no text, list or vector: beside a text they are often labels. If you
        name a column of dates, of codes that all differ, or of one value, `fit` warns. A column
        whose name ends like one of these kinds is written with its own: ``"a:list:text"``.
    id : str, optional
        The column with the ids of the rows: what links name.
    lowercase, stop_words, ngram_range, token_pattern : optional
        As in `CountVectorizer`, for views of text: one value for all, or a dict from view to value.
        A `token_pattern` of your own is left to Python's `re`, and is slower.
        `stop_words` is a list of words, None, or one or more of these, joined by ``+``: a language
        by its name or code (``"german"``, ``"de+en"``; all but English need the extra
        ``coem[languages]``); ``"auto"``, the languages of the texts; and ``"corpus"``, words that
        are in many rows and spread over them as chance would spread them.
    min_df, max_df, max_features : optional
        As in `CountVectorizer`, for views of words, lists and inbound links: one value for all, or
        a dict from view to value.
    scale_length : float or dict, optional
        Scale the counts of every row to this total, as `ScaleLength` does: one for all views of
        counts, or a dict from view to a number.
    max_length : float or dict, optional
        Scale rows of text views with a larger total down to it, and leave the others as they are:
        words come in runs, and a long document takes a group for itself. One for all, or a dict
        from view to a number. It comes before `scale_length`.
    select : {"mutual_info"}, optional
        Choose the `max_features` words that say most about ``y``, as `SelectWords` does, and not
        the most frequent ones.
    latent : bool, "auto", int or LatentDirections, optional
        Add a view "latent": the words of all views of text as unit rows in this number of latent
        directions (100 if True). It is made of whole counts, before `max_length` and
        `scale_length`. A `LatentDirections` has parameters and a name of your own.
    hash_features : int, optional
        Put every word or item of views of text, lists and categories into one of so many columns,
        by a hash. New words have a place then, and nothing is learnt; different words can share a
        column, whose name is the most frequent of them in the first 10,000 rows. `min_df`, `max_df`
        and `max_features` have no meaning then.
    n_jobs : int, optional
        Number of threads; it never changes a bit of the result.

    Attributes
    ----------
    views_ : dict
        For each view its kind and its columns.
    vocabulary_ : dict of str to ndarray of str
        For each view the names of its columns; words in the order of their code points.
    guesses_ : list of str
        A sentence for each column if the views were guessed, else nothing.
    kept_ : dict of str to float
        For each view with a `max_length` the share of its counts that are left. Pseudo-counts in
        the same proportion, ``Multinomial(alpha=kept_["text"])``, weigh as much as before.
    stop_words_ : dict of str to ndarray of str
        For each view of text the words that are left out, sorted.
    stop_lists_ : dict of str to str
        For each view with named stop words their names, "auto" replaced by what was found.
    languages_ : dict of str to float
        The languages that "auto" found: their codes, and their shares of the rows.
    links_ : dict
        For each view of inbound links the pairs of source and target that are known.
    latent_ : LatentDirections or None
        What makes the view of latent directions.
    n_features_in_ : int
        Number of columns of the table.
    feature_names_in_ : ndarray of str
        The columns of the table.

    Notes
    -----
    Counts are CSR in float32, which the kernels of coem read fastest and which is exact up to
    2^24. A row without text is a row without counts. A row without number, vector or text to encode
    is NaN as a whole, which the families for dense rows take for a missing one. A row with some of
    several numbers has NaN for the others, which `Gaussian` integrates out.

    Inbound links come from the rows that were fitted, whatever rows are transformed: a new row has
    a count for each fitted row that names its id. So every row is transformed by itself.

    Examples
    --------
    >>> from coem.text import TextViews
    >>> table = [
    ...     {"title": "Mixtures of words", "refs": ["em", "text"]},
    ...     {"title": "More words, fewer labels", "refs": ["em"]},
    ... ]
    >>> text_views = TextViews({"words": "title", "links": "refs:list"})
    >>> text_views.fit_transform(table)
    <Views of 2 rows: 'words' (2, 6) sparse float32, 'links' (2, 2) sparse float32>
    >>> text_views.vocabulary_["links"].tolist()
    ['em', 'text']
    >>> text_views.transform([{"title": "Words, words, words", "refs": None}])["words"].max().item()
    3.0
    """

    def __init__(
        self,
        views: Any = None,
        *,
        id: str | None = None,
        lowercase: bool = True,
        min_df: float = 1,
        max_df: float = 1.0,
        max_features: int | None = None,
        stop_words: Any = None,
        ngram_range: tuple[int, int] = (1, 1),
        token_pattern: str = TOKENS,
        scale_length: Any = None,
        max_length: Any = None,
        select: Any = None,
        latent: int | str | None = None,
        hash_features: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.views = views
        self.id = id
        self.lowercase = lowercase
        self.min_df = min_df
        self.max_df = max_df
        self.max_features = max_features
        self.stop_words = stop_words
        self.ngram_range = ngram_range
        self.token_pattern = token_pattern
        self.scale_length = scale_length
        self.max_length = max_length
        self.select = select
        self.latent = latent
        self.hash_features = hash_features
        self.n_jobs = n_jobs

    def __sklearn_tags__(self):
        """Tell scikit-learn that the input is a table of anything."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = self.select is not None
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the vocabularies of the views.

        Parameters
        ----------
        X : table
            pandas or polars DataFrame, pyarrow Table, list of dicts or dict of columns.
        y : array of shape (n_rows,), optional
            Labels, for `select`; -1, None, NaN or "" for a row without one.

        Returns
        -------
        self : TextViews
            The fitted transformer.
        """
        self.fit_transform(X, y)
        return self

    @undo_on_error
    def fit_transform(self, X: Any, y: Any = None) -> Views:
        """Learn the vocabularies of the views, and return the views.

        Parameters
        ----------
        X : table
            pandas or polars DataFrame, pyarrow Table, list of dicts or dict of columns.
        y : array of shape (n_rows,), optional
            Labels, for `select`; -1, None, NaN or "" for a row without one.

        Returns
        -------
        views : Views
            One matrix a view.
        """
        table = read_rows(X)
        self.views_, self.guesses_ = self._resolve(table)
        options = self._options()
        self._check(table, y)
        self.views_ = {v: with_separator(table, spec, v) for v, spec in self.views_.items()}
        sources = self._sources(table, fitted=False)
        given = {name: s for name, s in self.views_.items() if s["kind"] != "latent"}
        for sentence in doubts(table, given) if self.views is not None else ():
            warn_user(sentence, UserWarning)
        data, self.vocabulary_ = {}, {}
        with LocalEngine(self.n_jobs):
            options = self._find_stop_words(sources, options)
            for name, source in sources.items():
                data[name], self.vocabulary_[name] = self._learn(name, source, options)
        if self.select is not None:
            data = self._selected(data, y)
        for name, links in self.links_.items():
            self.links_[name] = known_links(links, self.vocabulary_[name])
        self.feature_names_in_ = np.array(table.column_names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        latent = self._learn_latent(data)
        shorter = self._shortened(data)
        self.kept_ = {view: kept_share(data[view], shorter[view]) for view in self._limits()}
        return self._scaled(shorter, latent)

    def transform(self, X: Any) -> Views:
        """Return the views of a table, with the vocabularies that were learnt.

        Parameters
        ----------
        X : table
            With the columns that the views are made of; others do not matter. A column that is
            missing counts as empty, with a warning, unless all are missing.

        Returns
        -------
        views : Views
            One matrix a view.
        """
        check_is_fitted(self, "vocabulary_")
        table, options = read_rows(X), self._options(fitted=True)
        table, sentences = fill_gaps(table, self.views_, self.id)
        for sentence in sentences:
            warn_user(sentence, UserWarning)
        sources = self._sources(table, fitted=True)
        with LocalEngine(self.n_jobs):
            data = {name: self._apply(name, source, options) for name, source in sources.items()}
        return self._scaled(self._shortened(data), self._apply_latent(data))

    def get_feature_names_out(self, view: str | None = None) -> Any:
        """Return the names of the columns of a view, or ``view__name`` for those of all views.

        Parameters
        ----------
        view : str, optional
            A view.
        """
        check_is_fitted(self, "vocabulary_")
        if view is not None:
            check_choice("view", view, list(self.vocabulary_))
            return self.vocabulary_[view].copy()
        names = [f"{view}__{word}" for view, words in self.vocabulary_.items() for word in words]
        return np.array(names, dtype=object)

    def _resolve(self, table):
        """Return the views as plain dicts, and what was guessed."""
        if self.id is not None and self.id not in table.column_names:
            raise ValueError(
                f"id: there is no column {self.id!r} in the table, which has "
                f"{first_few(map(repr, table.column_names))}"
            )
        guessed = self.views is None
        specs, said = guess_views(table, self.id) if guessed else (parse_views(self.views), [])
        return specs | latent_spec(self.latent, specs), said

    def _check(self, table, y):
        """Refuse, before any work, what cannot be done."""
        check_columns(self.views_, table.column_names, self.id)
        check_workers(self.n_jobs, 0)
        self._lengths("scale_length")
        self._lengths("max_length")
        self._check_hashing()
        if self.select is None:
            return
        check_choice("select", self.select, ("mutual_info",))
        if not any(number is not None for number in self._numbers().values()):
            raise ValueError("select needs max_features: how many words to keep")
        if y is None:
            raise ValueError("select='mutual_info' requires y to be passed, but y is None")
        if len(y) != table.num_rows:
            raise ValueError(f"y has {len(y)} labels, the table {table.num_rows} rows")

    def _numbers(self):
        """Return how many words to keep by view."""
        return by_view("max_features", self.max_features, self.views_, None)

    def _sources(self, table, *, fitted):
        """Return what each view is counted or made from; links are read at fit alone."""
        own = {view: spec for view, spec in self.views_.items() if spec["kind"] != "latent"}
        if not fitted:
            self.links_ = {
                view: outbound_links([table], spec, self.id, view)
                for view, spec in own.items()
                if spec["kind"] == "inbound"
            }
        known = {"given": self.views, "id": self.id, "links": self.links_}
        return {view: read_source(table, view, spec, **known) for view, spec in own.items()}

    def _learn(self, view, source, options):
        """Return the matrix of a view and the names of its columns."""
        spec = self.views_[view]
        if self._hashed(view):
            names = self._hashed_names(source, options[view], view)
            return self._hashed_counts(source, options[view], view), names
        if view in options:
            limit = self.select is None
            n_rows, tally = count(source, options[view], view)
            words, counts = learn(tally, options[view], n_rows, view, limit=limit)
            return counts, words
        X = self._dense(view, source)
        if spec["kind"] != "array" and np.isnan(X).all():
            raise ValueError(f"view {view!r}: every row is missing; leave the view out")
        return X, names_of_numbers(spec, X.shape[1])

    def _apply(self, view, source, options):
        """Return the matrix of a view with the columns of `fit`."""
        if self._hashed(view):
            own = replace(options[view], stop_words=self.stop_words_.get(view))
            return self._hashed_counts(source, own, view)
        if view in options:
            return count_known(source, options[view], view, self.vocabulary_[view])
        X, width = self._dense(view, source), len(self.vocabulary_[view])
        if not X.shape[1]:  # no row has a vector
            return np.full((len(X), width), np.nan, X.dtype)
        if X.shape[1] != width:
            raise ValueError(
                f"view {view!r} has {X.shape[1]} numbers a row, but was fitted with {width}"
            )
        return X

    def _dense(self, view, source):
        """Return the rows of a dense view; an encoder does its work now."""
        if self.views_[view]["kind"] == "embed":
            return self.views[view](source.to_pylist(), view)
        return source

    def _selected(self, data, y):
        """Return the views with the words that say most about the labels."""
        numbers = self._numbers()
        chosen = {name: X for name, X in data.items() if numbers.get(name) is not None}
        selector = SelectWords({name: numbers[name] for name in chosen}).fit(Views(chosen), y)
        columns = selector.get_support(indices=True)
        for name in chosen:
            self.vocabulary_[name] = self.vocabulary_[name][columns[name]]
        return data | {name: X[:, columns[name]] for name, X in chosen.items()}
