"""Stop words: lists by language, and words that a collection spreads evenly over its documents."""

from functools import cache

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from coem.text.languages import ENGLISH, LANGUAGES, close_to, code_of

AUTO, CORPUS, NONE = "auto", "corpus", "none"
INSTALL = "pip install 'coem[languages]'"
LEAST_DF = 0.25  # the least share of the rows that have an even word
LEAST_ROWS = 20  # fewer rows cannot show how even a word is
EVEN = 0.1  # the largest residual IDF of an even word, in bits
# "aujourd'hui" is two tokens in a text; a list may have either mark.
APOSTROPHES = "'\u2019"


def parts_of(words, where=""):
    """Return what `stop_words` names: codes of languages, "auto" and "corpus"; none for "none".

    Parameters
    ----------
    words : str
        One or more names or codes, with ``+`` between them.
    where : str, optional
        What errors begin with.
    """
    names = [] if words.strip().lower() == NONE else words.split("+")
    return list(dict.fromkeys(_part(name, where) for name in names))


def _part(name, where):
    """Return the code of a language, "auto" or "corpus"; raise for any other name."""
    plain = name.strip().lower()
    if not plain:
        raise ValueError(
            f"{where}stop_words: a name is missing; write 'german', or 'german+french' for several"
        )
    part = plain if plain in (AUTO, CORPUS) else code_of(plain)
    if part is None:
        close = " or ".join(map(repr, close_to(name, (AUTO, CORPUS, NONE))))
        meant = f"; did you mean {close}?" if close else "."
        raise ValueError(
            f"{where}stop_words: there is no list for {name!r}{meant} A language has a name or a "
            "code, 'german' or 'de', and + joins several; else 'auto', 'corpus', 'none' or a list "
            "of words"
        )
    return part


def written(parts):
    """Return parts as `stop_words` takes them, with the names of languages."""
    return "+".join(LANGUAGES.get(part, part) for part in parts) or NONE


def check_stop_words(words, where=""):
    """Raise unless something can be `stop_words`; lists of languages must be there."""
    if isinstance(words, str):
        for part in parts_of(words, where):
            if part in LANGUAGES:
                listed(part)
    elif words is not None:
        good = isinstance(words, list | tuple | set | frozenset | np.ndarray)
        if not good or not all(isinstance(word, str) for word in words):
            raise ValueError(
                f"{where}stop_words must be None, a language such as 'english', 'auto', 'corpus' "
                f"or a list of words, got {words!r:.60}"
            )


def is_there(code):
    """Return whether there is a list for a language on this machine."""
    try:
        return bool(listed(code))
    except ImportError:
        return False


@cache
def listed(code):
    """Return the stop words of a language, by its code.

    English has the list of scikit-learn, and all others those of stopwordsiso. A word with an
    apostrophe stands for its parts, which are what texts are counted by.
    """
    if code == ENGLISH:
        return ENGLISH_STOP_WORDS
    try:
        import stopwordsiso
    except ImportError as error:
        raise ImportError(
            f"the stop words of {LANGUAGES[code].title()} are in stopwordsiso: {INSTALL}"
        ) from error
    found = set()
    for word in stopwordsiso.stopwords(code):
        plain = word.lower().translate(dict.fromkeys(map(ord, APOSTROPHES), " "))
        found |= {word.lower()} if plain == word.lower() else set(plain.split())
    return frozenset(found)


def even_words(counts, words):
    """Return the words that are in many rows, and that chance would spread in the same way.

    A word that says something of a row comes again in it: it is in fewer rows than chance would put
    its occurrences into. Words such as "writes" and "article" in letters are in as many. The
    measure is the residual IDF of Church & Gale (1995), in bits: the logarithm of the number of
    rows that chance would give a word, by the number of rows that have it. Here chance knows how
    long the rows are.

    Parameters
    ----------
    counts : sparse matrix of shape (n_rows, n_words)
    words : ndarray of str

    Returns
    -------
    even : ndarray of str
        In their order; none if there are fewer than 20 rows with words.
    """
    counts = counts.tocsr()
    lengths = np.asarray(counts.sum(axis=1), dtype=np.float64).ravel()
    n_rows = np.bincount(counts.indices, counts.data > 0, counts.shape[1])
    totals = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    return words[even_columns(n_rows, totals, *np.unique(lengths, return_counts=True))]


def even_columns(n_rows, totals, sizes, how_many):
    """Return which words are even.

    Parameters
    ----------
    n_rows, totals : arrays of shape (n_words,)
        The rows that have a word, and how often it is there.
    sizes, how_many : arrays
        The lengths of rows, in order, and how many rows are so long.
    """
    n_filled = int(how_many[sizes > 0].sum())
    if n_filled < LEAST_ROWS:
        return np.zeros(0, dtype=np.intp)
    frequent = np.flatnonzero(n_rows >= LEAST_DF * n_filled)
    share = totals[frequent] / (sizes @ how_many)
    expected = -np.expm1(-np.outer(share, sizes)) @ how_many
    return frequent[np.log2(expected / n_rows[frequent]) <= EVEN]
