"""``coem segment``: long documents, cut where their topic changes."""

from typing import Any

import click

from coem.cli._options import (
    config_option,
    folder_options,
    id_option,
    machine_options,
    no_encoder_option,
    plain_option,
    reading_options,
    rounds_option,
    source_argument,
    state_options,
    talk_options,
    text_option,
    word_options,
)
from coem.cli._talk import Talk, table
from coem.recipes.defaults import EVIDENCE, PARAGRAPH, SEGMENT_LENGTH, SEGMENT_RESTARTS

SHOWN = 40  # segments that are printed, if there are no more

EXAMPLE = """\b
Examples:
  coem segment minutes.txt
  coem segment talks.csv --text transcript --id speaker -k 12
  coem segment letters/ --segment-length 4 --out letters-by-topic
  pdftotext report.pdf - | coem segment - --plain
"""


@click.command("segment", epilog=EXAMPLE)
@source_argument
@text_option
@no_encoder_option("it cuts by words; coem cluster takes sentence vectors")
@id_option
@plain_option
@click.option(
    "--split",
    type=click.Choice(["auto", "paragraphs", "lines", "sentences", "words"]),
    default="auto",
    show_default=True,
    help="What a paragraph is. auto: between blank lines, else long lines, else sentences.",
)
@click.option(
    "--words",
    type=click.IntRange(1),
    default=PARAGRAPH,
    show_default=True,
    help="Words of a run of sentences or words that stands for a paragraph.",
)
@click.option(
    "-k",
    "--topics",
    "k",
    type=click.IntRange(1),
    help="How many. [as many as segments are expected, 2 to 40]",
)
@click.option(
    "--segment-length",
    type=click.FloatRange(1, min_open=True),
    default=SEGMENT_LENGTH,
    show_default=True,
    help="Paragraphs of a segment that are expected, on average.",
)
@click.option(
    "--max-length",
    type=click.FloatRange(0),
    default=EVIDENCE,
    show_default=True,
    help="Words that a paragraph counts at most. More make more boundaries; 0 counts all.",
)
@word_options
@click.option(
    "--restarts",
    type=click.IntRange(1),
    default=SEGMENT_RESTARTS,
    show_default=True,
    help="Runs from other starts; the most probable one is kept.",
)
@rounds_option
@machine_options
@click.option("--strict", is_flag=True, help="Exit with 3 if the best run did not converge.")
@folder_options
@state_options
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Cut long documents into segments, each of one topic, and name the topics.

    FILE is what `coem cluster` reads, or one plain text (.txt, or any with --plain). A hidden
    Markov model goes through the paragraphs of every document. All documents share the topics.
    segments.csv has the segments, assignments.csv the paragraphs.
    """
    from coem.cli import _recipes
    from coem.recipes import segment

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    _recipes.run(segment, options, talk, _printed)


def _printed(result: Any) -> str:
    """Return the text to print: the segments if they are few, and the topics."""
    from coem.recipes.run_file import SEGMENTS

    figures = result.figures
    topics = sorted(figures["topics"], key=lambda topic: -topic["size"])
    rows = [[t["label"], t["size"], t["segments"], t["name"]] for t in topics if t["size"]]
    lines = [table(["topic", "paragraphs", "segments", "name"], rows)]
    if figures["segments"] <= SHOWN:
        found = result.tables[SEGMENTS].select(
            ["document", "first_paragraph", "last_paragraph", "topic", "name"]
        )
        header = ["document", "from", "to", "topic", "name"]
        lines[:0] = [table(header, zip(*found.to_pydict().values(), strict=True)), ""]
    return "\n".join(lines)
