"""Cells that a spreadsheet would take for formulas."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# What a formula begins with, also in the wide letters of East Asia; some programs skip the blanks
# before it. A number is none (-3.5, +1e6, -1,234.50 %), nor is a sign alone.
FORMULA = r"^(?:[\t\r\n]|\s*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"
NUMBER = r"^\s*(?:[-+]?(?:\d[\d.,]*|[.,]\d+)(?:[eE][-+]?\d+)?\s*%?|[-+=@])\s*$"


def are_formulas(column: Any) -> Any:
    """Return which cells of a column of text a spreadsheet would run; a null is none."""
    begins = pc.match_substring_regex(column, FORMULA)
    return pc.fill_null(pc.and_not(begins, pc.match_substring_regex(column, NUMBER)), False)


def n_formulas(data: Any) -> int:
    """Return how many cells of a `pyarrow.Table` a spreadsheet would run."""
    texts = [column for column in data.columns if pa.types.is_string(column.type)]
    return sum(pc.sum(are_formulas(column)).as_py() or 0 for column in texts)


def as_text_cells(column: Any) -> Any:
    """Return a column of text with an apostrophe before each formula, so that it stays text."""
    if not pa.types.is_string(column.type):
        return column
    quoted = pc.binary_join_element_wise("'", column, "")
    return pc.if_else(are_formulas(column), quoted, column)
