"""Rows that were read, and rows that were not."""

from dataclasses import dataclass, field
from typing import Any

Bad = list[tuple[int, str]]
SKIP = "or leave bad rows out (--skip-bad, skip_bad=True)"


@dataclass(frozen=True)
class Parsed:
    """What the rows of one source are."""

    data: Any
    """A `pyarrow.Table`."""

    bad: Bad = field(default_factory=list)
    """Rows that were left out: their numbers in the file, from 1, and why."""

    first: int = 1
    """Number of the first row in the file."""

    notes: list[str] = field(default_factory=list)
    """What a reader of the file has to know of how it was read."""

    blank: list[int] = field(default_factory=list)
    """Numbers of rows without any cell, among the others."""
