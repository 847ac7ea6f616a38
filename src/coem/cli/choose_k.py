"""``coem choose-k``: how many groups."""

from typing import Any

import click

from coem.cli._config import Numbers
from coem.cli._options import (
    config_option,
    length_option,
    machine_options,
    reading_options,
    rounds_option,
    source_argument,
    talk_options,
    view_options,
)
from coem.cli._talk import Talk, table

EXAMPLE = """\b
Examples:
  coem choose-k posts.csv
  coem choose-k posts.csv --text body --among 5,10,20,40
"""


@click.command("choose-k", epilog=EXAMPLE)
@source_argument
@view_options
@length_option
@click.option("--among", metavar="K,K,...", type=Numbers(), help="Numbers to try. [2 to 64]")
@rounds_option
@machine_options
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Say how many groups the documents have, and what speaks for other numbers."""
    from coem.cli._recipes import arguments
    from coem.recipes import how_many

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    choice = how_many(options["source"], **arguments(options), listener=talk)
    header = list(choice.table[0])
    rows = [list(row.values()) for row in choice.table]
    text = f"{table(header, rows)}\n\n{choice.best} groups: {choice.reason}"
    data = {"k": choice.best, "reason": choice.reason, "table": [dict(r) for r in choice.table]}
    talk.result(text, data)
