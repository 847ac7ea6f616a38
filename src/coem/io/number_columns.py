"""Which columns of text are numbers, found out one piece after the other.

All questions that `coem.io.numbers` asks of a column are of the kind "are all cells like this?". So
the cells that are different are enough to answer them, and of very many different ones a few
witnesses are.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import asdict, dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from coem.io.numbers import (
    COMMA,
    GAPS,
    HEAD,
    INTEGER,
    PLAIN,
    POINT,
    TIDY,
    WORDS,
    Cells,
    all_match,
    as_programs,
    cast_cells,
    cells_of,
    has_brackets,
    parts_of,
    read_cells,
    said_missing,
    said_of,
    with_gaps,
)

MOST = 1 << 20  # different cells of a column that are kept
LOOSE = rf"({POINT})|({COMMA})"


@dataclass(frozen=True)
class Casting:
    """How the cells of a column become numbers."""

    whole: bool
    style: str
    is_tidy: bool
    is_plain: bool
    brackets: bool

    @property
    def type(self) -> Any:
        """The type of Arrow."""
        return pa.int64() if self.whole else pa.float64()

    def __call__(self, cells: Any) -> Any:
        """Return text as numbers; null where one is missing."""
        trimmed = _trimmed(cells)
        bare = trimmed.filter(pc.invert(pc.is_in(trimmed, GAPS)))
        if not (self.is_tidy or self.is_plain):
            sign, _, number, _ = parts_of(bare, brackets=self.brackets)
            bare = pc.binary_join_element_wise(sign, number, "")
        bare = as_programs(bare, self.style, is_tidy=self.is_tidy)
        return with_gaps(pc.cast(bare, self.type), trimmed)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


@dataclass
class _Column:
    """What is known of the cells of one column."""

    head: Any = field(default_factory=lambda: pa.array([], pa.string()))
    seen: Any = field(default_factory=lambda: pa.array([], pa.string()))
    is_text: bool = False
    many: bool = False  # only witnesses are kept
    too_large: bool = False  # a whole number of more digits than fit, among very many
    missing: Counter[str] = field(default_factory=Counter)

    def add(self, cells: Any) -> None:
        """Look at some more cells."""
        if self.is_text:
            return
        if len(self.head) < HEAD:
            self._add_head(cells)
        trimmed = _trimmed(cells)
        there = trimmed.filter(pc.invert(pc.is_in(trimmed, GAPS)))
        if self.is_text or not _may_be_numbers(there) or (self.many and not _is_tidy(there)):
            self._give_up()
            return
        new = pc.unique(trimmed)  # of numbers alone: texts can be made to have one hash in Arrow
        gone = trimmed.filter(pc.is_in(trimmed, WORDS))
        self.missing.update(gone.to_pylist() if len(gone) else ())
        if self.many:
            self.too_large |= _is_too_large(there)
            new = _witnesses(new)
        self.seen = pc.unique(pa.concat_arrays([self.seen, new]))
        if not self.many and len(self.seen) > MOST:
            self._keep_witnesses()

    def _add_head(self, cells: Any) -> None:
        few = cells.slice(0, HEAD - len(self.head)).cast(pa.string())
        self.head = pa.concat_arrays([self.head, few])
        if len(self.head) == HEAD:
            empty = len(self.head.filter(pc.is_in(_trimmed(self.head), GAPS))) == HEAD
            self.is_text = not empty and cells_of(self.head) is None

    def _keep_witnesses(self) -> None:
        there = self.seen.filter(pc.invert(pc.is_in(self.seen, GAPS)))
        if not _is_tidy(there):
            self._give_up()
            return
        self.many, self.too_large = True, _is_too_large(there)
        self.seen = _witnesses(self.seen)

    def _give_up(self) -> None:
        self.is_text, self.seen = True, pa.array([], pa.string())

    def is_empty(self) -> bool:
        """Return whether all cells stand for nothing."""
        return bool(pc.all(pc.is_in(self.seen, GAPS), min_count=0).as_py())

    def cells(self) -> Cells | None:
        """Return the cells as those of a whole column, or None if they are text."""
        return None if self.is_text or not len(self.seen) else cells_of(self.seen, self.head)


class NumberColumns:
    """Columns of text, seen one piece after the other, of which some are numbers.

    Parameters
    ----------
    commas : bool
        As in `coem.io.numbers.with_numbers`.
    texts : collection of str
        Columns that are text, whatever their cells are.
    """

    def __init__(self, *, commas: bool, texts: Collection[str] = ()) -> None:
        self._commas, self._texts = commas, texts
        self._columns: dict[str, _Column] = {}

    def add(self, columns: dict[str, Any]) -> None:
        """Look at some more cells of columns."""
        for name, cells in columns.items():
            if name in self._texts:
                continue
            whole = cells.combine_chunks() if isinstance(cells, pa.ChunkedArray) else cells
            self._columns.setdefault(name, _Column()).add(whole)

    def without_values(self) -> list[str]:
        """Return the columns in which nothing is there."""
        return [n for n, own in self._columns.items() if not own.is_text and own.is_empty()]

    def decide(self) -> tuple[dict[str, Casting], list[str]]:
        """Return how columns of numbers are read, and sentences about it.

        They are those of `coem.io.numbers.with_numbers` on whole columns, with two exceptions.
        Columns of more than a million different cells stay text if they have units or marks between
        thousands. And such columns are numbers even if 1.1 and 1.10 are both there.
        """
        cells = {name: column.cells() for name, column in self._columns.items()}
        found, styles = read_cells(cells, self._commas)
        castings = {name: self._casting(name, own, styles[name]) for name, own in found.items()}
        sure = {name: casting for name, casting in castings.items() if casting is not None}
        read = {name: found[name] for name in sure}
        missing: Counter[str] = sum((self._columns[name].missing for name in sure), Counter())
        return sure, [*said_of(read, styles, commas=self._commas), *said_missing(missing)]

    def _casting(self, name: str, cells: Cells, style: str) -> Casting | None:
        column = self._columns[name]
        numbers = cast_cells(cells, style)
        if numbers is None:
            return None
        whole = pa.types.is_integer(numbers.type)
        if whole and column.too_large:
            return None
        plain, brackets = all_match(cells.there, PLAIN), has_brackets(cells.there)
        return Casting(whole, style, cells.is_tidy, plain, brackets)


def _trimmed(cells: Any) -> Any:
    trimmed = pc.utf8_trim_whitespace(cells.cast(pa.string()))
    return pc.fill_null(trimmed, "") if trimmed.null_count else trimmed


def _may_be_numbers(cells: Any) -> bool:
    """Return whether each cell is a number in some way of writing."""
    if _is_tidy(cells):
        return True
    found = None
    for brackets in (False, True):
        sign, _, number, _ = parts_of(cells, brackets=brackets)
        bare = pc.binary_join_element_wise(sign, number, "")
        fits = pc.fill_null(pc.match_substring_regex(bare, LOOSE), False)
        found = fits if found is None else pc.or_(found, fits)
    return bool(pc.all(found, min_count=0).as_py())


def _is_tidy(cells: Any) -> bool:
    return all_match(cells, TIDY)


def _is_too_large(cells: Any) -> bool:
    """Return whether a whole number has more digits than fit."""
    whole = cells.filter(pc.match_substring_regex(cells, INTEGER))
    try:
        pc.cast(pc.utf8_ltrim(whole, "+"), pa.int64())
    except pa.ArrowInvalid:
        return True
    return False


def _witnesses(cells: Any) -> Any:
    """Return a few tidy cells that answer all questions as all of them do."""
    there = cells.filter(pc.invert(pc.is_in(cells, GAPS)))
    gaps = cells.filter(pc.is_in(cells, GAPS))
    no_comma = pc.invert(pc.match_substring_regex(there, COMMA))
    no_integer = pc.invert(pc.match_substring_regex(there, INTEGER))
    points = pc.match_substring(there, ".")
    few = [there.filter(mask).slice(0, 1) for mask in (no_comma, no_integer, points)]
    return pc.unique(pa.concat_arrays([gaps, there.slice(0, 1), *few]))
