"""Lists of names as sentences have them.

This imports nothing that takes time: the program says what it wrote after Ctrl-C, which may come
while NumPy is loaded.
"""

from collections.abc import Iterable, Sequence


def enumerated(names: Sequence[str]) -> str:
    """Return names as a sentence has them.

    Examples
    --------
    >>> enumerated(["German", "French", "English"])
    'German, French and English'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)


def first_few(names: Iterable[str], most: int = 10) -> str:
    """Return the first names, and how many more there are: a message has to be short.

    Examples
    --------
    >>> first_few(["id", "title", "body"])
    'id, title, body'
    >>> first_few(["id", "title", "body"], most=1)
    'id and 2 more'
    """
    names = list(names)
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")
