"""``coem name``: names for the groups of a run."""

from pathlib import Path
from typing import Any

import click

from coem.cli._options import RUN_FOLDER, talk_options, vectors_options
from coem.cli._talk import Talk

EXAMPLE = """\b
Examples:
  coem name coem-posts
  coem name coem-posts 3=Hockey 7="Space flight"
  coem name coem-posts 3=
  coem name coem-posts --reset
"""


def _named(
    context: click.Context, parameter: click.Parameter, value: tuple[str, ...]
) -> dict[int, str]:
    """Return names by number."""
    names: dict[int, str] = {}
    for item in value:
        number, found, name = item.partition("=")
        if not (found and number.isascii() and number.isdigit() and len(number) < 10):
            raise click.BadParameter(f"{item!r} is not GROUP=NAME, such as 3=Hockey")
        if int(number) in names:
            raise click.BadParameter(f"there are two names for group {number}")
        names[int(number)] = name.strip()
    return names


@click.command("name", epilog=EXAMPLE)
@click.argument("run", metavar="RUN", type=RUN_FOLDER)
@click.argument("names", metavar="[GROUP=NAME]...", nargs=-1, callback=_named)
@click.option("--reset", is_flag=True, help="Take back all names and merges.")
@click.option("--file", "source", metavar="FILE", help="The documents, if they have moved.")
@vectors_options
@talk_options
def command(run: Path, names: dict[int, str], reset: bool, **options: Any) -> None:
    """Give names to the groups of a run, or list them.

    An empty name takes a name back. The names are in names.json of the run. Its tables and its
    page are written again with them; predict, report, explain and rerun keep them, and
    `coem cluster --names-from RUN` takes them over for a later run.
    """
    from coem.cli import _names

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    naming = _names.naming_of(run)
    if reset and names:
        raise click.UsageError("give names, or --reset")
    if reset or names:
        naming = type(naming)(naming.own) if reset else naming.name(names)
        _names.keep(run, naming, talk, options)
    talk.result(*_names.listed(run, naming, talk))
