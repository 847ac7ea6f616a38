"""Guess which columns of a table are views, and say why."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from coem.phrases import first_few
from coem.text._tables import column, is_list, is_text, read_items, with_separator
from coem.text.lists import guess_between, share_items
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
LEVELS = 50  # the most values of a category
MOST_VIEWS = 50  # that are guessed: each takes about as long as the first
SAID = 5  # columns that an error tells of
SECOND = {"category": "categories", "number": "numbers"}  # the views of tables without documents


WORDS = {
    "text": is_text,
    "yes or no": pa.types.is_boolean,
    "nothing": pa.types.is_null,
    "objects": pa.types.is_struct,
    "dates or times": pa.types.is_temporal,
    "numbers": lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind),
    "exact numbers": pa.types.is_decimal,
}


def in_words(kind):
    """Return what a column of a type of Arrow holds, in plain words."""
    if is_list(kind):
        return f"lists of {in_words(kind.value_type)}"
    words = next((words for words, check in WORDS.items() if check(kind)), None)
    return f"{kind!s:.80}" if words is None else words  # types can be in each other without end


class Guess(NamedTuple):
    """What a column seems to be, and why."""

    kind: str | None
    """The kind of view, or None if the column seems to be none."""

    why: str
    could: str | None = None
    """The kind of view that it is in a table without text, lists and vectors."""

    between: str | None = None
    """What stands between the items of a list that is written as text."""


def guess_views(table, id_column=None):
    """Return the views that the columns of a table seem to be, and a sentence about each column.

    Categories and numbers are views only if nothing else is: beside a text they are often labels,
    and would decide the groups.

    Parameters
    ----------
    table : pyarrow.Table
    id_column : str, optional
        The column with the ids of the rows. It is not a view.

    Returns
    -------
    views : dict of str to dict
        The kind and the columns of each view. A view has the name of its column; those of several
        categories or numbers are called "categories" and "numbers".
    sentences : list of str
        What each column was taken for, and why.

    Raises
    ------
    ValueError
        If no column seems to be a view, or more than `MOST_VIEWS` do.
    """
    guesses = guess_columns(table, id_column)
    sentences = [_sentence(name, guess) for name, guess in guesses.items()]
    kinds = {kind: [n for n, found in guesses.items() if found.kind == kind] for kind in SECOND}
    views = {}
    for name, guess in guesses.items():
        if guess.kind in SECOND:
            same = kinds[guess.kind]
            view = SECOND[guess.kind] if len(same) > 1 else name
            views[view] = {"kind": guess.kind, "columns": same}
        elif guess.kind is not None:
            views[name] = {"kind": guess.kind, "columns": [name]}
            views[name] |= {"between": guess.between} if guess.between else {}
    if not views:
        raise ValueError(
            "no column looks like text, lists or vectors; name one, as in views={'text': 'COLUMN'}."
            + "".join(f" {sentence}" for sentence in few_of(sentences, SAID))
        )
    if len(views) > MOST_VIEWS:
        some = first_few(map(repr, views), 3)
        raise ValueError(
            f"{len(views):,} columns look like text, lists or vectors ({some}), and each would be "
            "a view, which takes time; name those that matter, as in views={'text': 'COLUMN'}"
        )
    return views, sentences


def few_of(sentences, most):
    """Return the first sentences about columns, and one that counts the others."""
    more = len(sentences) - most
    return [*sentences[:most], *([f"There are {more:,} more columns."] if more > 0 else [])]


def guess_columns(table, id_column=None):
    """Return what each column of a table seems to be, by name."""
    guesses = {
        name: Guess(None, "it has the ids")
        if name == id_column
        else _guess_column(_sample(column(table, name, name)))
        for name in table.column_names
    }
    if any(guess.kind for guess in guesses.values()):
        return guesses
    return {name: _second(guess) for name, guess in guesses.items()}


def _second(guess):
    """Return what a column is in a table without documents."""
    if guess.could is None:
        return guess
    return guess._replace(kind=guess.could, why=f"{guess.why}, and there is no text")


def _sentence(name, guess):
    if guess.kind is None:
        return f"Column {name!r} is left alone: {guess.why}."
    return f"Column {name!r} is a view of kind {guess.kind!r}: {guess.why}."


def _sample(array):
    return array.take(pa.array(sampled_rows(len(array)))) if len(array) > ROWS else array


def _guess_column(array):
    """Return the guess for one column."""
    kind = array.type
    if is_list(kind):
        return _guess_list(array)
    if pa.types.is_temporal(kind):
        return Guess(None, "its values are dates or times")
    if pa.types.is_boolean(kind):
        return Guess(None, f"it holds {in_words(kind)}", "category")
    if not is_text(kind):
        return _guess_numbers(array)
    return _guess_text(_texts(array), len(array))


def _guess_numbers(array):
    """Return the guess for a column that is neither text nor lists."""
    guess = Guess(None, f"it holds {in_words(array.type)}")
    there = array.drop_null()
    if not any(check(array.type) for check in NUMBERS):
        return guess
    reason = against_gaps(len(there), len(array)) or _against_numbers(array)
    return Guess(None, reason or "its values are numbers", None if reason else "number")


def _texts(array):
    """Return the values of a column of text that are not blank."""
    return [text.strip() for text in array.to_pylist() if text and not text.isspace()]


def _guess_list(array):
    """Return the guess for a column of lists."""
    inner = array.type.value_type
    if not (pa.types.is_floating(inner) or pa.types.is_integer(inner) or is_text(inner)):
        return Guess(None, f"it holds {in_words(array.type)}")
    rows = [tuple(row) for row in array.to_pylist() if row]
    reason = against_gaps(len(rows), len(array)) or against_constant(rows)
    if reason:
        return Guess(None, reason)
    if pa.types.is_floating(inner):
        lengths = {len(row) for row in rows}
        if len(lengths) > 1:
            return Guess(None, f"it holds lists of {min(lengths)} to {max(lengths)} numbers")
        return Guess("vector", "it holds lists of numbers")
    return Guess("list", "it holds lists")


def _guess_text(texts, n_rows):
    """Return the guess for a column of text from its values that are not blank."""
    found = guess_between(texts) if len(texts) else None
    codes = found is not None and found[0] in ", "  # then the items are neither numbers nor ids
    lists = found is not None and share_items(texts, found[0])
    reason = against_gaps(len(texts), n_rows) if codes else against_text(texts, n_rows, lists=lists)
    reason = reason or (against_time(texts) or against_constant(texts) if codes else None)
    if reason:
        return Guess(None, reason)
    if found is not None:
        return Guess("list", found[1], between=found[0] if codes else None)
    length, words = np.mean([len(t) for t in texts]), np.mean([len(t.split()) for t in texts])
    n_distinct = len(set(texts))
    about = f"{length:.0f} characters and {words:.1f} words on average"
    if n_distinct < 0.5 * len(texts) and words < 10 and len(texts) > 5:
        could = "category" if n_distinct <= LEVELS else None
        return Guess(None, f"its values repeat like labels ({n_distinct} of {len(texts)})", could)
    if words <= 1.5 and (length < LONG or all(map(str.isascii, texts))):
        return Guess(None, f"its values are single words, names or ids ({about})")
    return Guess("text", about)


NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


def sampled_rows(n_rows):
    """Return the rows of a table that the guess looks at."""
    return np.unique(np.linspace(0, max(n_rows - 1, 0), ROWS).astype(np.int64))


def doubts(table, views, *, whole=True):
    """Return a sentence for each column of a given view that says nothing about the rows.

    Parameters
    ----------
    table : pyarrow.Table
    views : dict of str to dict
        The kind and the columns of each view.
    whole : bool, default=True
        These are all rows, and not the sampled rows of a larger table.
    """
    sentences = []
    for view, spec in views.items():
        for name in spec["columns"]:
            reason = _against(column(table, name, view), spec, whole=whole)
            if reason:
                sentences.append(
                    f"view {view!r} can disturb the groups, because column {name!r} seems to say "
                    f"nothing about the rows: {reason}; leave it out, unless you know better"
                )
    return sentences


def _against(array, spec, *, whole):
    """Return why a column of a view says nothing, or None."""
    few, kind = _sample(array), spec["kind"]
    whole = whole and len(few) == len(array)
    if kind == "number":
        return _against_numbers(few)
    if kind == "list":
        return _against_items(few, spec, whole=whole)
    if kind == "category":
        return _against_category(few, whole=whole)
    return against_given(_texts(few)) if kind in ("text", "embed") and is_text(few.type) else None


def _against_category(array, *, whole):
    """Return why a column of categories says nothing, or None."""
    values = [str(value) for value in array.drop_null().to_pylist()]
    reason = against_constant(values)
    if reason or not whole or len(values) < FEW or len(set(values)) < len(values):
        return reason
    return "all of its values differ"


def _against_items(array, spec, *, whole):
    """Return why a column of lists says nothing, or None; `whole` if these are all of its rows."""
    table = pa.table({"items": array})
    separator = with_separator(table, spec | {"columns": ["items"]}, "items").get("between", "|;")
    starts, words = read_items(table, "items", "items", separator)
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
