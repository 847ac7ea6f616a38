"""``coem report``: the page about a run, made again."""

from pathlib import Path
from typing import Any

import click

from coem.cli._options import talk_options, vectors_option
from coem.cli._talk import Talk

EXAMPLE = """\b
Examples:
  coem report coem-posts
  coem report coem-posts --out posts.html --open
"""
EXAMPLES = 5  # as in `tell`, so that the page of a run can be made again


@click.command("report", epilog=EXAMPLE)
@click.argument("run", metavar="RUN", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="[report.html in RUN]")
@click.option("--file", "source", metavar="FILE", help="The documents, if they have moved.")
@vectors_option
@click.option("--force", is_flag=True, help="Replace FILE, or the run's page by another one.")
@click.option("--examples", type=click.IntRange(1, 50), default=EXAMPLES, show_default=True)
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@talk_options
def command(run: Path, out: Path | None, **options: Any) -> None:
    """Write the page about a run from its model and its documents.

    What the run found out besides, such as which groups come back in other runs, is told again if
    the documents are still the same.
    """
    from coem.cli import _models
    from coem.recipes.record import REPORT, read_run
    from coem.report import write_report

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    own = run / REPORT
    target = own if out is None else out
    told, saved = read_run(run), _models.load_model(run)
    documents = _models.documents_of(saved, options["source"], talk)
    new = _models.changed(told, documents, options["vectors"])
    for what in new:
        talk.note(f"note: {what}")
    other = bool(new) or options["examples"] != EXAMPLES or target.resolve() != own.resolve()
    if target.exists() and other and not options["force"]:
        raise ValueError(f"{target} is there already; name another with --out, or use --force")
    views = _models.views_of(saved, documents, options["vectors"])
    if told["verb"] == "segment":
        _write_segments(told, saved, documents, views, options["examples"], target)
    else:
        write_report(_story(told, saved, documents, views, options["examples"], not new), target)
    talk.result(str(target), {"report": str(target)})
    if options["show"]:
        click.launch(str(target))


def _write_segments(
    told: dict[str, Any], saved: Any, documents: Any, views: Any, n_examples: int, target: Path
) -> None:
    """Write the page about a run of coem segment."""
    from coem.recipes.segmenting import page_of, segment_story

    about = saved.model, views, saved.reader, documents
    story, cuts = segment_story(*about, told["arguments"], n_examples=n_examples)
    page_of(cuts, documents, views, saved.reader)(story, target)


def _story(
    told: dict[str, Any], saved: Any, documents: Any, views: Any, n_examples: int, same: bool
) -> Any:
    """Return what there is to tell about a run, from its record and its model."""
    from coem.recipes.dates import dates_of
    from coem.recipes.labels import labels_of
    from coem.recipes.result import story_of

    column, date = (told["arguments"].get(name) for name in ("label", "date"))
    if not same:  # other documents need have no classes and dates
        column, date = (c if c in documents.table.column_names else None for c in (column, date))
    return story_of(
        saved.model,
        views,
        saved.reader,
        documents,
        told["arguments"],
        dates=dates_of(documents, date),
        labels=labels_of(documents, column) if column else None,
        held_out=told.get("held_out") if same else None,
        stability=told.get("stability") if same else None,
        n_examples=n_examples,
    )
