"""Guess which columns of a table are text, lists or vectors, and say why."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coem.text._tables import SEPARATOR, column, is_list, is_text, read_items
from coem.text.telltale import (
    FEW,
    against_constant,
    against_gaps,
    against_given,
    against_numbers,
    against_text,
    against_time,
)

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
        return _guess_list(array)
    if pa.types.is_temporal(kind):
        return Guess(None, "its values are dates or times")
    if not is_text(kind):
        return Guess(None, f"it holds {kind} and no text")
    return _guess_text(_texts(array), len(array))


def _texts(array):
    """Return the values of a column of text that are not blank."""
    return [text.strip() for text in array.to_pylist() if text and not text.isspace()]


def _guess_list(array):
    """Return the guess for a column of lists."""
    inner = array.type.value_type
    rows = [tuple(row) for row in array.to_pylist() if row]
    reason = against_gaps(len(rows), len(array)) or against_constant(rows)
    if reason:
        return Guess(None, reason)
    if pa.types.is_floating(inner):
        return Guess("vector", "it holds lists of numbers")
    if is_text(inner) or pa.types.is_integer(inner):
        return Guess("list", "it holds lists")
    return Guess(None, f"it holds {array.type}")


def _guess_text(texts, n_rows):
    """Return the guess for a column of text from its values that are not blank."""
    reason = against_text(texts, n_rows)
    if reason:
        return Guess(None, reason)
    items = [SEPARATOR.split(text.strip("[]")) for text in texts]
    lengths = [len(item.strip()) for row in items for item in row]
    if np.mean([len(row) > 1 for row in items]) >= 0.5 and np.mean(lengths) <= SHORT:
        return Guess("list", "most of its values are short items between | or ;")
    if np.mean([text.startswith("[") and "," in text for text in texts]) >= 0.5:
        return Guess("list", "most of its values are lists in brackets")
    length, words = np.mean([len(t) for t in texts]), np.mean([len(t.split()) for t in texts])
    n_distinct = len(set(texts))
    about = f"{length:.0f} characters and {words:.1f} words on average"
    if n_distinct < 0.5 * len(texts) and words < 10 and len(texts) > 5:
        return Guess(None, f"its values repeat like labels ({n_distinct} of {len(texts)})")
    if words <= 1.5 and (length < LONG or all(map(str.isascii, texts))):
        return Guess(None, f"its values are single words, names or ids ({about})")
    return Guess("text", about)


def doubts(table, views):
    """Return a sentence for each column of a given view that says nothing about the rows.

    Parameters
    ----------
    table : pyarrow.Table
    views : dict of str to dict
        The kind and the columns of each view.
    """
    sentences = []
    for view, spec in views.items():
        for name in spec["columns"]:
            reason = _against(column(table, name, view), spec["kind"])
            if reason:
                sentences.append(
                    f"view {view!r} can disturb the groups, because column {name!r} seems to say "
                    f"nothing about the rows: {reason}; leave it out, unless you know better"
                )
    return sentences


def _against(array, kind):
    """Return why a column of a view of some kind says nothing, or None."""
    few = _sample(array)
    if kind == "number":
        return _against_numbers(few)
    if kind == "list":
        return _against_items(few, whole=len(few) == len(array))
    return against_given(_texts(few)) if kind in ("text", "embed") and is_text(few.type) else None


def _against_items(array, *, whole):
    """Return why a column of lists says nothing, or None; `whole` if these are all of its rows."""
    starts, words = read_items(pa.table({"items": array}), "items", "items")
    items, starts = words.to_pylist(), starts.tolist()
    rows = [tuple(items[i:j]) for i, j in pairwise(starts) if j > i]
    reason = against_constant(rows) or against_time(items)
    if reason or not whole or len(rows) < FEW or len(set(items)) < len(items):
        return reason
    return "none of its items is in two rows"


def _against_numbers(array):
    """Return why a column of numbers, perhaps written as text, says nothing, or None."""
    if is_text(array.type):
        array = pa.array([float(text) for text in _texts(array)], pa.float64())
    values = array.drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
    return against_numbers(values[~np.isnan(values)])
