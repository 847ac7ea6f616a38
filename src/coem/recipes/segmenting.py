"""`segment`: long documents, cut where their topic changes."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

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
from coem.recipes.paragraphs import TEXT, check_cut, cut, text_columns
from coem.recipes.result import Job, Result, begin
from coem.recipes.segmenting_parts import cut_to_files, fields_in_parts, stored
from coem.recipes.segments_told import segment_files, segment_story
from coem.recipes.views import check_size, n_filled, n_jobs, said_stop_words, text_views
from coem.segments import topic_chain, usual_topics


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
    settings, listener, documents = job.settings, job.listener, job.documents
    looked_at = replace(documents, table=documents.looked_at)
    how = {
        "columns": text_columns(settings, looked_at, listener),
        "by": settings["split"],
        "words": settings["words"],
    }
    if documents.in_parts:
        return _in_parts(job, how)
    with job.fits():
        sequences = cut(job.documents, how, listener)
        check_cut(sequences)
        reader = text_views({**settings, "text": [TEXT], "views": {}}, sequences)
        with listener.noting_warnings():
            views = reader.fit_transform(sequences.table)
        model = _fit(job, views, sequences.filled, reader)
        with listener.noting_warnings():
            return _result(replace(job, documents=sequences), how, reader, views, model)


def _in_parts(job: Job, how: dict[str, Any]) -> Result:
    """Do the same with a corpus that does not fit in memory.

    Its paragraphs and their words are kept in a folder for temporary files meanwhile.
    """
    listener, documents = job.listener, job.documents
    listener.note(f"{documents.source} is read a part at a time")
    with job.fits(), TemporaryDirectory() as folder:
        cutting = cut_to_files(documents, how, Path(folder), listener)
        first = replace(documents, table=next(iter(cutting)), corpus=None, id_column=None)
        reader = text_views({**job.settings, "text": [TEXT], "views": {}}, first)
        with listener.noting_warnings():
            corpus = stored(cutting, reader)
        model = _fit(job, corpus, cutting.lengths[cutting.lengths > 0], reader)

        def retell(naming: Any) -> dict[str, Any]:
            about = model, reader, documents, how, job.settings
            fields = fields_in_parts(*about, naming=naming)
            n_segments = fields.pop("n_segments")
            figures = _figures(fields["story"], n_segments, model, cutting.lengths, cutting.ways)
            return {"figures": figures, **fields}

        with listener.noting_warnings():
            fields = retell(None)
            own = replace(job, documents=replace(documents, ids=fields["rows"].id))
            extra = {"paragraphs": how}
            return own.result(model, None, reader, **fields, extra=extra, retell=retell)


def _choose(settings: dict[str, Any], views: Any, listener: Listener) -> int:
    """Return the number of topics if none was asked for, and say so."""
    k = usual_topics(max(n_filled(views), 1), settings["segment_length"])
    listener.note(
        f"k was not given: {k} topics (a segment is expected to have "
        f"{settings['segment_length']:g} paragraphs; as many topics as segments, 2 to 40)"
    )
    return k


def _fit(job: Job, views: Any, lengths: np.ndarray, reader: Any) -> Any:
    """Fit the chain to paragraphs of documents with these numbers of them."""
    settings, listener = job.settings, job.listener
    words, least = said_stop_words(reader, settings), settings["min_df"]
    listener.note(f"{views.shape[1]:,} words that are in {least} paragraphs or more{words}")
    k = settings["k"] or _choose(settings, views, listener)
    check_size(k, views)
    model = topic_chain(
        k,
        int(lengths.sum()),
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
        return model.fit(views, lengths=lengths).set_params(checkpoint=None)


# -- the story ------------------------------------------------------------------------------------


def _result(job: Job, how: dict[str, Any], reader: Any, views: Any, model: Any) -> Result:
    """Return what was found."""
    sequences: Any = job.documents

    def retell(naming: Any) -> dict[str, Any]:
        about = model, views, reader, sequences, job.settings
        story, cuts = segment_story(*about, naming=naming)
        n_segments = np.bincount(cuts.topic, minlength=len(story.groups))
        ways = Counter(way for way in sequences.ways if way)
        figures = _figures(story, n_segments, model, sequences.lengths, ways)
        return {"figures": figures, **segment_files(story, cuts, sequences, views, reader)}

    extra = {"paragraphs": how}
    return job.result(model, views, reader, **retell(None), extra=extra, retell=retell)


def _figures(
    story: Any, n_segments: np.ndarray, model: Any, lengths: np.ndarray, ways: Counter[str]
) -> dict[str, Any]:
    """Return the numbers of the result."""
    return {
        "k": len(story.groups),
        "objective": float(model.objective_),
        "rounds": int(model.n_iter_),
        "converged": bool(model.converged_),
        "documents": int((lengths > 0).sum()),
        "cut": dict(ways),
        "paragraphs": int(lengths.sum()),
        "segments": int(n_segments.sum()),
        "topics": [
            {"label": g.label, "name": g.name, "size": g.size, "segments": n}
            for g, n in zip(story.groups, n_segments.tolist(), strict=True)
        ],
    }
