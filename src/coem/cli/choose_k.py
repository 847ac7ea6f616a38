"""``coem choose-k``: how many groups."""

from typing import Any

import click

from coem.cli._config import Numbers
from coem.cli._keeping import keeping, state_of
from coem.cli._options import (
    checkpoint_option,
    config_option,
    encoder_option,
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
@encoder_option
@length_option
@click.option("--among", metavar="K,K,...", type=Numbers(), help="Numbers to try. [2 to 64]")
@rounds_option
@machine_options
@checkpoint_option
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Say how many groups the documents have, and how sure that is.

    Fits to different halves of the documents, from different starts, are compared: the answer is
    the smallest number of groups with 95 % of the information that two fits can share.
    """
    from coem.cli._recipes import arguments
    from coem.recipes import how_many

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    with keeping(state_of(options, None), talk) as part:
        given = {**arguments(options), "checkpoint": part}
        choice = how_many(options["source"], **given, listener=talk)
    data = {
        "k": choice.best,
        "possible": list(choice.possible),
        "reason": choice.reason,
        "table": [dict(row) for row in choice.table],
    }
    talk.result(tell(choice), data)


def tell(choice: Any) -> str:
    """Return the text to print: what was measured, which number it means, and how sure that is."""
    header = ["k", "bits shared", "error", "of the most", "held out", ""]
    rows = [
        [
            row.k,
            f"{row.shared:.3f}",
            f"{row.error:.3f}",
            f"{row.share:.0%}",
            f"{row.held_out:.2f}",
            "<- chosen" if row.k == choice.best else "possible" * (row.k in choice.possible),
        ]
        for row in choice.table
    ]
    return f"{table(header, rows)}\n\n{choice.best} groups: {choice.reason}"
