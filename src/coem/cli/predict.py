"""``coem predict``: a fitted model on new documents."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from coem.cli._options import (
    RUN_OR_MODEL,
    config_option,
    other_text_option,
    plain_option,
    reading_options,
    safe_option,
    source_argument,
    talk_options,
    trust_option,
    vectors_options,
)
from coem.cli._process import will_write
from coem.cli._talk import Talk
from coem.recipes.defaults import FORMATS

EXAMPLE = """\b
Examples:
  coem predict groups/model.coem new.csv > assigned.csv
  coem predict groups new.jsonl --out assigned.parquet
  coem predict groups new.csv --view meaning=new.npy
"""


@click.command("predict", epilog=EXAMPLE)
@click.argument("model", metavar="MODEL", type=RUN_OR_MODEL)
@source_argument
@click.option(
    "--out",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Where to write. [stdout, as .csv]",
)
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.option(
    "--id",
    "id_column",
    metavar="COLUMN",
    help="What rows are called; none numbers them. [as when it was fitted]",
)
@other_text_option
@vectors_options
@safe_option
@trust_option
@plain_option
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Assign new documents to the groups or classes of a model.

    MODEL is a model.coem file or the folder that it is in. The output has the columns id, label,
    name, probability, second, second_probability, disagreement and empty: true of a document of
    which no view has anything, so that it is where any unknown one would be. For a model of
    coem segment the rows are paragraphs, with the columns document, paragraph and segment.
    FILE may lack the columns of some views: they are empty then.
    """
    from coem.cli import _models

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    out = options["out"]
    _check_target(out, options["force"])
    trust = options["trust_patterns"]
    saved = _models.load_model(options["model"], options["encoder"], trust_patterns=trust)
    _models.check_text_option(saved, options["text"])
    documents = _models.read_rows(saved, options["source"], options, talk, options["id_column"])
    parts = _models.parts_of(saved, documents, options, options["vectors"], talk)
    with talk.noting_warnings():
        tables = (_models.assign(saved, views, rows) for rows, views in parts)
        n_rows = _write(tables, out, talk, safe=options["safe_csv"])
    talk.note(f"{n_rows:,} {'rows' if saved.paragraphs is None else 'paragraphs'} assigned")


def _check_target(out: Path | None, force: bool) -> None:
    """Refuse a file that is there, or of no known kind, before any work."""
    from coem.io.whole import is_stream

    if out is None:
        return
    if out.suffix.lstrip(".") not in FORMATS:
        raise click.BadParameter(f"{out} must end in .csv, .jsonl or .parquet", param_hint="--out")
    if out.exists() and not is_stream(out) and not force:
        raise ValueError(f"{out} is there already; --force replaces it")
    will_write(out)


def _write(tables: Iterable[Any], out: Path | None, talk: Talk, *, safe: bool) -> int:
    """Write or print tables, one after the other, and return how many rows they have."""
    from coem.io.formulas import n_formulas
    from coem.io.table_parts import part_as, write_tables

    n_rows = found = 0

    def counted() -> Iterator[Any]:
        nonlocal n_rows
        for table in tables:
            n_rows += table.num_rows
            yield table

    if out is not None:
        found = write_tables(counted(), out, safe=safe)
        talk.formulas(0 if safe else found)
        if talk.as_json:
            talk.result("", {"file": str(out), "rows": n_rows})
        return n_rows
    if talk.as_json:
        talk.result("", [row for table in counted() for row in table.to_pylist()])
        return n_rows
    for table in counted():
        found += 0 if safe else n_formulas(table)
        talk.rows(part_as(".csv", table, first=n_rows == table.num_rows, safe=safe))
    talk.formulas(found)
    return n_rows
