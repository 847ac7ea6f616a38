"""``coem ingest``: documents of any amount as a corpus."""

from pathlib import Path
from typing import Any

import click

from coem.cli._options import (
    config_option,
    no_encoder_option,
    reading_options,
    talk_options,
    view_options,
)
from coem.cli._process import GO_ON, will_write
from coem.cli._talk import Talk, table

EXAMPLE = """\b
Examples:
  coem ingest posts-*.csv.gz --out posts
  coem ingest posts.parquet --text body --view links=refs:list --label folder --out posts
  zcat dump.jsonl.gz | coem ingest - --out posts
  coem ingest more.csv --out posts --append
  coem cluster posts -k 20
"""


@click.command("ingest", epilog=EXAMPLE)
@click.argument("sources", metavar="FILES...", nargs=-1, required=True)
@click.option(
    "--out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="The corpus."
)
@view_options
@click.option("--label", metavar="COLUMN", help="Classes. [sub-folders, if there are]")
@click.option(
    "--hash-features",
    metavar="N",
    type=click.IntRange(2),
    help="Put words into N columns by a hash, and learn no vocabulary. Words then share columns.",
)
@click.option(
    "--append",
    is_flag=True,
    help="Add the rows to the corpus DIR. Its views and vocabularies stay as they are.",
)
@click.option("--resume", is_flag=True, help="Go on with the same call, which was interrupted.")
@click.option("--force", is_flag=True, help="Replace the corpus DIR if it is there.")
@click.option("--threads", type=click.IntRange(1), help="Threads. [all processors]")
@no_encoder_option("make the vectors a column, --view meaning=COLUMN:vector")
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Write documents of any amount to a corpus, which the other verbs take in place of a file.

    FILES are .csv, .tsv, .jsonl or .parquet (also .gz or .zst), folders of .txt, .md and .html
    files, or - for stdin. They need not fit in memory; .json and .xlsx files must. The views are
    those of coem cluster.
    """
    from coem.io.corpus_work import can_resume
    from coem.recipes import ingest
    from coem.stored import MANIFEST

    talk = Talk(quiet=options.pop("quiet"), as_json=options.pop("as_json"))
    will_write(options["out"], by=MANIFEST)
    sources = list(options.pop("sources"))
    try:
        corpus = ingest(sources, listener=talk, **options)
    except FileExistsError as error:
        raise ValueError(str(error)) from None
    except KeyboardInterrupt:
        if can_resume(options["out"].resolve()):
            context = click.get_current_context().find_root()
            context.meta[GO_ON] = "what is done is kept, and the same call with --resume goes on"
        raise
    rows = [[view.name, view.width, "sparse" if view.sparse else "dense"] for view in corpus.views]
    data = {
        "folder": str(options["out"]),
        "rows": len(corpus),
        "shards": len(corpus.shards),
        "views": {view.name: view.width for view in corpus.views},
        "digest": corpus.digest,
    }
    talk.result(table(["view", "columns", "kind"], rows), data)
    talk.note(
        f"{len(corpus):,} rows in {options['out']}; coem cluster {options['out']} groups them"
    )
