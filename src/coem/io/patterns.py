"""Which patterns of words in a file are safe to use if you do not know the author of the file.

Python's `re` has no limit of time, and a short pattern can take for ever: ``(a+)+b``. A *plain*
pattern cannot. It is a row of characters or kinds of characters, of which the last alone may be
repeated, with a word boundary before it, or before and after it. There is nothing to go back to:
what is repeated last either suffices or does not, and what lies behind its end is not the
beginning of another word. So it takes a time proportional to the text.

N-grams take a time proportional to the text if they are short. A text has about as many of each
length as it has words: those of all lengths together are as long as its cube.
"""

import re
from numbers import Real

LONGEST = 200  # characters of a plain pattern
LONGEST_NGRAM = 10  # words or characters

_ESCAPED = r"\\[wWdDsS]|\\[^A-Za-z0-9]"
_ONE = rf"(?:{_ESCAPED}|\[\^?(?:{_ESCAPED}|[^\\\[\]])+\]|[^\\\[\](){{}}*+?|^$])"
_REPEATED = r"(?:[*+]|\{\d{1,3}(?:,\d{0,3})?\})?"
_PLAIN = re.compile(
    rf"(?:\(\?[aiu]\))?(?:\\b{_ONE}+{_REPEATED}\\b|(?:\\b)?{_ONE}+{_REPEATED})", re.DOTALL
)


def is_plain(pattern: object) -> bool:
    r"""Return whether a pattern takes a time proportional to the text, whatever the text is.

    Examples
    --------
    >>> [is_plain(pattern) for pattern in (r"(?u)\b\w\w+\b", "[a-z]{3,}", r"\S+", "(a+)+b")]
    [True, True, True, False]
    """
    return isinstance(pattern, str) and len(pattern) <= LONGEST and bool(_PLAIN.fullmatch(pattern))


def has_short_ngrams(span: object) -> bool:
    """Return whether no n-gram of a span (least, most), if it is one, has more than the limit."""
    sizes = span if isinstance(span, list | tuple) else [span]
    return not any(isinstance(size, Real) and not size <= LONGEST_NGRAM for size in sizes)
