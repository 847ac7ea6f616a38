"""Columns by the hash of a word: no vocabulary is learnt, and new words have a place."""

import zlib
from numbers import Integral

import numpy as np
import scipy.sparse as sp

from coem.checks import check_number
from coem.kernels.words import to_csr
from coem.text._tables import from_strings
from coem.text.counting import count

HASHED = ("text", "list", "category")  # kinds of views whose columns are hashes
NAMED = 10_000  # rows whose words give names to columns
MOST = 1 << 26  # columns


class HashMixin:
    """The part of `TextViews` that finds columns by hashing."""

    def _hashed(self, view):
        """Return whether the columns of a view are hashes."""
        return self.hash_features is not None and self.views_[view]["kind"] in HASHED

    def _check_hashing(self):
        """Refuse what hashes cannot be combined with."""
        if self.hash_features is None:
            return
        check_number("hash_features", self.hash_features, Integral, 2)
        if self.hash_features > MOST:
            raise ValueError(f"hash_features must be at most {MOST:,}, got {self.hash_features}")
        for name, default in {"min_df": 1, "max_df": 1.0, "max_features": None}.items():
            if getattr(self, name) != default:
                raise ValueError(
                    f"{name} chooses words of a vocabulary, and with hash_features there is none; "
                    f"leave {name} out"
                )

    def _hashed_names(self, source, options, view):
        """Return a name for each column: its most frequent word in the first rows."""
        few = first_rows(source, NAMED)
        _, tally = count(few, options, view)
        width = int(self.hash_features)
        columns = _columns(tally, width)
        names = np.array([f"#{i}" for i in range(width)], dtype=object)
        order = np.argsort(tally.n_times, kind="stable")
        names[columns[order]] = from_strings(tally.words, order)  # the last one stays
        return names

    def _hashed_counts(self, source, options, view):
        """Return the counts of the columns, as CSR."""
        n_rows, tally = count(source, options, view)
        width = int(self.hash_features)
        indptr, indices, data = to_csr(tally, _columns(tally, width))
        counts = sp.csr_array((data, indices, indptr), shape=(n_rows, width))
        counts.sum_duplicates()
        return counts


def first_rows(source, n_rows):
    """Return the first rows of texts or of lists."""
    if not isinstance(source, tuple):
        return source.slice(0, n_rows)
    starts, words = source
    starts = starts[: n_rows + 1]
    return starts, words.slice(0, int(starts[-1]))


def _columns(tally, width):
    """Return the column of each word: the CRC-32 of its UTF-8, modulo the number of columns."""
    offsets, data = tally.words
    whole = data.tobytes()
    places = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    return np.array([zlib.crc32(whole[a:b]) % width for a, b in places], dtype=np.int32)
