"""The story, the table and the page about segments."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from coem.recipes.paragraphs import TEXT, Sequences
from coem.recipes.result import story_of
from coem.recipes.run_file import SEGMENTS
from coem.report import read
from coem.report.segments import tell_segments, write_segments
from coem.segments import segments_of


def segment_files(
    story: Any, cuts: Any, sequences: Sequences, views: Any, reader: Any
) -> dict[str, Any]:
    """Return the contents of the files of a run, by the fields of a result."""
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
    """Return the story about topics and paragraphs, and the segments."""
    # Its states are what people call topics.
    reading = replace(read(model, views, sequences.filled), noun="topic")
    cuts = segments_of(reading.groups, reading.proba, sequences.lengths)
    heading = f"{sequences.called} in {len(cuts.topic):,} segments"
    about = {"reading": reading, "heading": heading, **more}
    return story_of(model, views, reader, sequences, settings, **about), cuts


def page_of(
    cuts: Any, sequences: Sequences, views: Any, reader: Any, whole: dict[str, Any] | None = None
) -> Any:
    """Return what writes the page about segments; `whole` counts all, if these are some."""

    def write(story: Any, path: Path) -> Any:
        about = tell_segments(
            story,
            cuts,
            sequences.texts,
            sequences.names,
            counts=views[TEXT],
            words=reader.vocabulary_[TEXT],
        )
        return write_segments(replace(about, **(whole or {})), path)

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
