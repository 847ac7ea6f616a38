"""Which columns of a table are text, lists or vectors, and why."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coem.text._tables import SEPARATOR, column, is_list, is_text

ROWS = 1000  # looked at, evenly spread over the table
LONG = 20  # characters of a text on average
SHORT = 40  # characters of an item of a list at most, on average


class Guess(NamedTuple):
    """What a column is taken for: a kind of view, or None, and why."""

    kind: str | None
    why: str


def guess_views(table, id_column=None):
    """Return the views that the columns suggest, and a sentence for each column.

    Parameters
    ----------
    table : pyarrow.Table
    id_column : str, optional
        The column with the ids of the rows, which is no view.

    Returns
    -------
    views : dict of str to dict
        Kind and columns of each view; it has the name of its column.
    sentences : list of str
    """
    views, sentences = {}, []
    for name in table.column_names:
        if name == id_column:
            guess = Guess(None, "it has the ids")
        else:
            guess = guess_column(_sample(column(table, name, name)))
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


def guess_column(array):
    """Return what one column is taken for."""
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
    """Return what a column of text is taken for, from those of its values that are not empty."""
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
