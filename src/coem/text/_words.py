"""Which words the views of `TextViews` count, and which they leave out."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coem.phrases import enumerated
from coem.runs import warn_user
from coem.text._sources import fill_gaps, read_rows, read_source
from coem.text.counting import Options, count_known, count_text, learn
from coem.text.languages import ENGLISH, LANGUAGES, find_languages
from coem.text.specs import COUNTS, by_view
from coem.text.stop_words import (
    AUTO,
    CORPUS,
    INSTALL,
    even_words,
    is_there,
    listed,
    parts_of,
    written,
)

_FREQUENCY = ("min_df", "max_df", "max_features")  # options of all views of counts
_WORDS = ("lowercase", "stop_words", "ngram_range", "token_pattern")  # of views of text


class WordsMixin:
    """The part of `TextViews` that says which words count."""

    def name_stop_words(self):
        """Name the stop words that "auto" found, as if they had been named before the fit.

        A new fit takes the same lists, whatever the languages of its texts are.

        Returns
        -------
        self : TextViews
        """
        check_is_fitted(self, "stop_lists_")
        if isinstance(self.stop_words, Mapping):
            self.stop_words = {**self.stop_words, **self.stop_lists_}
        elif self.stop_lists_:  # one value for all views
            self.stop_words = next(iter(self.stop_lists_.values()))
        self.languages_ = {}
        return self

    def known_words(self, X):
        """Return how many words of some documents the vocabularies have, and how many there are.

        Stop words do not count, nor do views that are not of text.

        Parameters
        ----------
        X : table
            With the columns that the views are made of.

        Returns
        -------
        n_known, n_words : int
        """
        check_is_fitted(self, "vocabulary_")
        texts = {view: spec for view, spec in self.views_.items() if spec["kind"] == "text"}
        table, _ = fill_gaps(read_rows(X), texts, None)
        n_known = n_words = 0
        for view, spec in texts.items():
            source = read_source(table, view, spec, given=None, id=None, links={})
            options = self._options(fitted=True)[view]
            n_known += int(count_known(source, options, view, self.vocabulary_[view]).sum())
            stopped = replace(options, stop_words=self.stop_words_[view])
            n_words += int(count_text(source, stopped, view).n_times.sum())
        return n_known, n_words

    def _options(self, *, fitted=False):
        """Return checked options for each view of counts; after `fit` stop words are known."""
        specs, standard = self.views_, Options()
        options = {name: {} for name, spec in specs.items() if spec["kind"] in COUNTS}
        for names, kinds in ((_FREQUENCY, COUNTS), (_WORDS, ("text",))):
            for option in names:
                value, default = getattr(self, option), getattr(standard, option)
                for view, own in by_view(option, value, specs, default, kinds).items():
                    options[view][option] = own
        known = self.stop_words_ if fitted else {}
        for view in known:
            options[view]["stop_words"] = None  # no column is a stop word
        options = {view: Options(**own) for view, own in options.items()}
        for view, own in options.items():
            own.check(view)
        for view, words in known.items():
            if options[view].ngram_range[1] > 1:  # a pair is not parted by a stop word
                options[view] = replace(options[view], stop_words=words)
                options[view].check(view)
        return options

    def _find_stop_words(self, sources, options, even=None):
        """Find the stop words of the views of text, and return the options with them.

        `even` is that of `stop_words_of`.
        """
        texts = {v: sources[v] for v, spec in self.views_.items() if spec["kind"] == "text"}
        self.stop_words_, named, self.languages_ = stop_words_of(texts, options, even)
        self.stop_lists_ = {view: written(parts) for view, parts in named.items()}
        known = self.stop_words_.items()
        return options | {view: replace(options[view], stop_words=words) for view, words in known}


def stop_words_of(texts, options, even=None):
    """Return the stop words of views of text, what they are named, and the languages of the texts.

    Parameters
    ----------
    texts : dict of view to pyarrow.LargeStringArray
    options : dict of view to Options
    even : function of (view, options), optional
        Returns the words that are spread evenly over the rows, if `texts` are only some of them.

    Returns
    -------
    words : dict of view to ndarray of str
        Sorted.
    named : dict of view to list of str
        The parts of the option, "auto" replaced by what was found, of the views that name any.
    languages : dict of str to float
        What "auto" found: codes with their shares of the rows.
    """
    own = {view: options[view].stop_words for view in texts}
    named = {view: parts_of(given) for view, given in own.items() if isinstance(given, str)}
    asking = [view for view, parts in named.items() if AUTO in parts]
    languages = find_languages([texts[view] for view in asking], _count)
    lists = _lists(languages) if asking else []
    named = {view: _replaced(parts, lists) for view, parts in named.items()}
    words = {
        view: _words(named[view], texts[view], options[view], view, even)
        if view in named
        else given
        for view, given in own.items()
    }
    found = {view: np.array(sorted(set(chosen or ())), object) for view, chosen in words.items()}
    return found, named, languages


def _count(texts, words):
    """Return the counts of some words, as CSR."""
    return count_known(texts, Options(), "", words)


def _lists(languages):
    """Return the lists for texts in some languages: English if none is known.

    Where a list is not installed, "corpus" takes its place, with a warning.
    """
    missing = [code for code in languages if not is_there(code)]
    if missing:
        names = enumerated([LANGUAGES[code].title() for code in missing])
        warn_user(
            f"the texts are in {names}, and the stop words of {names} are not installed: "
            f"{INSTALL}. Words that are spread evenly over the rows are left out in their place",
            UserWarning,
        )
    there = [code for code in languages if code not in missing]
    return [*there, *([CORPUS] if missing else [])] or [ENGLISH]


def _replaced(parts, lists):
    """Return the parts with lists in place of "auto", each once; "corpus" is the last."""
    found = [new for part in parts for new in (lists if part == AUTO else [part])]
    return sorted(dict.fromkeys(found), key=lambda part: part == CORPUS)


def _words(parts, texts, options, view, even):
    """Return the stop words of one view by the lists that it names."""
    found = frozenset().union(*(listed(part) for part in parts if part != CORPUS))
    if CORPUS not in parts:
        return found
    single = replace(options, stop_words=found, ngram_range=(1, 1), min_df=1, max_df=1.0)
    if even is not None:
        return found.union(even(view, single).tolist())
    tally = count_text(texts, single, view)
    words, counts = learn(tally, single, len(texts), view, limit=False)
    return found.union(even_words(counts, words).tolist())
