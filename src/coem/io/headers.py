"""Where the header of a sheet is, if titles stand above it."""

from typing import Any

from coem.io.numbers import is_number
from coem.io.sources import TableError

MOST = 0.95  # of the rows below a header have cells in its columns only
TITLES = 20  # lines above a header at most


def find_header(rows: list[Any], numbers: list[int], where: str) -> int:
    """Return which of some rows is the header: the first, unless it is a title.

    A header below titles has two names or more, twice as many as a title has cells, and the rows
    below it fill its columns, and no others.

    Parameters
    ----------
    rows : list of tuples
        Rows with a cell, None for blank ones.
    numbers : list of int
        Where they are in the sheet, from 0.
    where : str
        The sheet, for errors.

    Raises
    ------
    TableError
        If the first row is a title, and two names are the same in what seems to be the header.
    """
    if _fits(rows, 0) and (len(_places(rows[0])) > 1 or _width(rows) == 1):
        return 0
    found = next((i for i in range(1, min(TITLES + 1, len(rows) - 1)) if _is_header(rows, i)), 0)
    names = [cell for cell in rows[found] if cell is not None]
    if found and len(set(names)) < len(names):
        raise TableError(
            f"{where}: row {numbers[found] + 1} seems to be the header, with lines above it; "
            "delete these, and give each column a name of its own"
        )
    return found


def _places(row: Any) -> set[int]:
    """Return the columns in which a row has a cell."""
    return {j for j, cell in enumerate(row) if cell is not None}


def _width(rows: list[Any]) -> int:
    return 1 + max(max(_places(row)) for row in rows)


def _fits(rows: list[Any], head: int) -> bool:
    """Return whether the rows below have hardly a cell beside the columns of a row."""
    below, last = rows[head + 1 :], max(_places(rows[head]))
    return sum(max(_places(row)) <= last for row in below) >= MOST * len(below)


def _is_header(rows: list[Any], head: int) -> bool:
    """Return whether a row is names, more than in those above, and the rows below fill them."""
    cells = [cell for cell in rows[head] if cell is not None]
    if not all(isinstance(cell, str) and not is_number(cell) for cell in cells):
        return False
    names, below = _places(rows[head]), rows[head + 1 :]
    above = max(len(_places(row)) for row in rows[:head])
    full = sum(2 * len(_places(row) & names) > len(names) for row in below)
    return len(names) >= 2 * above and 2 * full > len(below) and _fits(rows, head)
