"""``coem report``: the page about a run, made again."""

from pathlib import Path
from typing import Any

import click

from coem.cli._options import talk_options
from coem.cli._talk import Talk

EXAMPLE = """\b
Examples:
  coem report coem-posts
  coem report coem-posts --out posts.html --open
"""


@click.command("report", epilog=EXAMPLE)
@click.argument("run", metavar="RUN", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="[report.html in RUN]")
@click.option("--file", "source", metavar="FILE", help="The documents, if they have moved.")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.option("--examples", type=click.IntRange(1, 50), default=5, show_default=True)
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@talk_options
def command(run: Path, out: Path | None, **options: Any) -> None:
    """Write the page about a run from its model and its documents."""
    from coem.cli import _job, _models
    from coem.cli._run import REPORT, read_run
    from coem.report import tell, write_report

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    target = run / REPORT if out is None else out
    if target.exists() and not options["force"]:
        raise ValueError(f"{target} is there already; --force replaces it")
    told, saved = read_run(run), _models.load_model(run)
    documents = _models.documents_of(saved, options["source"], talk)
    if documents.fingerprint != told["fingerprint"]:
        talk.note(f"note: {documents.source} has changed since the run")
    views = saved.reader.transform(documents.table)
    column = told["arguments"].get("label")
    story = tell(
        saved.model,
        views,
        feature_names=saved.reader.vocabulary_,
        ids=documents.ids,
        texts=_job.shown_texts(documents, saved.reader),
        labels=_job.labels_of(documents, column) if column else None,
        settings={"file": documents.source, **told["arguments"]},
        n_examples=options["examples"],
    )
    write_report(story, target)
    talk.result(str(target), {"report": str(target)})
    if options["show"]:
        click.launch(str(target))
