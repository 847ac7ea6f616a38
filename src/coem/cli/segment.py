"""``coem segment``: long documents, cut where their topic changes."""

import time
from dataclasses import replace
from typing import Any

import click

from coem.cli._options import (
    config_option,
    folder_options,
    id_option,
    machine_options,
    plain_option,
    reading_options,
    rounds_option,
    source_argument,
    talk_options,
    text_option,
    word_options,
)
from coem.cli._talk import Talk, table
from coem.cli.defaults import EVIDENCE, PARAGRAPH, SEGMENT_LENGTH

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
    default=5,
    show_default=True,
    help="Runs from other starts; the most probable one is kept.",
)
@rounds_option
@machine_options
@click.option("--strict", is_flag=True, help="Exit with 3 if the best run did not converge.")
@folder_options
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Cut long documents into segments, each of one topic, and name the topics.

    FILE is what `coem cluster` reads, or one plain text (.txt, or any with --plain). A hidden
    Markov model goes through the paragraphs of every document. All documents share the topics.
    segments.csv has the segments, assignments.csv the paragraphs.
    """
    run(options, Talk(quiet=options["quiet"], as_json=options["as_json"]))


def run(options: dict[str, Any], talk: Talk) -> None:
    """Segment the documents, write the folder, and print the topics or the segments."""
    from coem.cli import _job, _paragraphs, _run

    started = time.time()
    with _run.new_run(options) as folder:
        documents = _job.read_documents(options, talk)
        how = {
            "columns": _paragraphs.text_columns(options, documents, talk),
            "by": options["split"],
            "words": options["words"],
        }
        sequences = _paragraphs.cut(documents, how, talk)
        _check_cut(sequences)
        reader = _reader(options, sequences)
        views = reader.fit_transform(sequences.table)
        talk.note(f"{views.shape[1]:,} words that are in {options['min_df']} paragraphs or more")
        k = options["k"] or _choose(options, views, talk)
        _job.check_size(k, views)
        model = _fit(options, views, sequences, reader, k, talk)
        with talk.noting_warnings():
            outcome = _outcome(options, sequences, how, reader, views, model, started)
        _run.write_run(folder, outcome)
    data = {"folder": str(_run.place(options)), **outcome.figures}
    talk.result(_printed(outcome), data)
    _run.finish(talk, options, converged=model.converged_)


def _check_cut(sequences: Any) -> None:
    """Refuse a single paragraph."""
    if len(sequences) < 2:
        raise ValueError(
            f"{sequences.source} is one paragraph, and there is nothing to cut; --split sentences "
            "or fewer --words make smaller ones"
        )


def _reader(options: dict[str, Any], sequences: Any) -> Any:
    """Return what counts the words of paragraphs."""
    from coem.cli._job import text_views
    from coem.cli._paragraphs import TEXT

    return text_views({**options, "text": (TEXT,), "view": ()}, sequences)


def _choose(options: dict[str, Any], views: Any, talk: Talk) -> int:
    """Return the number of topics if none was asked for, and say so."""
    from coem.segments import usual_topics

    filled = int((~views.empty.all(axis=1)).sum())
    k = usual_topics(max(filled, 1), options["segment_length"])
    talk.note(
        f"-k was not given: {k} topics (a segment is expected to have "
        f"{options['segment_length']:g} paragraphs; as many topics as segments, 2 to 40)"
    )
    return k


def _fit(
    options: dict[str, Any], views: Any, sequences: Any, reader: Any, k: int, talk: Talk
) -> Any:
    """Fit the chain."""
    from coem.cli._job import threads
    from coem.cli._paragraphs import TEXT
    from coem.segments import topic_chain

    model = topic_chain(
        k,
        len(sequences),
        segment_length=options["segment_length"],
        kept=reader.kept_.get(TEXT, 1.0),
        n_init=options["restarts"],
        max_iter=options["max_iter"],
        n_jobs=threads(options),
        random_state=options["seed"],
    )
    total = options["restarts"] * options["max_iter"]
    with talk.fitting("rounds", total, by_rounds=True), talk.noting_warnings():
        return model.fit(views, lengths=sequences.filled)


# -- what is written -------------------------------------------------------------------------------


def _outcome(options, sequences, how, reader, views, model, started):
    """Return everything that the folder of the run contains."""
    from sklearn.pipeline import Pipeline

    from coem.cli._run import SEGMENTS, Outcome

    story, cuts = story_of(model, views, reader, sequences, options)
    names = [group.name for group in story.groups]
    return Outcome(
        verb="segment",
        options=options,
        documents=sequences,
        pipeline=Pipeline([("views", reader), ("model", model)]),
        story=story,
        figures=_figures(story, cuts, model, sequences),
        started=started,
        columns={**sequences.columns(), "segment": sequences.segment_of(story.assignments.label)},
        extra={"paragraphs": how},
        tables={SEGMENTS: segment_table(cuts, sequences.names, names)},
        page=page_of(cuts, sequences, views, reader),
    )


def story_of(model, views, reader, sequences, options, **more):
    """Return what there is to tell about topics and paragraphs, and the segments."""
    from coem.cli import _run
    from coem.report import read
    from coem.segments import segments_of

    # Its states are what people call topics.
    reading = replace(read(model, views, sequences.filled), noun="topic")
    cuts = segments_of(reading.groups, reading.proba, sequences.lengths)
    n_segments = len(cuts.topic)
    heading = f"{_run.called(options, sequences)} in {n_segments:,} segments"
    about = {"reading": reading, "heading": heading, **more}
    return _run.story_of(model, views, reader, sequences, options, **about), cuts


def page_of(cuts, sequences, views, reader):
    """Return what writes the page about segments."""
    from coem.cli._paragraphs import TEXT
    from coem.report.segments import tell_segments, write_segments

    def write(story, path):
        told = tell_segments(
            story,
            cuts,
            sequences.texts,
            sequences.names,
            counts=views[TEXT],
            words=reader.vocabulary_[TEXT],
        )
        return write_segments(told, path)

    return write


def segment_table(cuts, ids, names):
    """Return the table of the segments; paragraphs and segments are counted from 1."""
    import numpy as np
    import pyarrow as pa

    return pa.table(
        {
            "document": [ids[d] for d in cuts.document.tolist()],
            "segment": cuts.segment + 1,
            "first_paragraph": cuts.first + 1,
            "last_paragraph": cuts.last + 1,
            "topic": np.asarray(cuts.topic, dtype=np.int64),
            "name": [names[t] for t in cuts.topic.tolist()],
            "probability": cuts.probability,
        }
    )


def _figures(story, cuts, model, sequences):
    """Return the numbers of run.json and --json."""
    from collections import Counter

    import numpy as np

    n_segments = np.bincount(cuts.topic, minlength=len(story.groups)).tolist()
    return {
        "k": len(story.groups),
        "objective": float(model.objective_),
        "rounds": int(model.n_iter_),
        "converged": bool(model.converged_),
        "documents": int((sequences.lengths > 0).sum()),
        "cut": dict(Counter(way for way in sequences.ways if way)),
        "paragraphs": len(sequences),
        "segments": len(cuts.topic),
        "topics": [
            {"label": g.label, "name": g.name, "size": g.size, "segments": n}
            for g, n in zip(story.groups, n_segments, strict=True)
        ],
    }


def _printed(outcome: Any) -> str:
    """Return the text to print: the segments if they are few, and the topics."""
    from coem.cli._run import SEGMENTS

    told = outcome.figures
    topics = sorted(told["topics"], key=lambda topic: -topic["size"])
    rows = [[t["label"], t["size"], t["segments"], t["name"]] for t in topics if t["size"]]
    lines = [table(["topic", "paragraphs", "segments", "name"], rows)]
    if told["segments"] <= SHOWN:
        found = outcome.tables[SEGMENTS].select(
            ["document", "first_paragraph", "last_paragraph", "topic", "name"]
        )
        header = ["document", "from", "to", "topic", "name"]
        lines[:0] = [table(header, zip(*found.to_pydict().values(), strict=True)), ""]
    return "\n".join(lines)
