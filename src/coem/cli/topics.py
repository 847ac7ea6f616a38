"""``coem topics``: documents as mixtures of topics."""

from typing import Any

import click

from coem.cli._options import (
    config_option,
    date_option,
    folder_options,
    full_option,
    machine_options,
    names_option,
    no_encoder_option,
    reading_options,
    source_argument,
    state_options,
    talk_options,
    view_options,
)
from coem.cli._talk import Talk, table
from coem.recipes.defaults import COUPLING, TOPIC_ROUNDS, TOPICS

EXAMPLE = """\b
Examples:
  coem topics posts.csv -k 50
  coem topics abstracts.jsonl --text abstract -k 25 --coupling c
"""


@click.command("topics", epilog=EXAMPLE)
@source_argument
@view_options
@no_encoder_option("its model counts words; coem cluster takes sentence vectors")
@date_option
@click.option(
    "-k", "--k", type=click.IntRange(1), default=TOPICS, show_default=True, help="How many."
)
@click.option(
    "--coupling",
    type=click.Choice(["a", "b", "c", "d", "xy", "none"]),
    default=COUPLING,
    show_default=True,
    help="How two runs learn from each other (Lin 2006).",
)
@click.option(
    "--max-iter",
    type=click.IntRange(1),
    default=TOPIC_ROUNDS,
    show_default=True,
    help="Iterations before and after the coupling.",
)
@machine_options
@names_option
@folder_options
@state_options
@full_option
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Find topics. Each document has a share of each topic (the aspect model, pLSA).

    All text columns together are one bag of words. The assignments have the two largest shares
    per document, and the column shares has all of them in the order of the topics.
    """
    from coem.cli import _recipes
    from coem.recipes import topics

    _recipes.run(
        topics, options, Talk(quiet=options["quiet"], as_json=options["as_json"]), _printed
    )


def _printed(result: Any) -> str:
    """Return the text to print: a table of the topics, the largest first."""
    groups = sorted(result.groups, key=lambda group: -group.share)
    rows = [[group.label, group.share, group.name] for group in groups]
    return table(["topic", "share", "words"], rows)
