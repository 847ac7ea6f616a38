"""``coem topics``: documents as mixtures of topics."""

import time
from dataclasses import replace
from typing import Any

import click

from coem.cli._options import (
    config_option,
    folder_options,
    machine_options,
    reading_options,
    source_argument,
    talk_options,
    view_options,
)
from coem.cli._talk import Talk, table

COUNTED = ("text", "list", "inbound")  # kinds of views that are counts

EXAMPLE = """\b
Examples:
  coem topics posts.csv -k 50
  coem topics abstracts.jsonl --text abstract -k 25 --coupling c
"""


@click.command("topics", epilog=EXAMPLE)
@source_argument
@view_options
@click.option("-k", "--k", type=click.IntRange(1), default=50, show_default=True, help="How many.")
@click.option(
    "--coupling",
    type=click.Choice(["a", "b", "c", "d", "xy", "none"]),
    default="c",
    show_default=True,
    help="How two runs learn from each other (Lin 2006).",
)
@click.option(
    "--max-iter",
    type=click.IntRange(1),
    default=50,
    show_default=True,
    help="Iterations before and after the coupling.",
)
@machine_options
@folder_options
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Find topics. Each document has a share of each topic (the aspect model, pLSA).

    All text columns together are one bag of words. The assignments have the two largest shares
    per document, and the column shares has all of them in the order of the topics.
    """
    options["strict"] = False
    run(options, Talk(quiet=options["quiet"], as_json=options["as_json"]))


def run(options: dict[str, Any], talk: Talk) -> None:
    """Fit the topics, write the folder, and print them."""
    from coem.cli import _job, _run

    started = time.time()
    with _run.new_run(options) as folder:
        documents = _job.read_documents(options, talk)
        reader = _job.text_views(options, documents)
        if reader.views is None:
            documents = _only_words(documents, talk)
        views = _as_one(reader, _job.to_views(reader, documents, talk), documents)
        _job.check_size(options["k"], views)
        name = one_of_counts(reader, views)
        model = _model(options)
        # Each run has as many rounds before the coupling as after it.
        total = model.n_runs * model.max_iter * (1 if model.coupling is None else 2)
        with talk.fitting("rounds", total, by_rounds=True), talk.noting_warnings():
            model.fit(views[name])
        outcome = _outcome(options, documents, reader, views, model, started)
        _run.write_run(folder, outcome)
    groups = sorted(outcome.story.groups, key=lambda group: -group.share)
    rows = [[group.label, group.share, group.name] for group in groups]
    data = {"folder": str(_run.place(options)), **outcome.figures}
    talk.result(table(["topic", "share", "words"], rows), data)
    _run.finish(talk, options, converged=True)


def _model(options: dict[str, Any]) -> Any:
    """Return the model that the options ask for."""
    from coem import AspectModel
    from coem.cli._job import threads

    alone = options["coupling"] == "none"
    return AspectModel(
        options["k"],
        coupling=None if alone else options["coupling"],
        n_runs=1 if alone else 2,
        max_iter=options["max_iter"],
        n_jobs=threads(options),
        random_state=options["seed"],
    )


def _outcome(options, documents, reader, views, model, started):
    """Return everything that the folder of the run contains.

    The rows are folded in once; the page, the assignments and the shares use that reading.
    """
    from sklearn.pipeline import Pipeline

    from coem.cli import _run
    from coem.report import read

    reading = read(model, views)
    story = _run.story_of(model, views, reader, documents, options, reading=reading)
    topics = [{"label": g.label, "name": g.name, "share": g.share} for g in story.groups]
    figures = {"k": options["k"], "kl": float(model.kl_), "topics": topics}
    pipeline = Pipeline([("views", reader), ("model", model)])
    # Six digits: more would be noise, and would fill disks.
    shares = {"shares": reading.proba.astype(float).round(6)}
    return _run.Outcome("topics", options, documents, pipeline, story, figures, started, shares)


def _only_words(documents: Any, talk: Talk) -> Any:
    """Return the documents without the columns that would be guessed as views other than text.

    If there is no text at all, the columns stay: lists can have topics, too.
    """
    from coem.text.guess import guess_views

    guessed, _ = guess_views(documents.table, documents.id_column)
    others = {name: spec["kind"] for name, spec in guessed.items() if spec["kind"] != "text"}
    if len(others) == len(guessed):
        return documents
    for name, kind in others.items():
        talk.note(f"Column {name!r} is left out: topics are found in text, and it is a {kind}.")
    return replace(documents, table=documents.table.drop_columns(list(others)))


def _as_one(reader: Any, views: Any, documents: Any) -> Any:
    """Return the text columns of several views as one bag of words."""
    texts = [spec["columns"] for spec in reader.views_.values() if spec["kind"] == "text"]
    if len(texts) < 2 or len(texts) < len(reader.views_):
        return views
    columns = list(dict.fromkeys(name for names in texts for name in names))
    return reader.set_params(views={"text": columns}).fit_transform(documents.table)


def one_of_counts(reader: Any, views: Any) -> str:
    """Return the name of the only view; raise unless there is one view, and it has counts."""
    if len(views.names) > 1:
        raise ValueError(
            f"topics are found in one view, and there are {', '.join(views.names)}; name the text "
            "columns with --text and no other view, or use coem cluster, which takes several"
        )
    name = str(views.names[0])
    kind = reader.views_[name]["kind"]
    if kind not in COUNTED:
        raise ValueError(
            f"view {name!r} is of kind {kind!r}, and topics are found in words or lists; name text "
            "columns with --text, or use coem cluster"
        )
    return name
