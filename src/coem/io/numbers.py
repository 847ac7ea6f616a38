"""Numbers as people write them: decimal commas, thousands, currencies, words for missing ones."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# What other programs write for nothing, where the other cells are numbers.
MISSING = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"),
    *("-", "\u2013", "\u2014", "#N/A", "#NV", "\\N"),
)
SPACES = "'\u2019\u00a0\u202f"  # between thousands, beside the comma and the point
PLAIN = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
POINT = rf"^[-+]?(\d{{1,3}}([,{SPACES}]\d{{3}})+(\.\d+)?|\d+\.?\d*([eE][-+]?\d+)?|\.\d+)$"
COMMA = rf"^[-+]?(\d{{1,3}}([.{SPACES}]\d{{3}})+(,\d+)?|\d+,?\d*([eE][-+]?\d+)?|,\d+)$"
STYLES = {"point": (POINT, rf"[,{SPACES}]"), "comma": (COMMA, rf"[.{SPACES}]")}
GROUPED = rf"^[-+]?\d{{1,3}}([.,{SPACES}]\d{{3}})+"
SHORT = (
    rf"^[-+]?\d{{1,2}}[.,{SPACES}]\d{{3}}"  # lists of numbers have no such first one, in the end
)
PADDED = r"^[-+]?0\d"  # an identifier with zeros in front is no number
INTEGER = r"^[-+]?\d+$"
MONEY = r"[€$£]|EUR|USD|CHF|GBP"
UNIT = rf"^(?P<before>{MONEY})?\s?(?P<number>[-+\d.,].*?)\s?(?P<after>{MONEY}|%)?$"


def is_number(cell: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Cells:
    """The cells of a column of text that may be numbers, without blanks at their ends."""

    trimmed: Any  # the whole column
    bare: Any  # those that are not missing, without their unit
    styles: frozenset[str]

    @property
    def is_ambiguous(self) -> bool:
        """Whether "1,234" or "1.234" may be one thousand, or one and a bit."""
        return len(self.styles) > 1 and not _all_match(self.bare, INTEGER)


def with_numbers(columns: dict[str, Any], *, commas: bool) -> tuple[dict[str, Any], list[str]]:
    """Return columns of text as numbers where all of a column is, and sentences about how.

    Nothing is lost: an identifier with zeros in front, or of more digits than a number has, stays
    text, and so do cells that are different as text and the same as numbers.

    Parameters
    ----------
    columns : dict of str to pyarrow array
        Text.
    commas : bool
        Whether "1,234" is one and a bit where no other column tells: files with semicolons between
        cells have decimal commas.
    """
    cells = {name: _cells(column) for name, column in columns.items()}
    found = {name: own for name, own in cells.items() if own is not None}
    sure = {next(iter(own.styles)) for own in found.values() if len(own.styles) == 1}
    usual = "comma" if sure == {"comma"} or (commas and "point" not in sure) else "point"
    styles = {name: _style_of(own, usual, told="comma" in sure) for name, own in found.items()}
    numbers = {name: _cast(own, styles[name]) for name, own in found.items()}
    read = {name: own for name, own in found.items() if numbers[name] is not None}
    typed = dict(columns) | {name: numbers[name] for name in read}
    return typed, [*_said_styles(read, styles), *_said_missing(read)]


def _cells(column: Any) -> Cells | None:
    """Return the cells of a column, or None if they are not all numbers, or if none is there."""
    for part in (column.slice(0, 100), column):  # most columns of text say so soon
        trimmed = pc.fill_null(pc.utf8_trim_whitespace(part), "")
        there = trimmed.filter(pc.invert(pc.is_in(trimmed, pa.array(MISSING))))
        bare = _without_unit(there)
        if bare is None or pc.any(pc.match_substring_regex(bare, PADDED)).as_py():
            return None
        styles = {name for name, (form, _) in STYLES.items() if _all_match(bare, form)}
        if not styles:
            return None
    grouped = bare.filter(pc.match_substring_regex(bare, GROUPED))
    if len(grouped) and not pc.any(pc.match_substring_regex(grouped, SHORT)).as_py():
        # Three digits everywhere: "101,205,333" is a list of names, and 101.205 is a number.
        styles &= {"point"} if _all_match(bare, PLAIN) else set()
    return Cells(trimmed, bare, frozenset(styles)) if len(bare) and styles else None


def _without_unit(cells: Any) -> Any:
    """Return cells without a currency or a per cent that all of them have; None if some have."""
    if _all_match(cells, PLAIN):
        return cells
    parts = pc.extract_regex(cells, UNIT)
    if parts.null_count:
        return None
    before, number, after = (pc.struct_field(parts, name) for name in ("before", "number", "after"))
    same = pc.count_distinct(before).as_py() <= 1 and pc.count_distinct(after).as_py() <= 1
    return number if same else None


def _style_of(cells: Cells, usual: str, *, told: bool) -> str:
    """Return the style in which to read a column; `told` if another one has decimal commas."""
    if len(cells.styles) == 1 or not cells.is_ambiguous:
        return "point" if "point" in cells.styles else "comma"
    if _all_match(cells.bare, PLAIN) and not told:
        return "point"  # 1.234 is what programs write
    return usual


def _cast(cells: Cells, style: str) -> Any:
    """Return a column as numbers, or None if something would be lost."""
    bare = pc.replace_substring_regex(cells.bare, STYLES[style][1], "")
    bare = pc.replace_substring_regex(pc.replace_substring(bare, ",", "."), r"^\+", "")
    try:
        whole = _all_match(bare, INTEGER)
        numbers = pc.cast(bare, pa.int64() if whole else pa.float64())
    except pa.ArrowInvalid:  # more digits than that
        return None
    # 1.1 and 1.10 are one number, and may be two versions.
    lost = pc.count_distinct(numbers).as_py() < pc.count_distinct(cells.bare).as_py()
    if not whole and lost:
        return None
    there = pc.invert(pc.is_in(cells.trimmed, pa.array(MISSING)))
    places = pc.if_else(there, pc.subtract(pc.cumulative_sum(pc.cast(there, pa.int64())), 1), None)
    return pc.take(numbers, places)


def _said_styles(cells: dict[str, Cells], read: dict[str, str]) -> list[str]:
    """Say which columns were read in a way that is not that of programs, with an example."""
    said = []
    for name, own in cells.items():
        there = own.trimmed.filter(pc.invert(pc.is_in(own.trimmed, pa.array(MISSING))))
        strange = there.filter(pc.invert(pc.match_substring_regex(there, PLAIN)))
        if read[name] == "comma" and not len(strange):
            strange = there.filter(pc.match_substring(there, "."))
        if not len(strange):
            continue
        longest = pc.equal(pc.utf8_length(strange), pc.max(pc.utf8_length(strange)))
        example = pa.array([strange.filter(longest)[0].as_py()])
        value = _cast(Cells(example, _without_unit(example), own.styles), read[name])
        said.append(f"{name!r} ({example[0]} is {value[0]})")
    return [f"read as numbers: {', '.join(said)}"] if said else []


def _said_missing(cells: dict[str, Cells]) -> list[str]:
    """Say which words were taken for missing numbers."""
    words: Counter[str] = Counter()
    for own in cells.values():
        gone = own.trimmed.filter(pc.is_in(own.trimmed, pa.array(MISSING[1:])))
        words.update(gone.to_pylist())
    which = ", ".join(f"{word!r} in {n:,} cell{'s' * (n != 1)}" for word, n in words.most_common())
    return [f"taken as missing numbers: {which}"] if which else []


def _all_match(cells: Any, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells, pattern), min_count=0).as_py())
