"""``coem merge``: groups of a run that count as one."""

from pathlib import Path
from typing import Any

import click

from coem.cli._options import RUN_FOLDER, talk_options, vectors_options
from coem.cli._talk import Talk

EXAMPLE = """\b
Examples:
  coem merge coem-posts 3 7
  coem merge coem-posts 3 7 12 --name Sport
  coem merge coem-posts 3 --undo
  coem merge coem-posts --undo
"""


@click.command("merge", epilog=EXAMPLE)
@click.argument("run", metavar="RUN", type=RUN_FOLDER)
@click.argument("groups", metavar="[GROUP]...", nargs=-1, type=click.IntRange(0))
@click.option("--name", help="What the group is called. [the names of its parts]")
@click.option("--undo", is_flag=True, help="Part them again: the group GROUP, or all.")
@click.option("--file", "source", metavar="FILE", help="The documents, if they have moved.")
@vectors_options
@talk_options
def command(
    run: Path, groups: tuple[int, ...], name: str | None, undo: bool, **options: Any
) -> None:
    """Let two or more groups of a run count as one.

    Their probabilities are added. The group has the smallest of the numbers, and all other groups
    keep theirs. The model is as it was, so that --undo parts them again. Like names, merges are in
    names.json of the run.
    """
    from coem.cli import _names

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    if undo and name is not None:
        raise click.UsageError("--name is for groups that are merged, and --undo parts them")
    if not undo and len(groups) < 2:
        raise click.UsageError("give two or more groups, or --undo")
    naming = _names.naming_of(run)
    _check_verb(run)
    naming = _parted(naming, groups) if undo else naming.merge(groups, name)
    _names.keep(run, naming, talk, options)
    talk.result(*_names.listed(run, naming, talk))


def _check_verb(run: Path) -> None:
    """Refuse a run whose groups cannot be merged."""
    from coem.recipes.result import NO_MERGE
    from coem.recipes.run_file import read_run

    if read_run(run)["verb"] == "segment":
        raise ValueError(NO_MERGE)


def _parted(naming: Any, groups: tuple[int, ...]) -> Any:
    """Return the naming without some merges, or without all."""
    if not naming.merged:
        raise ValueError("no groups of the run are merged")
    for group in groups:
        if not any(group in parts for parts in naming.merged):
            raise ValueError(f"group {group} is not merged with others")
    return naming.apart(groups)
