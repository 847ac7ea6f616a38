"""Words, vocabulary and counts, by the rules of scikit-learn's `CountVectorizer`."""

import re
import weakref
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from coem.checks import check_number
from coem.kernels.words import Rule, context_rows, tally_items, tally_text, to_csr
from coem.text._tables import from_strings, strings, to_strings
from coem.text.stop_words import check_stop_words

TOKENS = r"(?u)\b\w\w+\b"
_FAST = (TOKENS, r"\b\w\w+\b")  # what the kernel does; any other pattern is left to `re`
_BLOCK = 1000  # rows whose tokens are Python's at a time
_FEW = 200  # rows whose words are looked up one by one, without a table of the vocabulary
_COLUMNS = {}  # by the address of a vocabulary: the column of each of its words


@dataclass(frozen=True)
class Options:
    """How the words of one view are counted: `CountVectorizer`'s parameters of these names.

    To count, `stop_words` must be words or None: `stop_words_of` finds the words that names of
    languages stand for.
    """

    min_df: Any = 1
    max_df: Any = 1.0
    max_features: Any = None
    lowercase: bool = True
    stop_words: Any = None
    ngram_range: tuple[int, int] = (1, 1)
    token_pattern: str = TOKENS

    def check(self, view):
        """Refuse what makes no sense, and name the view."""
        where = f"view {view!r}: "
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            whole = isinstance(value, Integral) and not isinstance(value, bool) and value >= 1
            part = isinstance(value, Real) and not isinstance(value, Integral) and 0 <= value <= 1
            if not whole and not part:
                raise ValueError(
                    f"{where}{name} must be a number of rows of 1 or more, or a share as a float "
                    f"between 0 and 1, got {value!r}"
                )
        check_number(f"{where}max_features", self.max_features, Integral, 1, optional=True)
        if not isinstance(self.lowercase, bool | np.bool_):
            raise ValueError(f"{where}lowercase must be True or False, got {self.lowercase!r}")
        self._check_range(where)
        check_stop_words(self.stop_words, where)
        self.pattern(view)

    def _check_range(self, where):
        span = self.ngram_range
        good = isinstance(span, list | tuple) and len(span) == 2
        good = good and all(isinstance(n, Integral) for n in span)
        if not good or not 1 <= span[0] <= span[1]:
            raise ValueError(f"{where}ngram_range must be (least, most), from 1 up, got {span!r}")

    def pattern(self, view):
        """Return the compiled pattern of tokens."""
        try:
            pattern = re.compile(self.token_pattern)
            if isinstance(self.token_pattern, str) and pattern.groups <= 1:
                return pattern
        except (re.error, TypeError) as error:
            reason = f" ({error})"
        else:
            reason = ""
        raise ValueError(
            f"view {view!r}: token_pattern must be a regular expression with at most one group, "
            f"got {self.token_pattern!r}{reason}"
        )


def count(source, options, view, vocabulary=None):
    """Return the number of rows of texts or of lists, and their words or items."""
    if isinstance(source, pa.Array):
        return len(source), count_text(source, options, view, vocabulary)
    starts, words = source
    return len(starts) - 1, count_items(starts, words, vocabulary)


def count_known(source, options, view, vocabulary):
    """Return the counts of the words of a vocabulary, as CSR.

    Parameters
    ----------
    source : pyarrow.LargeStringArray or (starts, words)
        Texts or lists.
    options : Options
    view : str
        For error messages.
    vocabulary : ndarray of str
        The words of the columns, in order. It must not change later.
    """
    n_rows = len(source) if isinstance(source, pa.Array) else len(source[0]) - 1
    if n_rows > _FEW:
        _, tally = count(source, options, view, vocabulary)
        return matrix(tally, n_rows)
    # A table of all words takes longer than the words of a few rows.
    _, tally = count(source, options, view)
    known = _columns_of(vocabulary)
    words = from_strings(tally.words, np.arange(len(tally.n_rows))).tolist()
    columns = np.array([known.get(word, -1) for word in words], dtype=np.int32)
    counts = sp.csr_array(_parts(tally, columns), shape=(n_rows, len(vocabulary)))
    counts.sort_indices()  # a vocabulary may be in another order
    return counts


def _columns_of(vocabulary):
    """Return the column of each word, kept as long as the vocabulary lives."""
    address = id(vocabulary)
    if address not in _COLUMNS:
        _COLUMNS[address] = {word: column for column, word in enumerate(vocabulary.tolist())}
        weakref.finalize(vocabulary, _COLUMNS.pop, address, None)
    return _COLUMNS[address]


def count_text(texts, options, view, vocabulary=None):
    """Return the words of a `large_string` array, as the kernels count them.

    Parameters
    ----------
    texts : pyarrow.LargeStringArray
    options : Options
    view : str
        For error messages.
    vocabulary : sequence of str, optional
        Count these words alone.
    """
    stops = options.stop_words
    rule = Rule(
        tuple(map(int, options.ngram_range)),
        to_strings(sorted(stops)) if stops is not None and len(stops) else None,
        None if vocabulary is None else to_strings(vocabulary),
    )
    if options.token_pattern not in _FAST:
        return tally_items(_found(texts, options.pattern(view), options.lowercase), rule)
    lowercase = bool(options.lowercase)
    texts = _without_context(texts) if lowercase else texts
    valid = np.asarray(texts.is_valid()) if texts.null_count else None
    return tally_text(strings(texts), valid, rule, lowercase=lowercase)


def count_items(starts, words, vocabulary=None):
    """Return the items of rows, as the kernels count them."""
    rule = Rule(vocabulary=None if vocabulary is None else to_strings(vocabulary))
    return tally_items([(starts, strings(words))], rule)


def _found(texts, pattern, lowercase):
    """Yield what a pattern finds, some rows at a time."""
    for first in range(0, len(texts), _BLOCK):
        rows = [text or "" for text in texts.slice(first, _BLOCK).to_pylist()]
        found = [pattern.findall(text.lower() if lowercase else text) for text in rows]
        starts = np.append(0, np.cumsum([len(row) for row in found]))
        yield starts.astype(np.int64), to_strings(word for row in found for word in row)


def _without_context(texts):
    """Return the texts, in lower case where only Python can tell what that is."""
    rows = context_rows(strings(texts))
    if not len(rows):
        return texts
    mask = np.zeros(len(texts), bool)
    mask[rows] = True
    lowered = [(texts[int(row)].as_py() or "").lower() for row in rows]
    return pc.replace_with_mask(texts, pa.array(mask), pa.array(lowered, pa.large_string()))


def learn(tally, options, n_rows, view, *, limit=True):
    """Return the words that are frequent enough, in order, and the counts; see `choose`."""
    kept = choose(tally, options, n_rows, view, limit=limit)
    return from_strings(tally.words, kept), matrix(tally, n_rows, kept)


def choose(tally, options, n_rows, view, *, limit=True):
    """Return which words are frequent enough, in order.

    Parameters
    ----------
    tally : Tally
    options : Options
    n_rows : int
    view : str
        For error messages.
    limit : bool, default=True
        Keep no more than `max_features`.
    """
    if not len(tally.n_rows):
        stopped = options.stop_words is not None and len(options.stop_words)
        raise ValueError(
            f"view {view!r}: no row has a word or item; name another column, or leave the view out"
            + (" (or all words are stop words)" if stopped else "")
        )
    most, least = (
        value if isinstance(value, Integral) else value * n_rows
        for value in (options.max_df, options.min_df)
    )
    if n_rows < least and isinstance(options.min_df, Integral):
        there = "is only 1 row" if n_rows == 1 else f"are only {n_rows} rows"
        raise ValueError(
            f"view {view!r}: there {there}, and min_df ({options.min_df!r}) leaves out words that "
            f"fewer than {options.min_df} rows have; add rows, or lower min_df"
        )
    if most < least:
        raise ValueError(
            f"view {view!r}: max_df ({options.max_df!r}) comes to fewer rows than min_df "
            f"({options.min_df!r})"
        )
    kept = np.flatnonzero((tally.n_rows <= most) & (tally.n_rows >= least))
    if limit and options.max_features is not None and len(kept) > options.max_features:
        # The very call of scikit-learn, so that equal words are cut off where it cuts them.
        kept = np.sort(kept[(-tally.n_times[kept]).argsort()[: options.max_features]])
    if not len(kept):
        raise ValueError(
            f"view {view!r}: min_df and max_df leave no word; {_unparted(tally, options, n_rows)}"
            "lower min_df or raise max_df, or leave the view out"
        )
    return kept


def _unparted(tally, options, n_rows):
    """Say how lists are written if no row has several items and some look as if they were."""
    if tally.n_times.sum() > n_rows or options.ngram_range[1] > 1:
        return ""
    words = from_strings(tally.words, np.arange(len(tally.n_rows)))
    several = next((word for word in words if re.search(r"\S[\s,]+\S", word)), None)
    if several is None:
        return ""
    return (
        f"{several[:60]!r} is read as one item: write | or ; between the items of a list, or a "
        f"JSON list; else "
    )


def matrix(tally, n_rows, kept=None):
    """Return the counts of the words in float32, as CSR with sorted indices.

    float32 is what the data sets of coem have and what the kernels read fastest; it holds all
    counts up to 2^24 exactly.

    Parameters
    ----------
    tally : Tally
    n_rows : int
    kept : array of int, optional
        The words that become columns, in this order; all of them if not given.
    """
    n_words = len(tally.words.offsets) - 1
    columns = np.arange(n_words, dtype=np.int32)
    if kept is not None:
        columns[:] = -1
        columns[kept] = np.arange(len(kept), dtype=np.int32)
    width = n_words if kept is None else len(kept)
    counts = sp.csr_array(_parts(tally, columns), shape=(n_rows, width))
    counts.has_canonical_format = True  # nothing is there twice: saves a look at all of it
    return counts


def _parts(tally, columns):
    """Return data, indices and indptr, as SciPy takes them."""
    indptr, indices, data = to_csr(tally, columns)
    return data, indices, indptr
