"""``coem report``: the page about a run, made again."""

import os
from pathlib import Path
from typing import Any

import click

from coem.cli._options import RUN_FOLDER, full_option, talk_options, vectors_options
from coem.cli._process import will_write
from coem.cli._talk import Talk

EXAMPLE = """\b
Examples:
  coem report coem-posts
  coem report coem-posts --out posts.html --open
  coem report coem-posts --out whole.html --full
"""
STDOUT = 1
EXAMPLES = 5  # as in `tell`, so that the page of a run can be made again


@click.command("report", epilog=EXAMPLE)
@click.argument("run", metavar="RUN", type=RUN_FOLDER)
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="[report.html in RUN]")
@click.option("--file", "source", metavar="FILE", help="The documents, if they have moved.")
@vectors_options
@click.option("--force", is_flag=True, help="Replace FILE, or the run's page by another one.")
@click.option("--examples", type=click.IntRange(1, 50), default=EXAMPLES, show_default=True)
@full_option
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@talk_options
def command(run: Path, out: Path | None, **options: Any) -> None:
    """Write the page about a run from its model and its documents.

    Other results of the run, such as which groups come back in other runs, are shown again if the
    documents are still the same.
    """
    from coem.cli import _models
    from coem.io.whole import descriptor_of, is_stream
    from coem.recipes.names import place_in
    from coem.recipes.run_file import REPORT, TABLES, read_run
    from coem.report import write_report

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    if talk.as_json and out is not None and descriptor_of(out) == STDOUT:
        raise click.UsageError(f"--out {out} and --json would both write to stdout; leave one out")
    own = run / REPORT
    target = place_in(run, REPORT) if out is None else out
    run_json, saved = read_run(run), _models.load_model(run, options["encoder"])
    documents = _models.documents_of(saved, options["source"], talk)
    new = _models.changed(run_json, documents, options["vectors"])
    _models.tell_changes(run, run_json, talk, TABLES)
    for what in new:
        talk.note(f"note: {what}")
    was_full = bool(run_json["written"].get("full", False))
    full = options["full"] or was_full
    _check_full(full, documents)
    other = bool(new) or options["examples"] != EXAMPLES or full != was_full
    other = other or os.path.realpath(target) != os.path.realpath(own)
    streamed = is_stream(target)  # of which nothing is replaced
    if target.exists() and other and not streamed and not options["force"]:
        raise ValueError(f"{target} is there already; name another with --out, or use --force")
    will_write(target)
    with talk.noting_warnings():
        views = _models.shown_views(saved, documents, options["vectors"], talk)
    if run_json["verb"] == "segment":
        if full:
            raise ValueError("--full: the page of coem segment has no texts to be packed")
        _write_segments(run_json, saved, documents, views, options["examples"], target)
    else:
        about = run_json, saved, documents, views
        story, _ = story_again(*about, n_examples=options["examples"], same=not new)
        write_report(story, target, full=full)
    if not streamed or talk.as_json:  # it may be stdout
        talk.result(str(target), {"report": str(target)})
    if options["show"]:
        click.launch(str(target))


def _check_full(full: bool, documents: Any) -> None:
    """Refuse a page with more documents than fit in memory."""
    from coem.recipes.record import NOT_FULL

    if full and documents.in_parts:
        raise ValueError(NOT_FULL)


def _write_segments(
    run_json: dict[str, Any], saved: Any, documents: Any, views: Any, n_examples: int, target: Path
) -> None:
    """Write the page about a run of coem segment."""
    from coem.recipes.segmenting_parts import fields_in_parts
    from coem.recipes.segments_told import page_of, segment_story

    if documents.in_parts:
        about = saved.model, saved.reader, documents, saved.paragraphs, run_json["arguments"]
        found = fields_in_parts(*about, n_examples=n_examples, naming=saved.naming or None)
        found["page"](found["story"], target)
        return
    about = saved.model, views, saved.reader, documents
    more = {"n_examples": n_examples, "naming": saved.naming or None}
    story, cuts = segment_story(*about, run_json["arguments"], **more)
    page_of(cuts, documents, views, saved.reader)(story, target)


def story_again(
    run_json: dict[str, Any],
    saved: Any,
    documents: Any,
    views: Any,
    *,
    n_examples: int = EXAMPLES,
    same: bool = True,
    **more: Any,
) -> tuple[Any, Any]:
    """Return what there is to tell about a run, from its record and its model.

    Also return the groups of all rows if there are too many for memory, and else None. `views` are
    those of the rows that are shown.
    """
    from coem.cli import _models
    from coem.recipes.dates import date_column, dates_of
    from coem.recipes.in_parts import assign_all, counted, shown_of
    from coem.recipes.label_files import join_labels
    from coem.recipes.labels import label_column, labels_of
    from coem.recipes.listener import Listener
    from coem.recipes.result import story_of

    column, file, date = (run_json["arguments"].get(name) for name in ("label", "labels", "date"))
    if file and same:
        documents, _ = join_labels(documents, file, column, Listener(), skip_bad=True)
    if not same:  # other documents need have no classes and dates
        there = documents.table.column_names
        column = column if column and label_column(column, documents.table) in there else None
        date = date if date_column(date, there) in there else None
    labels = labels_of(documents, column) if column else None
    shown, rows = shown_of(documents)
    story = story_of(
        saved.model,
        views,
        saved.reader,
        shown,
        run_json["arguments"],
        dates=dates_of(shown, date),
        labels=labels if rows is None or labels is None else labels[rows],
        held_out=run_json.get("held_out") if same else None,
        stability=run_json.get("stability") if same else None,
        n_examples=n_examples,
        naming=saved.naming or None,
        **more,
    )
    if rows is None:
        return story, None
    names = [group.name for group in story.groups]
    parts = (own for _, own in _models.parts_of(saved, documents, {}, ()))
    every = assign_all(saved.model, parts, documents.ids, names, saved.naming or None)
    return counted(story, every), every
