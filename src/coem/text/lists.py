"""Lists that are written as text: what stands between their items."""

import ast
import json
import re
from collections import Counter
from contextlib import suppress

import numpy as np

from coem.text.telltale import CODE

BETWEEN = {"|;": re.compile(r"[|;]"), ",": re.compile(r","), " ": re.compile(r"\s+")}
USUAL = "|;"
SHORT = 40  # the largest mean length of the items of a list, in characters
TAG = 25  # the same of items between commas, which sentences have, too
MOST = 0.5  # of the values have several items


def split(text, between=USUAL):
    """Return the items of a list that is written as text; one in brackets is JSON, or Python's."""
    if text is None:
        return []
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        for read in (json.loads, ast.literal_eval):  # as JSON has it, or as pandas writes it
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
                return [_name(item) for item in read(text) if item is not None]
    return [item.strip() for item in BETWEEN[between].split(text)]


def _name(item):
    """Return an item as text; 3.0 of a list with gaps is 3."""
    whole = isinstance(item, float) and item.is_integer()
    return str(int(item) if whole else item)


def between(texts):
    """Return what stands between the items of a column that a user calls a list.

    Bars and semicolons come first, then commas. Blanks part items only if these occur in other
    company, too: "New York" is one item where no cell has "New" without "York".
    """
    return between_parts([texts])


def between_parts(parts):
    """Return the same for a column that comes in parts, which can be gone through twice."""
    is_there = has_commas = False
    for texts in map(_filled, parts):
        if any("|" in t or ";" in t or t.lstrip().startswith("[") for t in texts):
            return USUAL
        is_there = is_there or bool(texts)
        has_commas = has_commas or any("," in text for text in texts)
    if not is_there or has_commas:
        return "," if has_commas else USUAL
    several = {
        tuple(sorted(set(text.split())))
        for texts in map(_filled, parts)
        for text in texts
        if len(text.split()) > 1
    }
    company = Counter(word for words in several for word in words)
    met = sum(n > 1 for n in company.values())
    return " " if several and met > 0.5 * len(company) else USUAL


def _filled(texts):
    return [text for text in texts if text and not text.isspace()]


def guess_between(texts):
    """Return what stands between the items of a column of lists, and why; None if it has none.

    Parameters
    ----------
    texts : list of str
        Values that are not blank, without blanks at their ends.
    """
    items = [BETWEEN[USUAL].split(text.strip("[]")) for text in texts]
    lengths = [len(item.strip()) for row in items for item in row]
    if _several(items) and np.mean(lengths) <= SHORT:
        return USUAL, "most of its values are short items between | or ;"
    if np.mean([text.startswith("[") and "," in text for text in texts]) >= MOST:
        return USUAL, "most of its values are lists in brackets"
    rows = [[item.strip() for item in text.split(",")] for text in texts]
    if _several(rows) and _recur(rows) and np.mean([len(i) for r in rows for i in r]) <= TAG:
        return ",", "most of its values are short items between commas, which recur"
    rows = [text.split() for text in texts]
    if _several(rows) and _recur(rows) and _are_codes(rows):
        return " ", "most of its values are codes between blanks, which recur"
    return None


def share_items(texts, between):
    """Return whether some item is in two texts: a code of several parts has none like that."""
    rows = Counter(item for text in texts for item in set(split(text, between)) if item)
    return max(rows.values(), default=0) > 1


def _several(rows):
    """Return whether most rows have several items."""
    return np.mean([len(row) > 1 for row in rows]) >= MOST


def _recur(rows):
    """Return whether items occur in two rows on average, none being left out."""
    items = [item for row in rows for item in row]
    return all(items) and len(set(items)) <= 0.5 * len(items)


def _are_codes(rows):
    return all(any(map(str.isdigit, item)) and CODE.fullmatch(item) for row in rows for item in row)
