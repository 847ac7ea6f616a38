"""Documents as a page can show them: short, on one line, and nothing but text."""

import re

import numpy as np

EXCERPT = 300
UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def clean(text):
    """Return text without what no page can hold: control characters, halves of characters."""
    return UNFIT.sub("\ufffd", str(text))


def excerpt(text, length=EXCERPT):
    r"""Return the beginning of a text on one line, cut between words.

    Parameters
    ----------
    text : str or None
        Any text of any length.
    length : int, default=300
        The largest number of characters.

    Examples
    --------
    >>> excerpt("To be,\n or not  to be", 12)
    'To be, or…'
    """
    # A few times the length is enough however long the document is.
    nothing = text is None or text != text  # NaN, as tables have it
    start = ("" if nothing else str(text)).lstrip()[: 20 * length]
    line = clean(" ".join(start.split()))
    if len(line) <= length:
        return line
    cut = line[: length - 1]
    head, space, _ = cut.rpartition(" ")
    return (head if space and len(head) > length // 2 else cut).rstrip(" ,;:-") + "…"


class Texts:
    """Ids, titles and excerpts of the rows.

    Where there is no text, a row is shown by its words of the largest weight.
    """

    def __init__(self, n_rows, ids=None, texts=None, titles=None, words=None):
        for what, given in (("ids", ids), ("texts", texts), ("titles", titles)):
            if given is not None and len(given) != n_rows:
                raise ValueError(f"{what} has {len(given)} entries for {n_rows} rows")
        given = range(n_rows) if ids is None else ids
        self.ids = np.array([excerpt(i, 200) for i in given], dtype=object)
        self._texts = texts if texts is None else list(texts)
        self._titles = titles if titles is None else list(titles)
        self._words = words

    @property
    def there(self):
        """Whether there are texts, and not words alone."""
        return self._texts is not None

    @property
    def titled(self):
        """Whether there are titles."""
        return self._titles is not None

    def title(self, row):
        """Return the title of a row, or nothing."""
        return "" if self._titles is None else excerpt(self._titles[row], 120)

    def excerpt(self, row, length=EXCERPT):
        """Return the beginning of a row's text, or its words."""
        if self._texts is not None:
            return excerpt(self._texts[row], length)
        return "" if self._words is None else excerpt(self._words(row), length)

    def whole(self, row):
        """Return the text of a row, or all its words."""
        if self._texts is None:
            return "" if self._words is None else clean(self._words(row, None))
        text = self._texts[row]
        nothing = text is None or text != text
        return "" if nothing else clean(str(text).replace("\r\n", "\n").strip())


def words_shown(space, names, n=12):
    """Return a function from a row to its n words of the largest weight, view after view."""
    shown = [(rows, names[view]) for view, rows in space.rows.items() if view in names]
    shown = [(rows, columns) for rows, columns in shown if hasattr(rows, "indptr")]

    def words(row, n=n):
        found = []
        for rows, columns in shown:
            inside = slice(rows.indptr[row], rows.indptr[row + 1])
            top = np.argsort(-rows.data[inside], kind="stable")[:n]
            found += [columns[f] for f in rows.indices[inside][top].tolist()]
        return " ".join(dict.fromkeys(found))

    return words if shown else None
