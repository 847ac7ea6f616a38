"""The output of the program: results on stdout, progress and notes on stderr."""

import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from coem.recipes.listener import Listener, duration

PLACE = "coem.cli.place"  # in the context: what tells where a row of the documents is

# Names and labels come from files of any author, and a terminal obeys codes in them. Signs
# that turn the direction of writing make a line look like another one.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
BREAKS = re.compile(r"[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")


def harmless(text: str) -> str:
    """Return text with escapes for control characters, except line ends and tabs."""
    return CONTROLS.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def is_terminal() -> bool:
    """Return whether results go to a terminal, and not to a file or another program."""
    return sys.stdout.isatty()


class Talk(Listener):
    """The voice of one run of the program, which hears of what recipes do.

    Parameters
    ----------
    quiet : bool
        Say nothing on stderr but errors.
    as_json : bool
        Results are one JSON document.
    silent : bool
        Keep results back: another verb tells of them.
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False, silent: bool = False) -> None:
        super().__init__()
        self.quiet = quiet
        self.as_json = as_json
        self.silent = silent

    def note(self, text: str) -> None:
        """Tell of something on the way, with options in place of parameters."""
        super().note(text)
        if not self.quiet:
            click.echo(harmless(in_options(text)), err=True)

    def formulas(self, n_cells: int) -> None:
        """Say how many cells of a CSV a spreadsheet would run, if any."""
        if n_cells:
            cells = "cell begins like a formula" if n_cells == 1 else "cells begin like formulas"
            self.note(
                f"{n_cells:,} {cells} in .csv output, which a spreadsheet may run; --safe-csv puts "
                "an apostrophe before such cells"
            )

    def columns(
        self, header: Sequence[str], rows: Sequence[Sequence[str]], sentences: Sequence[str]
    ) -> None:
        """Show what each column is taken for, and keep what was guessed."""
        for sentence in sentences:
            super().note(sentence)
        if not self.quiet and rows:
            click.echo(f"{table(header, rows)}\n", err=True)

    def rows_are(self, place: Callable[[int], str]) -> None:
        """Let errors name rows as the file that was read last has them."""
        context = click.get_current_context(silent=True)
        if context is not None:
            context.meta[PLACE] = place

    def result(self, text: str, data: Any) -> None:
        """Print the result, as text or as JSON."""
        if self.silent:
            return
        if self.as_json:
            from coem.recipes.record import to_json

            # Other encodings may not have all letters, and JSON has a way to write them.
            utf = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
            content = to_json(data, ensure_ascii=not utf)
            # JSON has an escape of its own; programs that read it get the same letters.
            click.echo(CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", content))
        else:
            click.echo(harmless(text))

    def rows(self, content: bytes) -> None:
        """Give rows as CSV: to a file or a program as they are, to a terminal without controls."""
        if is_terminal():
            click.echo(harmless(content.decode("utf-8")), nl=False)
        else:
            click.echo(content, nl=False)

    @contextmanager
    def progress(self, what: str, total: int | None, *, at_most: bool = False) -> Iterator["Bar"]:
        """Show a bar on stderr during long work, if stderr is a terminal.

        A total of None is one that is not known; `at_most` says that the end may come before it.
        """
        if self.quiet or not sys.stderr.isatty():
            yield Bar(None, None)
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        pace = Pace(total, at_most=at_most)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[pace]}"),  # a Pace, which is asked when it is drawn
        )
        console = Console(stderr=True)
        with Progress(*columns, console=console, transient=True) as progress:
            yield Bar(progress, progress.add_task(what, total=total, state="", pace=pace), pace)

    @contextmanager
    def fitting(self, what: str, total: int | None, *, by_rounds: bool = False) -> Iterator["Bar"]:
        """Show a bar while models are fitted, with the objective of the round that they are at.

        It moves on by rounds, or when its `step` is called.
        """
        with self.progress(what, total, at_most=by_rounds) as bar:
            if not bar.is_there:
                yield bar
                return
            from coem.records import watch

            move = bar.step if by_rounds else bar.show
            with watch(lambda r: move(f"round {r.round}: objective {r.objective:.6g}")):
                yield bar

    @contextmanager
    def noting_warnings(self) -> Iterator[None]:
        """Tell of the warnings of the library as notes, once each."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        for text in dict.fromkeys(str(warning.message) for warning in caught):
            self.note(f"note: {text}")


# Advice for users of Python, and the same advice for users of the program.
PYTHON = (
    (r"views=\{'text': 'COLUMN'\}", "--text COLUMN"),
    (r"\bencoder='NAME'", "--encoder NAME"),
    (r"views=\{'meaning': 'COLUMN:embed'\}", "--view meaning=COLUMN:embed"),
    (r"^there is an encoder, and", "--encoder names an encoder, and there is"),
    (r"\bid='(COLUMN|none)'", r"--id \1"),
    (r"\bwrite '([^']+:(?:list|inbound|number|vector|category))'", r"write --view NAME=\1"),
    (r"\bwrite '([^']+)'", r"write --text '\1'"),
    (r" or tol, or pass tol=0 to run a fixed number of (rounds|iterations)", ""),
    (r"(?<!['\w])(max|min)_(iter|df|features|length)(?!['\w])", r"--\1-\2"),
    (r"\(n_init\)", "(--restarts)"),
    (r"\bpass evidence='fixed'", "pass --evidence fixed"),
    (r"(?<=if you ask: )views ", "--view "),
    (r"\bWithout multi\b", "Without --multi"),
    (r"\(skip_bad=True\)", "(--skip-bad)"),
    (r"\bresume=True\b", "--resume"),
    (r"\bhash_features\b", "--hash-features"),
    (r"^sizes:", "--among:"),
    (r"\((label|date)='([^']*)'\)", r"(--\1 \2)"),
    (r"\b(label|date)='([^']*:(?:list|dmy|mdy))'", r"--\1 \2"),
    (r"\b(text|label)='COLUMN'", r"--\1 COLUMN"),
    (r"(?<=with )(text|id)=(?!\S*')", r"--\1"),
    (r"\(text= names", "(--text names"),
    (r"\bnames_from=('[^']*')", r"--names-from \1"),
    (r"^names_from:", "--names-from:"),
    (r"\bstop_words:", "--stop-words:"),
    (r", 'none' or a list of words$", ", 'none' or words.txt"),
    (r"^k was not given", "-k was not given"),
    (r"^k=(\d+) groups", r"-k \1 groups"),
    (r"\bsplit='sentences' or fewer words=", "--split sentences or fewer --words"),
    (r"\buse coem\.cluster\b", "use coem cluster"),
    (r"\bunlabeled_weight=", "--unlabeled-weight "),
    # The number of components per class has no option: the run sets it by itself.
    (r"\bcomponents_per_class=\{(.+?): (\d+)\}", r"\2 for \1"),
    (r"\bcomponents_per_class=(\d+)", r"\1 a class"),
)


def in_options(text: str) -> str:
    """Return a sentence of the library with options in place of parameters."""
    for python, option in PYTHON:
        text = re.sub(python, option, text)
    return text


class Pace:
    """How long something still takes, from the steps that it has taken.

    The mean time of a step counts later steps more: fits that come later may be larger.

    Parameters
    ----------
    total : int or None
        The number of steps; None if it is not known: then no time is shown.
    at_most : bool
        Whether the end may come before the last step.
    clock : callable
        What tells the time.
    """

    KEPT = 0.9  # of the weight of a step, when the next one is there
    FIRST = 1.0  # seconds before a time is shown: the first steps are not typical

    def __init__(
        self,
        total: int | None,
        *,
        at_most: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._total, self._at_most, self._clock = total, at_most, clock
        self._start = self._last = clock()
        self._seconds = self._steps = 0.0
        self._done = 0

    def step(self, number: int = 1) -> None:
        """Note that one or several steps are done."""
        now = self._clock()
        self._seconds = self.KEPT * self._seconds + now - self._last
        self._steps = self.KEPT * self._steps + number
        self._last, self._done = now, self._done + number

    def __str__(self) -> str:
        """Return the time that is left as text; "" if it cannot be estimated."""
        now = self._clock()
        left = 0 if self._total is None else self._total - self._done
        if left <= 0 or not self._done or now - self._start < self.FIRST:
            return ""
        seconds = left * self._seconds / self._steps - (now - self._last)
        words = duration(max(seconds, 0.0))
        return f"{words.replace('about', 'at most') if self._at_most else words} left"


class Bar:
    """A bar that may not be there."""

    def __init__(self, progress: Any, task: Any, pace: "Pace | None" = None) -> None:
        self._progress, self._task, self._pace = progress, task, pace

    @property
    def is_there(self) -> bool:
        """Whether the bar is shown."""
        return self._progress is not None

    def step(self, state: str | None = None) -> None:
        """Move on by one, and show where things are."""
        if self._pace is not None:
            self._pace.step()
        self._update(state, advance=1)

    def step_by(self, number: int) -> None:
        """Move on by several."""
        if self._pace is not None:
            self._pace.step(number)
        self._update(None, advance=number)

    def show(self, state: str) -> None:
        """Show where things are."""
        self._update(state)

    def _update(self, state: str | None, **change: Any) -> None:
        if self._progress is not None:
            change |= {} if state is None else {"state": state}
            self._progress.update(self._task, **change)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table in plain text: numbers to the right, words to the left, nothing cut off."""
    rows = [list(row) for row in rows]
    header = [_cell(name) for name in header]
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    right = [
        all(value is None or isinstance(value, int | float) for value in column)
        for column in zip(*rows, strict=True)
    ] or [False] * len(widths)
    lines = [
        "  ".join(
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in ([*header], *cells)
    ]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else harmless(BREAKS.sub(" ", str(value)))
