"""The view of latent directions of `TextViews`."""

from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from coem.text._sources import fill_gaps, read_rows, read_source
from coem.text._streamed import with_directions
from coem.text.directions import LatentDirections
from coem.views import Views

AUTO = "auto"
LEAST_ROWS, LEAST_WORDS = 100, 100  # "auto" makes no directions of less
ALL_EQUAL = "all rows have the same words; leave latent out"


class LatentMixin:
    """The part of `TextViews` that makes a view of latent directions, and explains it."""

    def latent_words(self, X, shares):
        """Divide a sum over the latent directions of one row among its words.

        Parameters
        ----------
        X : table
            One row.
        shares : array of shape (n_directions,)
            What each direction adds, such as the contributions that `explain` returns.

        Returns
        -------
        words : list of str
            The words of the row; "view: word" if there are several views of text.
        contributions : ndarray of shape (n_words,)
            What each of them adds.
        rest : float
            What belongs to no word.
        """
        check_is_fitted(self, "vocabulary_")
        if self.latent_ is None:
            raise ValueError("there is no view of latent directions; fit with latent=True")
        counts = self._counted(read_rows(X))
        return split_among_words(self.latent_, counts, self.vocabulary_, shares)

    def _counted(self, table):
        """Return the counts of the views of text, as they are before they are scaled."""
        texts = {view: spec for view, spec in self.views_.items() if spec["kind"] == "text"}
        table, _ = fill_gaps(table, texts, None)
        options, counts = self._options(fitted=True), {}
        for view, spec in texts.items():
            source = read_source(table, view, spec, given=None, id=None, links={})
            counts[view] = self._apply(view, source, options)
        return Views(counts)

    def drop_latent(self):
        """Forget the latent directions: `transform` no longer makes their view.

        Returns
        -------
        self : TextViews
            The transformer.
        """
        check_is_fitted(self, "vocabulary_")
        if self.latent_ is not None:
            name, self.latent_ = self.latent_.name, None
            self.views_ = {view: spec for view, spec in self.views_.items() if view != name}
            self.vocabulary_ = {view: w for view, w in self.vocabulary_.items() if view != name}
        return self

    def _words(self, data):
        """Return the views of text."""
        texts = [view for view, spec in self.views_.items() if spec["kind"] == "text"]
        return Views({view: data[view] for view in texts})

    def _learn_latent(self, data):
        """Return the view of latent directions by its name, or nothing without such a view."""
        self.latent_ = directions_for(self.latent, self.n_jobs)
        spec = {} if self.latent_ is None else self.views_.get(self.latent_.name, {})
        if spec.get("kind") != "latent":
            self.latent_ = None
            return {}
        name, words = self.latent_.name, self._words(data)
        if self._are_too_few(len(words), lambda: [words]):
            return {}
        rows = self.latent_.fit_transform(words)[name]
        if np.isnan(rows).all():
            raise ValueError(f"view {name!r}: {ALL_EQUAL}")
        self.vocabulary_[name] = self.latent_.get_feature_names_out()[name]
        return {name: rows}

    def _learn_latent_of(self, corpus):
        """Return a corpus with the view of latent directions, if there is one."""
        self.latent_ = directions_for(self.latent, self.n_jobs)
        spec = {} if self.latent_ is None else self.views_.get(self.latent_.name, {})
        texts = [view for view, own in self.views_.items() if own["kind"] == "text"]
        known = corpus[[view for view in self.views_ if view in corpus.names]]
        if spec.get("kind") != "latent":
            self.latent_ = None
            return known
        words = known[texts]
        if self._are_too_few(len(words), lambda: (shard.read() for shard in words.shards)):
            return known
        name, found = self.latent_.name, with_directions(self.latent_.fit(words), known)
        if all(np.isnan(shard.read()[name]).all() for shard in found[[name]].shards):
            raise ValueError(f"view {name!r}: {ALL_EQUAL}")
        self.vocabulary_[name] = self.latent_.get_feature_names_out()[name]
        return found

    def _are_too_few(self, n_rows, parts_of):
        """Return whether "auto" makes no directions of so few rows and words; forget them then.

        `parts_of` returns the views of text, in parts.
        """
        latent = self.latent_
        if self.latent != AUTO or _suffices(n_rows, parts_of, latent.min_df):
            return False
        self.latent_ = None
        self.views_ = {view: spec for view, spec in self.views_.items() if view != latent.name}
        return True

    def _apply_latent(self, data):
        """Return the view of latent directions by its name, with the directions of `fit`."""
        if self.latent_ is None:
            return {}
        return {self.latent_.name: self.latent_.transform(self._words(data))[self.latent_.name]}


def directions_for(latent, n_jobs):
    """Return the transformer that the parameter `latent` of `TextViews` asks for, or None."""
    if latent is None or latent is False:
        return None
    if isinstance(latent, LatentDirections):
        return clone(latent).set_params(n_jobs=n_jobs)
    if latent is True or latent == AUTO:
        return LatentDirections(n_jobs=n_jobs)
    if isinstance(latent, Integral) and latent >= 1:
        return LatentDirections(int(latent), n_jobs=n_jobs)
    raise ValueError(
        "latent must be None, True, 'auto', a number of directions or a LatentDirections, got "
        f"{latent!r}"
    )


def latent_spec(latent, specs):
    """Return the specification of the view of latent directions by its name, or nothing.

    `specs` are those of the other views.
    """
    found = directions_for(latent, None)
    if found is None:
        return {}
    texts = [view for view, spec in specs.items() if spec["kind"] == "text"]
    if latent == AUTO and (not texts or found.name in specs):
        return {}
    if not any(spec["kind"] == "text" for spec in specs.values()):
        raise ValueError(
            f"latent: the directions are made of views of text, and there is none among "
            f"{list(specs)}; leave latent out"
        )
    if found.name in specs:
        raise ValueError(
            f"latent: there is a view {found.name!r} already; rename it, or give "
            "latent=LatentDirections(name=...)"
        )
    return {found.name: {"kind": "latent", "columns": []}}


def _suffices(n_rows, parts_of, min_df):
    """Return whether there are enough rows, and enough words that occur in some of them."""
    if n_rows < LEAST_ROWS:
        return False
    rows_of_words = None
    for words in parts_of():
        found = [np.bincount(X.indices, minlength=X.shape[1]) for _, X in words.items()]
        both = zip(rows_of_words or found, found, strict=True)
        rows_of_words = found if rows_of_words is None else [a + b for a, b in both]
    return sum(int((n >= min_df).sum()) for n in rows_of_words) >= LEAST_WORDS


def split_among_words(latent, counts, vocabulary, shares):
    """Return the words of one row, what they add to a sum over directions, and the rest."""
    words, contributions, rest = latent.by_word(counts, shares)
    several = len(counts.names) > 1
    names = np.concatenate(
        [
            [f"{view}: {word}" if several else word for word in vocabulary[view]]
            for view in counts.names
        ]
    )
    return names[words].tolist(), contributions, rest
