"""The program: finds the verb, and turns what goes wrong into one sentence and an exit code."""

import errno
import io
import os
import signal
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import click

from coem.cli._process import (
    Terminated,
    finished,
    go_on,
    open_streams,
    spare_addresses,
    stopping_on_signals,
    written,
)
from coem.cli._talk import PLACE, harmless, in_options

# In the order in which a newcomer meets them.
VERBS = (
    "demo",
    "cluster",
    "classify",
    "topics",
    "segment",
    "ingest",
    "predict",
    "serve",
    "explain",
    "choose-k",
    "name",
    "merge",
    "report",
    "compare",
    "rerun",
    "info",
    "reproduce",
    "completion",
)
ERROR, NOT_CONVERGED = 1, 3  # exit codes; 2 is click's own, for usage
INTERRUPTED = 128  # and the number of the signal, as shells have it


# What to do about what a system says of a file.
HINTS = {
    errno.ELOOP: "the link leads to itself; name another place",
    errno.ENAMETOOLONG: "choose a shorter one",
    errno.ENOSPC: "free some space, and run it again",
    errno.EACCES: "name a place that you may use",
    errno.EROFS: "name another place",
    errno.ENOTDIR: "a part of it is a file; name another place",
    errno.EISDIR: "name a file",
}


class Verbs(click.Group):
    """The verbs, each in a module of its own."""

    def main(self, *args: Any, **settings: Any) -> Any:
        """Run the program."""
        open_streams()
        spare_addresses()
        # A letter that a terminal has not must not cost the result of a run.
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        return super().main(*args, **settings)

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the verbs."""
        return list(VERBS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return a verb."""
        if name not in VERBS:
            return None
        command: click.Command = import_module(f"coem.cli.{name.replace('-', '_')}").command
        return command

    def resolve_command(self, context: click.Context, args: list[str]) -> Any:
        """Return the verb that was asked for, or name the nearest one."""
        try:
            return super().resolve_command(context, args)
        except click.UsageError as error:
            near = get_close_matches(args[0], VERBS, n=1)
            if near:
                error.message += f" Did you mean {near[0]!r}?"
            raise

    def invoke(self, context: click.Context) -> Any:
        """Run a verb; print an error that the user can fix in one sentence, without a traceback."""
        try:
            with stopping_on_signals():
                return super().invoke(context)
        except click.ClickException as error:
            error.message = harmless(error.message)
            raise
        except (click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt as error:
            # Threads may still be at work in a kernel, and would be torn down under it.
            click.echo(harmless(f"coem: stopped; {written(context)}"), err=True)
            sys.stdout.flush()
            number = error.number if isinstance(error, Terminated) else signal.SIGINT
            os._exit(INTERRUPTED + number)
        except BrokenPipeError:
            # The reader of the output has closed it, and nothing more can be sent.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            context.exit(0)
        except Exception as error:
            if "COEM_DEBUG" in os.environ:
                raise
            fail(error, context.meta.get(PLACE), go_on(context), finished(context))


def fail(
    error: Exception, place: Callable[[int], str] | None, more: str = "", done: str = ""
) -> NoReturn:
    """End with the sentence that tells of an error, and `more`.

    `place` says where a row is in a file, and `done` what was written before.
    """
    if isinstance(error, MemoryError):
        text = (
            "there is not enough memory; use fewer rows, or fewer words with --max-features (for a "
            "corpus: of coem ingest)"
        )
    elif isinstance(error, OSError) and error.strerror and done and not error.filename:
        # A stream has no name: only the printing failed.
        text = f"{done}, but what is to be printed was not: {error.strerror.lower()}"
    elif isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        hint = f"; {HINTS[error.errno]}" if error.errno in HINTS else ""
        text = f"{where}{error.strerror.lower()}{hint}"
    elif isinstance(error, ValueError | TypeError | ImportError | OSError):
        text = in_options(str(error) if place is None else _placed(error, place))
    else:
        text = (
            f"{type(error).__name__}: {error}; this should not happen. "
            "COEM_DEBUG=1 in the environment shows where it did"
        )
    click.echo(harmless(f"coem: error: {text}{more}"), err=True)
    raise click.exceptions.Exit(ERROR)


def _placed(error: Exception, place: Callable[[int], str]) -> str:
    """Return what is wrong, and where in the file: the library counts rows from 0."""
    from coem.views import RowError

    return error.at(place(error.row)) if isinstance(error, RowError) else str(error)


def _version(context: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        from coem import __version__

        click.echo(f"coem {__version__}")
        context.exit()


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Show the version and exit.",
)
def main() -> None:
    """Group documents, classify them from a few labels, and see why.

    Rows of a table, or a folder of texts, are seen through one or several views: title, body,
    links, numbers, vectors. Try `coem demo`, then `coem cluster FILE`.
    """
