"""The part of `TextViews` that learns from a table which comes in parts."""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pyarrow as pa

from coem.checks import undo_on_error
from coem.engine import LocalEngine
from coem.runs import warn_user
from coem.sparse import shorten
from coem.text import guess, languages
from coem.text._hashing import NAMED
from coem.text._inbound import known_links, outbound_links
from coem.text._latent import latent_spec
from coem.text._sources import fill_gaps, read_rows, read_source
from coem.text._tables import from_strings, with_separator_of
from coem.text._tallies import Words
from coem.text.counting import choose, count, matrix
from coem.text.scaling import kept_share, share_of
from coem.text.stop_words import even_columns
from coem.views import RowError

ALONE = {
    "array": "an array has a row for each row of one table",
    "embed": "sentence vectors are made when all texts are there",
}


class PartsMixin:
    """The part of `TextViews` that learns from a table which comes in parts."""

    @undo_on_error
    def fit_parts(self, parts):
        """Learn the vocabularies of a table that comes in parts, and need not fit in memory.

        What is learnt is equal, bit by bit, to what `fit` learns from the whole table, except for
        the rounding of `kept_`. The vocabularies are in memory, and so are all links of views of
        kind "inbound". If a view has more than eight million different words, words that were in
        one row so far are dropped, with a warning.

        Parameters
        ----------
        parts : iterable of pyarrow.Table
            It is read several times, so it must not be an iterator. All have the same columns.

        Returns
        -------
        self : TextViews
            The fitted transformer; `transform` makes the views of each part.
        """
        n_rows = sum(table.num_rows for table in parts)
        if not n_rows:
            raise ValueError("the table has no rows")
        few = take_rows(parts, guess.sampled_rows(n_rows))
        self.views_, self.guesses_ = self._resolve(few)
        options = self._options()
        self._check(few, None)
        self._check_parts()
        self.views_ = {v: with_separator_of(parts, s, v) for v, s in self.views_.items()}
        self.links_ = {
            view: outbound_links(parts, spec, self.id, view)
            for view, spec in self.views_.items()
            if spec["kind"] == "inbound"
        }
        with LocalEngine(self.n_jobs):
            options = self._stop_words_of_parts(parts, options, n_rows)
            self.vocabulary_ = self._learn_parts(parts, options)
        whole = len(few) == n_rows
        for text in () if self.views is None else guess.doubts(few, self.views_, whole=whole):
            warn_user(text, UserWarning)
        for name, links in self.links_.items():
            self.links_[name] = known_links(links, self.vocabulary_[name])
        self.feature_names_in_ = np.array(few.column_names, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        self.latent_ = None
        self.kept_ = self._kept_of_parts(parts)
        return self

    def keep_views(self, names):
        """Forget all views except for some: `transform` no longer makes the others.

        Parameters
        ----------
        names : list of str
            Views that are made of columns.
        """
        for attribute in ("views_", "vocabulary_", "links_", "stop_words_", "stop_lists_", "kept_"):
            found = getattr(self, attribute)
            setattr(self, attribute, {view: own for view, own in found.items() if view in names})
        return self

    @undo_on_error
    def fit_counts(self, counts):
        """Learn the latent directions and `kept_` from counts that were made before.

        Parameters
        ----------
        counts : Views
            What `transform` returns without `latent`, `max_length` and `scale_length`, of all rows.

        Returns
        -------
        views : Views
            What `fit_transform` returns for the table that the counts come from.
        """
        data = {name: counts[name] for name in self.views_}
        self.views_ = self.views_ | latent_spec(self.latent, self.views_)
        self._lengths("max_length")
        latent = self._learn_latent(data)
        shorter = self._shortened(data)
        self.kept_ = {view: kept_share(data[view], shorter[view]) for view in self._limits()}
        return self._scaled(shorter, latent)

    def fit_corpus(self, corpus):
        """Learn the latent directions and `kept_` from the counts of a corpus, a shard at a time.

        Parameters
        ----------
        corpus : Corpus
            Counts, as in `fit_counts`.

        Returns
        -------
        corpus : Corpus
            What `fit_transform` returns for the table that the counts come from, as a corpus.
        """
        self.views_ = self.views_ | latent_spec(self.latent, self.views_)
        self._lengths("max_length")
        if any(self._lengths("scale_length").values()):
            raise ValueError("scale_length is not for a corpus; leave scale_length out")
        limits = self._limits()
        sums = {view: np.zeros(2) for view in limits}
        for shard in corpus.shards if limits else ():
            counts = shard.read()
            for view, most in limits.items():
                X = counts[view]
                sums[view] += X.sum(dtype=np.float64), shorten(X, most).sum(dtype=np.float64)
        found = self._learn_latent_of(corpus)
        self.kept_ = {view: share_of(*map(float, both)) for view, both in sums.items()}
        return found.shortened(limits) if limits else found

    def count_words(self, X):
        """Return how many words the texts of a table have, known or not, without stop words.

        Parameters
        ----------
        X : table
        """
        table, n_words = read_rows(X), 0
        texts = [view for view, spec in self.views_.items() if spec["kind"] == "text"]
        options = self._options(fitted=True)
        table, _ = fill_gaps(table, {view: self.views_[view] for view in texts}, None)
        [(_, sources)] = self._sources_of([table], texts)
        with LocalEngine(self.n_jobs):
            for view, source in sources.items():
                own = replace(options[view], stop_words=self.stop_words_[view])
                n_words += int(count(source, own, view)[1].n_times.sum())
        return n_words

    def _check_parts(self):
        """Refuse what needs all rows at once."""
        if self.select is not None or self.latent is not None:
            raise ValueError("select and latent need all rows at once; use fit")
        for view, spec in self.views_.items():
            if spec["kind"] in ALONE:
                raise ValueError(
                    f"view {view!r}: {ALONE[spec['kind']]}, and here rows come in parts; make the "
                    "vectors a column, and write 'COLUMN:vector'"
                )

    def _sources_of(self, parts, views):
        """Return the number of rows, and what the views are made from, of every part."""
        known = {"given": self.views, "id": self.id, "links": self.links_}
        first = 0
        for table in parts:
            with rows_from(first):
                sources = {v: read_source(table, v, self.views_[v], **known) for v in views}
            yield table.num_rows, sources
            first += table.num_rows

    def _stop_words_of_parts(self, parts, options, n_rows):
        """Find the stop words, and return the options with them."""
        texts = [view for view, spec in self.views_.items() if spec["kind"] == "text"]
        few = take_rows(parts, languages.sampled_rows(n_rows))
        [(_, sources)] = self._sources_of([few], texts)

        def even(view, single):
            return self._even_words(parts, view, single)

        return self._find_stop_words(sources, options, even)

    def _even_words(self, parts, view, options):
        """Return the words of a view that are spread evenly over the rows."""
        words, sizes, how_many = Words(), np.zeros(0), np.zeros(0, np.int64)
        for n_rows, sources in self._sources_of(parts, [view]):
            _, tally = count(sources[view], options, view)
            words.add(tally, n_rows)
            lengths = np.asarray(matrix(tally, n_rows).sum(axis=1), dtype=np.float64).ravel()
            found, how_often = np.unique(lengths, return_counts=True)
            both = np.concatenate([sizes, found])
            sizes, places = np.unique(both, return_inverse=True)
            times = np.concatenate([how_many, how_often])
            how_many = np.bincount(places, times, len(sizes)).astype(np.int64)
        tally = words.tally()
        kept = choose(tally, options, words.n_rows, view, limit=False)
        totals = tally.n_times[kept].astype(np.float64)
        even = even_columns(tally.n_rows[kept], totals, sizes, how_many)
        return from_strings(tally.words, kept[even])

    def _learn_parts(self, parts, options):
        """Return the names of the columns of all views."""
        words = {view: Words() for view in options if not self._hashed(view)}
        hashed = self._named_parts(parts, options)
        numbers = {view: _Numbers() for view in self.views_ if view not in options}
        learnt = [view for view in self.views_ if view not in hashed]
        for n_rows, sources in self._sources_of(parts, learnt) if learnt else ():
            for view, source in sources.items():
                if view in options:
                    _, tally = count(source, options[view], view)
                    words[view].add(tally, n_rows)
                else:
                    numbers[view].add(source)
        found = {}
        for view, spec in self.views_.items():
            if view in hashed:
                found[view] = hashed[view]
                continue
            if view in numbers:
                found[view] = names_of_numbers(spec, numbers[view].width(view))
                continue
            tally = words[view].tally()
            kept = choose(tally, options[view], words[view].n_rows, view)
            found[view] = from_strings(tally.words, kept)
            _warn_dropped(view, words[view].n_dropped)
        return found

    def _named_parts(self, parts, options):
        """Return the names of the columns of views whose columns are hashes."""
        views = [view for view in options if self._hashed(view)]
        if not views:
            return {}
        n_rows = sum(table.num_rows for table in parts)
        few = take_rows(parts, np.arange(min(n_rows, NAMED)))
        [(_, sources)] = self._sources_of([few], views)
        return {view: self._hashed_names(sources[view], options[view], view) for view in views}

    def _kept_of_parts(self, parts):
        """Return the share of the counts of each view with a `max_length` that is left."""
        limits = self._limits()
        sums = {view: np.zeros(2) for view in limits}
        options = self._options(fitted=True)
        for _, sources in self._sources_of(parts, limits) if limits else ():
            for view, most in limits.items():
                X = self._apply(view, sources[view], options)
                totals = X.sum(dtype=np.float64), shorten(X, most).sum(dtype=np.float64)
                sums[view] += totals
        return {view: share_of(*map(float, found)) for view, found in sums.items()}


class _Numbers:
    """A dense view, one part after the other."""

    def __init__(self):
        self._width, self._is_there = 0, False

    def add(self, X):
        self._width = max(self._width, X.shape[1])
        self._is_there = self._is_there or not np.isnan(X).all()

    def width(self, view):
        """Return the number of columns."""
        if not self._is_there:
            raise ValueError(f"view {view!r}: every row is missing; leave the view out")
        return self._width


def names_of_numbers(spec, width):
    """Return the names of the columns of a dense view."""
    names = spec["columns"] if spec["kind"] == "number" else [f"x{i}" for i in range(width)]
    return np.array(names, dtype=object)


def take_rows(parts, rows):
    """Return some rows of a table that comes in parts; `rows` are in order."""
    found, first = [], 0
    for table in parts:
        lo, hi = np.searchsorted(rows, [first, first + table.num_rows])
        if hi > lo or not found:
            found.append(table.take(pa.array(rows[lo:hi] - first)))
        first += table.num_rows
    return pa.concat_tables(found)


@contextmanager
def rows_from(first):
    """Let errors count rows from that of a part on."""
    try:
        yield
    except RowError as error:
        view, row, *rest = error.args
        raise RowError(view, row + first, *rest) from error


def _warn_dropped(view, n_dropped):
    if n_dropped:
        warn_user(
            f"view {view!r} has very many different words: {n_dropped:,} times a word was dropped "
            "that had been in one row so far, and rare words may be missing",
            UserWarning,
        )
