"""Listeners, which receive the progress and the notes of a recipe."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def duration(seconds: float) -> str:
    """Return a time that is only roughly known, in words.

    Examples
    --------
    >>> [duration(seconds) for seconds in (0.4, 3.2, 42, 95, 1800, 9000)]
    ['about 1 s', 'about 4 s', 'about 50 s', 'about 2 min', 'about 30 min', 'about 2.5 h']
    """
    if seconds < 10:
        return f"about {max(math.ceil(seconds), 1)} s"
    if seconds <= 60:
        return f"about {math.ceil(seconds / 10) * 10} s"
    minutes = math.ceil(seconds / 60)
    return f"about {minutes} min" if minutes < 90 else f"about {seconds / 3600:.1f} h"


class Bar:
    """A progress bar that shows nothing."""

    def step(self, state: str | None = None) -> None:
        """Move on by one, and show where things are."""

    def step_by(self, number: int) -> None:
        """Move on by several."""

    def show(self, state: str) -> None:
        """Show where things are."""


class Listener:
    """Keep what a recipe says, and show nothing: what a call in Python needs.

    The program has one that prints. A subclass overrides what it wants to show.

    Attributes
    ----------
    notes : list of str
        The sentences that were said, in their order.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Hear a sentence about something on the way."""
        self.notes.append(text)

    def columns(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], sentences: Sequence[str]
    ) -> None:
        """Hear what each column is taken for: as a table, and what was guessed in sentences."""
        for sentence in sentences:
            self.note(sentence)

    def rows_are(self, place: Callable[[int], str]) -> None:
        """Learn how people name the rows, for errors: `place` takes a row, counted from 0."""

    @contextmanager
    def progress(self, what: str, total: int | None) -> Iterator[Any]:
        """Watch something long; a total of None is one that is not known."""
        yield Bar()

    @contextmanager
    def fitting(self, what: str, total: int | None, *, by_rounds: bool = False) -> Iterator[Any]:
        """Watch models being fitted, by rounds or by what moves the bar on."""
        yield Bar()

    @contextmanager
    def noting_warnings(self) -> Iterator[None]:
        """Hear the warnings of the library; here they stay warnings."""
        yield
