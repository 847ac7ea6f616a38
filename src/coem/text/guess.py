"""Guess which columns of a table are text, lists or vectors, and say why."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coem.text._tables import SEPARATOR, column, is_list, is_text

ROWS = 1000  # the guess looks at so many rows, evenly spread over the table
LONG = 20  # the least mean length of texts without blanks, such as Chinese, in characters
SHORT = 40  # the largest mean length of the items of a list, in characters


class Guess(NamedTuple):
    """The kind of view that a column seems to be, or None if it seems to be no view, and why."""

    kind: str | None
    why: str


def guess_views(table, id_column=None):
    """Return the views that the columns of a table seem to be, and a sentence about each column.

    Parameters
    ----------
    table : pyarrow.Table
    id_column : str, optional
        The column with the ids of the rows. It is not a view.

    Returns
    -------
    views : dict of str to dict
        The kind and the columns of each view. A view has the name of its column.
    sentences : list of str
        What each column was taken for, and why.

    Raises
    ------
    ValueError
        If no column seems to be a view.
    """
    views, sentences = {}, []
    for name in table.column_names:
        if name == id_column:
            guess = Guess(None, "it has the ids")
        else:
            guess = _guess_column(_sample(column(table, name, name)))
        if guess.kind is None:
            sentences.append(f"Column {name!r} is left alone: {guess.why}.")
        else:
            views[name] = {"kind": guess.kind, "columns": [name]}
            sentences.append(f"Column {name!r} is a view of kind {guess.kind!r}: {guess.why}.")
    if not views:
        raise ValueError(
            "no column looks like text, lists or vectors; name one, as in views={'text': 'COLUMN'}."
            + "".join(f" {sentence}" for sentence in sentences)
        )
    return views, sentences


def _sample(array):
    rows = np.unique(np.linspace(0, max(len(array) - 1, 0), ROWS).astype(np.int64))
    return array.take(pa.array(rows)) if len(array) > ROWS else array


def _guess_column(array):
    """Return the guess for one column."""
    kind = array.type
    if is_list(kind):
        inner = kind.value_type
        if pa.types.is_floating(inner):
            return Guess("vector", "it holds lists of numbers")
        if is_text(inner) or pa.types.is_integer(inner):
            return Guess("list", "it holds lists")
        return Guess(None, f"it holds {kind}")
    if not is_text(kind):
        return Guess(None, f"it holds {kind} and no text")
    return _guess_text([text for text in array.to_pylist() if text and not text.isspace()])


def _guess_text(texts):
    """Return the guess for a column of text from its values that are not empty."""
    if not texts:
        return Guess(None, "it is empty")
    items = [SEPARATOR.split(text.strip().strip("[]")) for text in texts]
    lengths = [len(item.strip()) for row in items for item in row]
    if np.mean([len(row) > 1 for row in items]) >= 0.5 and np.mean(lengths) <= SHORT:
        return Guess("list", "most of its values are short items between | or ;")
    if np.mean([text.strip().startswith("[") and "," in text for text in texts]) >= 0.5:
        return Guess("list", "most of its values are lists in brackets")
    length, words = np.mean([len(t) for t in texts]), np.mean([len(t.split()) for t in texts])
    share = len(set(texts)) / len(texts)
    about = f"{length:.0f} characters and {words:.1f} words on average"
    if words <= 1.5 and (length < LONG or all(map(str.isascii, texts))):
        return Guess(None, f"its values are single words, ids or labels ({about})")
    if share < 0.5 and words < 10 and len(texts) > 5:
        return Guess(None, f"its values repeat like labels ({len(set(texts))} of {len(texts)})")
    return Guess("text", about)
