"""Cells that a spreadsheet would take for formulas."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# What a formula begins with, also in the wide letters of East Asia; some programs skip the blanks
# before it. A number is not a formula (-3.5, +1e6, -1,234.50 %), nor is a sign alone.
FORMULA = r"^(?:[\t\r\n]|\s*[=+\-@\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"
NUMBER = r"^\s*(?:[-+]?(?:\d[\d.,]*|[.,]\d+)(?:[eE][-+]?\d+)?\s*%?|[-+=@])\s*$"


def are_formulas(column: Any) -> Any:
    """Return which cells of a column of text a spreadsheet would run; a null is not one."""
    begins = pc.match_substring_regex(column, FORMULA)
    return pc.fill_null(pc.and_not(begins, pc.match_substring_regex(column, NUMBER)), False)


def n_formulas(data: Any) -> int:
    """Return how many cells of a CSV of a `pyarrow.Table` a spreadsheet would run.

    The names of columns count as cells. A list is not a formula: it is JSON, which begins with a
    bracket.
    """
    names = pa.array(data.column_names, pa.string())
    columns = [names, *map(_decoded, data.columns)]
    texts = [column for column in columns if _is_text(column)]
    return sum(pc.sum(are_formulas(column)).as_py() or 0 for column in texts)


def as_text_cells(column: Any) -> Any:
    """Return a column of text with an apostrophe before each formula, so that it stays text.

    A formula that has apostrophes already gets one more, so that `as_they_were` is exact.
    """
    column = _decoded(column)
    if not _is_text(column):
        return column
    apostrophe, nothing = (pa.scalar(text, column.type) for text in ("'", ""))
    quoted = pc.binary_join_element_wise(apostrophe, column, nothing)
    return pc.if_else(_are_quotable(column), quoted, column)


def as_they_were(column: Any) -> Any:
    """Return the column that `as_text_cells` was given."""
    if not _is_text(column):
        return column
    added = pc.and_(pc.starts_with(column, "'"), _are_quotable(column))
    return pc.if_else(added, pc.utf8_slice_codeunits(column, 1), column)


def _are_quotable(column: Any) -> Any:
    """Return which cells are formulas if the apostrophes before them are removed."""
    return are_formulas(pc.utf8_ltrim(column, "'"))


def _decoded(column: Any) -> Any:
    """Return the values of a column that has numbers for them."""
    coded = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if coded else column


def _is_text(column: Any) -> bool:
    return bool(pa.types.is_string(column.type) or pa.types.is_large_string(column.type))
