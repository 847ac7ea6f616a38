"""Numbers as people write them: decimal commas, thousands, currencies, words for missing ones."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coem.phrases import first_few

# What other programs write for nothing, where the other cells are numbers.
MISSING = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "None"),
    *("-", "\u2212", "\u2013", "\u2014", "#N/A", "#NV", "\\N", "k. A.", "k.A."),
)
GAPS, WORDS = pa.array(MISSING), pa.array(MISSING[1:])
SPACES = "'\u2019 \u00a0\u2009\u202f"  # between thousands, beside the comma and the point
HEAD = 100  # cells that decide first whether a column may be numbers
PLAIN = r"^[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$"
TIDY = r"^[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)([eE][-+]?\d+)?$"  # plain, and no zeros in front
POINT = rf"^[-+]?([1-9]\d{{0,2}}([,{SPACES}]\d{{3}})+(\.\d+)?|\d+\.?\d*([eE][-+]?\d+)?|\.\d+)$"
COMMA = rf"^[-+]?([1-9]\d{{0,2}}([.{SPACES}]\d{{3}})+(,\d+)?|\d+,?\d*([eE][-+]?\d+)?|,\d+)$"
STYLES = {"point": (POINT, rf"[,{SPACES}]"), "comma": (COMMA, rf"[.{SPACES}]")}
GROUPED = rf"^[-+]?\d{{1,3}}([.,{SPACES}]\d{{3}})+"
SHORT = (
    rf"^[-+]?\d{{1,2}}[.,{SPACES}]\d{{3}}"  # lists of numbers have no such first one, in the end
)
PADDED = r"^[-+]?0\d"  # an identifier with zeros in front is not a number
INTEGER = r"^[-+]?\d+$"
MONEY = r"[€$£]|EUR|USD|CHF|GBP"
UNIT = rf"^(?P<sign>[-+]?)(?P<before>{MONEY})?\s?(?P<number>[-+\d.,].*?)\s?(?P<after>{MONEY}|%)?$"
NEGATIVE = r"^\((.*)\)$"  # as accountants write it


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
    there: Any  # those that are not missing, as they are written
    bare: Any  # the same without their unit
    styles: frozenset[str]
    is_tidy: bool  # all are as programs write them: most columns, which take little work then

    @property
    def is_ambiguous(self) -> bool:
        """Whether "1,234" or "1.234" may be one thousand, or one and a bit."""
        return len(self.styles) > 1 and not all_match(self.bare, INTEGER)


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
    found, styles = read_cells({name: cells_of(column) for name, column in columns.items()}, commas)
    numbers = {name: cast_cells(own, styles[name]) for name, own in found.items()}
    read = {name: own for name, own in found.items() if numbers[name] is not None}
    typed = dict(columns) | {name: numbers[name] for name in read}
    return typed, [*said_of(read, styles, commas=commas), *said_missing(missing_in(read))]


def read_cells(
    cells: dict[str, Cells | None], commas: bool
) -> tuple[dict[str, Cells], dict[str, str]]:
    """Return the columns that may be numbers, and the style in which each is to be read."""
    found = {name: own for name, own in cells.items() if own is not None}
    sure = {next(iter(own.styles)) for own in found.values() if len(own.styles) == 1}
    usual = "comma" if sure == {"comma"} or (commas and "point" not in sure) else "point"
    styles = {name: _style_of(own, usual, known="comma" in sure) for name, own in found.items()}
    return found, styles


def said_of(read: dict[str, Cells], styles: dict[str, str], *, commas: bool) -> list[str]:
    """Say how columns were read as numbers, where it is not as programs write them."""
    return [*_said_styles(read, styles), *(_said_doubtful(read, styles) if commas else [])]


def could_be_number(cell: str) -> bool:
    """Return whether a cell is a number in some way of writing, or stands for a missing one."""
    return cell.strip() in MISSING or cells_of(pa.array([cell])) is not None


def cells_of(column: Any, head: Any = None) -> Cells | None:
    """Return the cells of a column, or None if they are not all numbers, or if none is there.

    `head` are the first cells of the column, if `column` has each of its cells only once.
    """
    few = [] if len(column) <= HEAD else [column.slice(0, HEAD)]
    for part in (*(few if head is None else [head]), column):  # most columns of text say so soon
        trimmed = pc.utf8_trim_whitespace(part)
        trimmed = pc.fill_null(trimmed, "") if trimmed.null_count else trimmed
        gaps = pc.is_in(trimmed, GAPS)
        there = trimmed.filter(pc.invert(gaps)) if pc.any(gaps).as_py() else trimmed
        is_tidy = all_match(there, TIDY)
        bare = there if is_tidy else _without_unit(there)
        if bare is None or not (is_tidy or _none_match(bare, PADDED)):
            return None
        styles = _styles(bare, is_tidy)
        if not styles:
            return None
    return Cells(trimmed, there, bare, styles, is_tidy) if len(bare) else None


def _styles(bare: Any, is_tidy: bool) -> frozenset[str]:
    """Return the styles in which cells are numbers."""
    if is_tidy and not pc.any(pc.match_substring(bare, "."), min_count=0).as_py():
        return frozenset(STYLES)
    styles = {name for name, (form, _) in STYLES.items() if all_match(bare, form)}
    grouped = bare.filter(pc.match_substring_regex(bare, GROUPED))
    if len(grouped) and _none_match(grouped, SHORT) and not all_match(bare, PLAIN):
        return frozenset()  # three digits everywhere: "101,205,333" is a list of names
    return frozenset(styles)


def _without_unit(cells: Any) -> Any:
    """Return cells without a currency, or a per cent that all have; None if they have several."""
    if all_match(cells, PLAIN):
        return cells
    sign, before, number, after = parts_of(cells, brackets=has_brackets(cells))
    if number.null_count:
        return None
    units = set(pc.unique(pc.binary_join_element_wise(before, after, "")).to_pylist())
    one = len(units) < 2 or (len(units - {""}) == 1 and "%" not in units)
    return pc.binary_join_element_wise(sign, number, "") if one else None


def has_brackets(cells: Any) -> bool:
    """Return whether "(1)" is a negative number: not if all cells are like that."""
    return not all_match(pc.replace_substring(cells, "\u2212", "-"), NEGATIVE)


def parts_of(cells: Any, *, brackets: bool) -> list[Any]:
    """Return the sign, the unit before, the number and the unit after it; null where none is."""
    plain = pc.replace_substring(cells, "\u2212", "-")
    if brackets:
        plain = pc.replace_substring_regex(plain, NEGATIVE, r"-\1")
    parts = pc.extract_regex(plain, UNIT)
    gone = pc.is_null(parts)
    return [pc.if_else(gone, None, pc.struct_field(parts, i)) for i in range(4)]


def _style_of(cells: Cells, usual: str, *, known: bool) -> str:
    """Return the style in which to read a column; `known` if another one has decimal commas."""
    if len(cells.styles) == 1 or not cells.is_ambiguous:
        return "point" if "point" in cells.styles else "comma"
    if all_match(cells.bare, PLAIN) and not known:
        return "point"  # 1.234 is what programs write
    return usual


def as_programs(bare: Any, style: str, *, is_tidy: bool) -> Any:
    """Return cells of a style as programs write numbers."""
    if not is_tidy or style == "comma":
        bare = pc.replace_substring_regex(bare, STYLES[style][1], "")
        bare = pc.replace_substring(bare, ",", ".")
    return pc.utf8_ltrim(bare, "+")


def cast_cells(cells: Cells, style: str) -> Any:
    """Return a column as numbers, or None if something would be lost."""
    bare = as_programs(cells.bare, style, is_tidy=cells.is_tidy)
    try:
        whole = all_match(bare, INTEGER)
        numbers = pc.cast(bare, pa.int64() if whole else pa.float64())
    except pa.ArrowInvalid:  # more digits than that
        return None
    # 1.1 and 1.10 are one number, and may be two versions.
    if not whole and pc.count_distinct(numbers).as_py() < pc.count_distinct(cells.bare).as_py():
        return None
    return with_gaps(numbers, cells.trimmed)


def with_gaps(numbers: Any, trimmed: Any) -> Any:
    """Return numbers in the places of the cells that are not missing, and null in the others."""
    if len(numbers) == len(trimmed):
        return numbers
    there = pc.invert(pc.is_in(trimmed, GAPS))
    places = pc.if_else(there, pc.subtract(pc.cumulative_sum(pc.cast(there, pa.int64())), 1), None)
    return pc.take(numbers, places)


def _said_styles(cells: dict[str, Cells], read: dict[str, str]) -> list[str]:
    """Say which columns were read in a way that is not that of programs, with an example."""
    said = []
    for name, own in cells.items():
        if own.is_tidy and read[name] == "point":
            continue
        there = own.there
        strange = there.filter(pc.invert(pc.match_substring_regex(there, PLAIN)))
        if read[name] == "comma" and not len(strange):
            strange = there.filter(pc.match_substring(there, "."))
        if not len(strange):
            continue
        longest = pc.equal(pc.utf8_length(strange), pc.max(pc.utf8_length(strange)))
        place = pc.index(there, strange.filter(longest)[0]).as_py()
        at = slice(place, place + 1)
        value = cast_cells(
            replace(own, trimmed=there[at], there=there[at], bare=own.bare[at]),
            read[name],
        )
        said.append(f"{name!r} ({there[place]} is {value[0]})")
    return [f"read as numbers: {first_few(said)}"] if said else []


def _said_doubtful(cells: dict[str, Cells], read: dict[str, str]) -> list[str]:
    """Say which columns have points that may part thousands, in a file with semicolons."""
    said = []
    for name, own in cells.items():
        points = own.there.filter(pc.match_substring(own.there, "."))  # 1e5 has none
        plain = own.is_ambiguous and read[name] == "point" and all_match(own.bare, PLAIN)
        if plain and len(points):
            cell = points[0].as_py()
            whole = own.bare[pc.index(own.there, cell).as_py()].as_py().replace(".", "")
            said.append(f"{name!r} ({cell} could be {whole})")
    if not said:
        return []
    return [
        f"read with decimal points: {first_few(said)}; if the points part thousands, leave them "
        "out of the file"
    ]


def missing_in(cells: dict[str, Cells]) -> Counter[str]:
    """Return which words were taken for missing numbers, and how often."""
    words: Counter[str] = Counter()
    for own in cells.values():
        if len(own.there) < len(own.trimmed):
            words.update(own.trimmed.filter(pc.is_in(own.trimmed, WORDS)).to_pylist())
    return words


def said_missing(words: Counter[str]) -> list[str]:
    """Say which words were taken for missing numbers."""
    which = first_few(f"{word!r} in {n:,} cell{'s' * (n != 1)}" for word, n in words.most_common())
    return [f"taken as missing numbers: {which}"] if which else []


def _none_match(cells: Any, pattern: str) -> bool:
    return not pc.any(pc.match_substring_regex(cells, pattern), min_count=0).as_py()


def all_match(cells: Any, pattern: str) -> bool:
    """Return whether all cells match."""
    return bool(pc.all(pc.match_substring_regex(cells, pattern), min_count=0).as_py())
