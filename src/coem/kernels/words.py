r"""Words of documents, and how often each is there, straight from Arrow's string buffers.

The words of a text are those of ``re.findall(r"\b\w\w+\b", text.lower())``, scikit-learn's default.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coem.kernels import _compiled, threads
from coem.typing import Array

PIECE = 1 << 20  # bytes of text that one call of the kernel counts
CODES = 0x110000  # code points of Unicode
# The two characters whose lower case is not one character that depends on nothing else.
CONTEXT = {"\u03a3": b"\xce\xa3", "\u0130": b"\xc4\xb0"}


class Strings(NamedTuple):
    """Strings as Arrow keeps them: string i is ``data[offsets[i]:offsets[i + 1]]``, in UTF-8."""

    offsets: Array
    """int64, one more than there are strings."""
    data: Array
    """uint8."""


class Rule(NamedTuple):
    """What becomes of the words of a text."""

    ngram_range: tuple[int, int] = (1, 1)
    stop_words: Strings | None = None
    vocabulary: Strings | None = None
    """Count these alone, each in the column of its place."""


class Tally(NamedTuple):
    """The words of some rows, in the order of their code points, and where they are."""

    words: Strings
    n_rows: Array
    """int64, for each word the rows that have it."""
    n_times: Array
    """int64, for each word how often it is there."""
    counters: Sequence[_compiled.WordCounter]


def tally_text(rows: Strings, valid: Array | None, rule: Rule, *, lowercase: bool = True) -> Tally:
    """Count the words of texts, on the threads that an engine lends.

    Nothing depends on the number of threads: words are sorted at the end, and counts are integers.

    Parameters
    ----------
    rows : Strings
        Texts. If `lowercase`, none has a character of `CONTEXT`: put ``text.lower()`` there, which
        has none and is its own lower case.
    valid : bool array, optional
        Which rows have a text at all.
    rule : Rule
    lowercase : bool, default=True
        Take every text in lower case.
    """
    first, last = rows.offsets[0], rows.offsets[-1]
    plain = bool(first == last or rows.data[first:last].max() < 0x80)
    letters = _letters(lowercase, 128 if plain else CODES)
    flags = None if valid is None else valid.view(np.uint8)

    def count(part: tuple[int, int]) -> _compiled.WordCounter:
        counter = _counter(rule)
        for piece in _pieces(rows.offsets, *part):
            threads.heed()
            counter.text(*rows, flags, letters, *piece)
        counter.sort()
        return counter

    return _merge(threads.spread(count, _parts(rows.offsets)), rule)


def tally_items(blocks: Iterable[tuple[Array, Strings]], rule: Rule) -> Tally:
    """Count words that are given one by one, and kept as they are.

    Parameters
    ----------
    blocks : iterable of (starts, words)
        Some rows each. The words of row i are ``words[starts[i]:starts[i + 1]]``.
    rule : Rule
    """
    counter = _counter(rule)
    for starts, words in blocks:
        counter.items(starts, *words)
    counter.sort()
    return _merge([counter], rule)


def to_csr(tally: Tally, columns: Array) -> tuple[Array, Array, Array]:
    """Return indptr, indices and float32 counts of the rows; indices are sorted.

    Parameters
    ----------
    tally : Tally
    columns : int32 array
        The column of each word, -1 to leave it out.
    """
    n_kept = [np.empty(counter.n_rows, np.int64) for counter in tally.counters]
    pairs = list(zip(tally.counters, n_kept, strict=True))
    threads.spread(lambda pair: pair[0].count_kept(columns, pair[1]), pairs)
    indptr = np.append(0, np.cumsum(np.concatenate(n_kept)))
    dtype = np.int32 if indptr[-1] <= np.iinfo(np.int32).max else np.int64
    indptr = indptr.astype(dtype)
    indices, data = np.empty(indptr[-1], dtype), np.empty(indptr[-1], np.float32)
    starts = np.append(0, np.cumsum([counter.n_rows for counter in tally.counters]))

    def fill(part: int) -> None:
        own = indptr[starts[part] : starts[part + 1] + 1]
        tally.counters[part].fill(columns, own, indices, data)

    threads.spread(fill, range(len(tally.counters)))
    return indptr, indices, data


def context_rows(rows: Strings) -> Array:
    """Return the rows with a character of `CONTEXT`, which `tally_text` cannot lower."""
    first, last = rows.offsets[0], rows.offsets[-1]
    data, found = rows.data[first:last], np.zeros(0, np.int64)
    if not len(data) or data.max() < 0x80:
        return found
    for lead, trail in CONTEXT.values():
        places = np.flatnonzero(data[:-1] == lead)
        found = np.union1d(found, places[data[places + 1] == trail])
    return np.unique(np.searchsorted(rows.offsets, found + first, side="right") - 1)


def _counter(rule: Rule) -> _compiled.WordCounter:
    counter = _compiled.WordCounter(*rule.ngram_range)
    if rule.stop_words is not None:
        counter.stop(*rule.stop_words)
    if rule.vocabulary is not None:
        counter.know(*rule.vocabulary)
    return counter


def _merge(counters: Sequence[_compiled.WordCounter], rule: Rule) -> Tally:
    if rule.vocabulary is not None:
        nothing = np.zeros(0, np.int64)
        return Tally(rule.vocabulary, nothing, nothing, counters)
    offsets, data, n_rows, n_times = _compiled.merge_words(list(counters))
    return Tally(Strings(offsets, data), n_rows, n_times, counters)


def _parts(offsets: Array) -> list[tuple[int, int]]:
    """Return one range of rows for each thread, with about the same number of bytes."""
    n_rows = len(offsets) - 1
    targets = np.linspace(offsets[0], offsets[-1], threads.n_workers() + 1)[1:-1]
    cuts = [0, *np.searchsorted(offsets[:-1], targets).tolist(), n_rows]
    return list(pairwise(cuts))


def _pieces(offsets: Array, first: int, last: int) -> list[tuple[int, int]]:
    """Return ranges of rows of some bytes each, between which Ctrl-C is heard."""
    targets = np.arange(offsets[first] + PIECE, offsets[last], PIECE)
    cuts = np.unique([first, *np.searchsorted(offsets[first:last], targets) + first, last])
    return list(pairwise(cuts.tolist()))


@cache
def _letters(lowercase: bool, size: int) -> Array:
    """Return for each code point what it becomes inside a word, -1 if it is in none.

    This interpreter's own `str.lower` and `re` say so, and not a table of some Unicode version.
    """
    codes = np.arange(size, dtype=np.uint32)
    skip = np.array([ord(c) for c in CONTEXT] if lowercase else [], np.uint32)
    surrogate = (codes >= 0xD800) & (codes < 0xE000)
    codes = codes[~surrogate & ~np.isin(codes, skip)]
    text = codes.astype("<u4").tobytes().decode("utf-32-le")
    text = text.lower() if lowercase else text
    lower = np.frombuffer(text.encode("utf-32-le"), "<u4")
    letters = np.full(size, -1, np.int32)
    for match in re.finditer(r"\w+", text):
        run = slice(*match.span())
        letters[codes[run]] = lower[run]
    letters.flags.writeable = False
    return letters
