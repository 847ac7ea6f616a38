"""``coem cluster``: groups of documents."""

from typing import Any

import click

from coem.cli._options import (
    config_option,
    date_option,
    encoder_option,
    evidence_option,
    fitting_options,
    folder_options,
    full_option,
    latent_option,
    length_option,
    names_option,
    reading_options,
    size_option,
    source_argument,
    state_options,
    talk_options,
    view_options,
)
from coem.cli._stream import batch_option, stream_option
from coem.cli._talk import Talk, table
from coem.recipes.defaults import METHODS

EXAMPLE = """\b
Examples:
  coem cluster posts.csv
  coem cluster posts.csv --text body -k 20 --out groups
  coem cluster papers.jsonl --view title=title --view links=refs:list -k 7
  coem cluster posts.csv --text body --view meaning=vectors.npy -k 20
  coem cluster posts.csv --text body --view meaning=body:embed --encoder minishlab/potion-base-8M
  coem cluster posts.csv --method k-means -k 20
  coem cluster more-posts.csv --names-from coem-posts
  tail -n +1 -f posts.jsonl | coem cluster - --stream --batch 500 --out groups
"""


@click.command("cluster", epilog=EXAMPLE)
@source_argument
@view_options
@encoder_option
@date_option
@latent_option
@click.option(
    "--method",
    type=click.Choice(METHODS),
    default="em",
    show_default=True,
    help="em fits mixtures. k-means puts every document to the nearest centre, by angles; it has "
    "no probabilities, so that coem explain cannot explain it.",
)
@evidence_option
@length_option
@size_option
@click.option(
    "--label",
    metavar="COLUMN",
    help="True classes, to judge the groups by; not learned from. [sub-folders, if there are]",
)
@fitting_options
@stream_option
@batch_option
@names_option
@folder_options
@state_options
@full_option
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Find groups of documents, name them, and write a page about them.

    FILE is .csv, .tsv, .xlsx, .jsonl, .json or .parquet (also .gz or .zst), a folder of .txt, .md
    and .html files, or - for stdin. Several views teach each other (co-EM). Without --text or
    --view columns are guessed, and a table says what each was taken for; without -k the number of
    groups is chosen. With --stream documents may keep coming.
    """
    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    if options["stream"]:
        from coem.cli import _stream

        _stream.run(options, talk)
        return
    if options["batch"] is not None:
        raise click.UsageError("--batch is for --stream")
    run(options, talk)


def run(options: dict[str, Any], talk: Talk) -> Any:
    """Cluster the documents, write the folder, print the groups, and return them."""
    from coem.cli import _recipes
    from coem.recipes import cluster

    return _recipes.run(cluster, options, talk, tell_groups)


def tell_groups(result: Any) -> str:
    """Return the text to print: a table of the groups, the largest first, and their scores."""
    from coem.recipes.record import trust_of
    from coem.selection.trust import MEANING

    figures = result.figures
    groups = sorted(result.groups, key=lambda group: -group.size)
    rows = [[g.label, g.size, trust_of(g), g.name] for g in groups if g.size > 0]
    lines = [table(["group", "size", "trust", "name"], rows), "", MEANING]
    if len(rows) < len(groups):
        lines.append(f"\n{len(groups) - len(rows)} of {len(groups)} groups ended without rows")
    if "nmi" in figures:
        lines.append(
            f"\nagainst the classes: entropy {figures['entropy_bits']:.2f} bits, "
            f"NMI {figures['nmi']:.2f}"
        )
    return "\n".join(lines)
