"""`segment`: long documents, cut where their topic changes."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from coem.recipes.defaults import (
    EVIDENCE,
    MAX_DF,
    MAX_ITER,
    MIN_DF,
    NGRAMS,
    PARAGRAPH,
    SEGMENT_LENGTH,
    SEGMENT_RESTARTS,
    STOP_WORDS,
)
from coem.recipes.listener import Listener
from coem.recipes.paragraphs import TEXT, Sequences, check_cut, cut, text_columns
from coem.recipes.result import Job, Result, begin, story_of
from coem.recipes.run_file import SEGMENTS
from coem.recipes.views import check_size, n_jobs, said_stop_words, text_views
from coem.report import read
from coem.report.segments import tell_segments, write_segments
from coem.segments import segments_of, topic_chain, usual_topics


def segment(
    table: Any,
    *,
    text: Any = None,
    id: str | None = None,
    plain: bool = False,
    split: str = "auto",
    words: int = PARAGRAPH,
    k: int | None = None,
    segment_length: float = SEGMENT_LENGTH,
    max_length: float | None = EVIDENCE,
    stop_words: Any = STOP_WORDS,
    min_df: int = MIN_DF,
    max_df: float = MAX_DF,
    max_features: int | None = None,
    ngrams: int = NGRAMS,
    restarts: int = SEGMENT_RESTARTS,
    max_iter: int = MAX_ITER,
    seed: int = 0,
    threads: int | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    skip_bad: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
) -> Result:
    """Cut long documents into segments, each of one topic, as ``coem segment`` does.

    A hidden Markov model goes through the paragraphs of every document. All documents share the
    topics.

    Parameters
    ----------
    table : table or path
        As in `cluster`, or the name of one plain text (.txt).
    text, id : optional
        As in `cluster`.
    plain : bool, default=False
        The file is one plain text whatever its extension.
    split : {"auto", "paragraphs", "lines", "sentences", "words"}, default="auto"
        What a paragraph is; "auto": between blank lines, else long lines, else sentences.
    words : int, default=40
        Words of a run of sentences or words that stands for a paragraph.
    k : int, optional
        The number of topics. Otherwise as many as segments are expected, 2 to 40.
    segment_length : float, default=10
        Paragraphs of a segment that are expected, on average.
    max_length : float, default=3
        Words that a paragraph counts at most. More make more boundaries; None counts all.
    stop_words, min_df, max_df, max_features, ngrams : optional
        Which words count, as in `cluster`.
    restarts : int, default=5
        Runs from other starts; the most probable one is kept.
    max_iter, seed, threads, encoding, delimiter, sheet, skip_bad, checkpoint, listener : optional
        As in `cluster`.

    Returns
    -------
    result : Result
        Its rows are paragraphs, and `labels` their topics; ``tables["segments.csv"]`` has the
        segments.
    """
    job = begin("segment", dict(locals()))
    settings, listener = job.settings, job.listener
    how = {
        "columns": text_columns(settings, job.documents, listener),
        "by": settings["split"],
        "words": settings["words"],
    }
    with job.fits():
        sequences = cut(job.documents, how, listener)
        check_cut(sequences)
        reader = text_views({**settings, "text": [TEXT], "views": {}}, sequences)
        with listener.noting_warnings():
            views = reader.fit_transform(sequences.table)
        words = said_stop_words(reader, settings)
        listener.note(f"{views.shape[1]:,} words that are in {min_df} paragraphs or more{words}")
        k = settings["k"] or _choose(settings, views, listener)
        check_size(k, views)
        model = _fit(job, views, sequences, reader, k)
        with listener.noting_warnings():
            return _result(replace(job, documents=sequences), how, reader, views, model)


def _choose(settings: dict[str, Any], views: Any, listener: Listener) -> int:
    """Return the number of topics if none was asked for, and say so."""
    filled = int((~views.empty.all(axis=1)).sum())
    k = usual_topics(max(filled, 1), settings["segment_length"])
    listener.note(
        f"k was not given: {k} topics (a segment is expected to have "
        f"{settings['segment_length']:g} paragraphs; as many topics as segments, 2 to 40)"
    )
    return k


def _fit(job: Job, views: Any, sequences: Sequences, reader: Any, k: int) -> Any:
    """Fit the chain."""
    settings, listener = job.settings, job.listener
    model = topic_chain(
        k,
        len(sequences),
        segment_length=settings["segment_length"],
        kept=reader.kept_.get(TEXT, 1.0),
        n_init=settings["restarts"],
        max_iter=settings["max_iter"],
        n_jobs=n_jobs(settings),
        random_state=settings["seed"],
        checkpoint=job.part("segments"),
    )
    total = settings["restarts"] * settings["max_iter"]
    with listener.fitting("rounds", total, by_rounds=True), listener.noting_warnings():
        return model.fit(views, lengths=sequences.filled).set_params(checkpoint=None)


# -- what is told ----------------------------------------------------------------------------------


def _result(job: Job, how: dict[str, Any], reader: Any, views: Any, model: Any) -> Result:
    """Return what was found."""
    sequences: Any = job.documents

    def retell(naming: Any) -> dict[str, Any]:
        about = model, views, reader, sequences, job.settings
        story, cuts = segment_story(*about, naming=naming)
        figures = _figures(story, cuts, model, sequences)
        return {"figures": figures, **segment_files(story, cuts, sequences, views, reader)}

    extra = {"paragraphs": how}
    return job.result(model, views, reader, **retell(None), extra=extra, retell=retell)


def segment_files(
    story: Any, cuts: Any, sequences: Sequences, views: Any, reader: Any
) -> dict[str, Any]:
    """Return what the files of a run have to say, by the fields of a result."""
    names = [group.name for group in story.groups]
    segments = sequences.segment_of(story.assignments.label)
    return {
        "story": story,
        "columns": {**sequences.columns(), "segment": segments},
        "tables": {SEGMENTS: segment_table(cuts, sequences.names, names)},
        "page": page_of(cuts, sequences, views, reader),
    }


def segment_story(
    model: Any,
    views: Any,
    reader: Any,
    sequences: Sequences,
    settings: dict[str, Any],
    **more: Any,
) -> tuple[Any, Any]:
    """Return what there is to tell about topics and paragraphs, and the segments."""
    # Its states are what people call topics.
    reading = replace(read(model, views, sequences.filled), noun="topic")
    cuts = segments_of(reading.groups, reading.proba, sequences.lengths)
    heading = f"{sequences.called} in {len(cuts.topic):,} segments"
    about = {"reading": reading, "heading": heading, **more}
    return story_of(model, views, reader, sequences, settings, **about), cuts


def page_of(cuts: Any, sequences: Sequences, views: Any, reader: Any) -> Any:
    """Return what writes the page about segments."""

    def write(story: Any, path: Path) -> Any:
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


def segment_table(cuts: Any, ids: list[str], names: list[str]) -> Any:
    """Return the table of the segments; paragraphs and segments are counted from 1."""
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


def _figures(story: Any, cuts: Any, model: Any, sequences: Sequences) -> dict[str, Any]:
    """Return the numbers of the result."""
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
