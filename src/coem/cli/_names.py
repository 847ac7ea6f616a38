"""Names and merges of a run: kept in names.json, and on its tables and its page."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from coem.cli._process import will_write
from coem.cli._talk import Talk, table

# What the tables and the page of a run have beside its story, if it does not say so.
NOTHING: dict[str, Any] = {
    "columns": {},
    "tables": {},
    "page": None,
    "journal": False,
    "rows": None,
}


def naming_of(run: Path) -> Any:
    """Return what the groups of a run are called; raise if they are classes."""
    from coem.recipes.names import read_names
    from coem.recipes.record import own_names
    from coem.recipes.result import NO_NAMES
    from coem.recipes.run_file import read_run

    if read_run(run)["verb"] == "classify":
        raise ValueError(NO_NAMES)
    return read_names(run, own_names(run)).naming


def keep(run: Path, naming: Any, talk: Talk, options: dict[str, Any]) -> None:
    """Write the names of a run, and then its tables and its page with them.

    The options `source`, `vectors` and `encoder` say where its documents and vectors are.
    """
    from coem.recipes.names import NAMES, Names, place_in, write_names
    from coem.recipes.record import renamed_files, rewrite
    from coem.recipes.run_file import REPORT, TABLES, read_run

    run_json = read_run(run)
    will_write(*(place_in(run, name) for name in (NAMES, REPORT, *TABLES)))
    write_names(run, Names(naming, renamed_files(run, run_json)))
    try:
        again = _contents(run, talk, options["source"], options["vectors"], options["encoder"])
    except (ValueError, OSError, ImportError) as error:
        talk.note(f"note: the tables and the page of {run} are as they were: {error}")
        return
    talk.formulas(rewrite(run, again, naming))


def _contents(
    run: Path, talk: Talk, source: str | None, vectors: tuple[str, ...], encoder: str | None
) -> Any:
    """Return the contents of the tables and the page of a run, from its model and its documents."""
    from coem.cli import _models
    from coem.recipes.run_file import read_run

    run_json, saved = read_run(run), _models.load_model(run, encoder)
    _check_tables(run, run_json)
    documents = _models.documents_of(saved, source, talk)
    new = _models.changed(run_json, documents, vectors)
    if new:
        raise ValueError(f"{'; '.join(new)}")
    views = _models.shown_views(saved, documents, vectors, talk)
    fields = FIELDS[run_json["verb"]](run, run_json, saved, documents, views)
    return SimpleNamespace(**{**NOTHING, **fields})


def _check_tables(run: Path, run_json: dict[str, Any]) -> None:
    """Refuse to replace a table that was changed after the run."""
    from coem.recipes.record import changed_files
    from coem.recipes.run_file import TABLES

    for name in changed_files(run, run_json):
        if name in TABLES and (run / name).is_file():
            raise ValueError(
                f"{run / name} was changed after the run, and that would be lost; put back what "
                f"the run wrote, or make a new run of it with coem rerun {run} --out NEW"
            )


def _groups(run: Path, *about: Any) -> dict[str, Any]:
    """Return what a run of coem cluster says; trust is that of its file, from all its runs."""
    import numpy as np

    from coem.cli.report import story_again
    from coem.recipes.matching import assignments

    tables = (table.column("trust").to_pylist() for table in assignments(run, "trust"))
    parts = [np.array([np.nan if x in (None, "") else float(x) for x in part]) for part in tables]
    trust = np.concatenate(parts)
    story, rows = story_again(*about)
    return {"story": story, "rows": rows, "columns": {"trust": trust}}


def _topics(run: Path, run_json: Any, saved: Any, documents: Any, views: Any) -> dict[str, Any]:
    """Return what a run of coem topics says."""
    from coem.cli.report import story_again
    from coem.recipes.topics_of import shares_of
    from coem.report import read

    reading = read(saved.model, views)
    story, _ = story_again(run_json, saved, documents, views, reading=reading)
    return {"story": story, "columns": shares_of(reading, saved.naming)}


def _segments(run: Path, run_json: Any, saved: Any, documents: Any, views: Any) -> dict[str, Any]:
    """Return what a run of coem segment says."""
    from coem.recipes.segmenting_parts import fields_in_parts
    from coem.recipes.segments_told import segment_files, segment_story

    if documents.in_parts:
        given = saved.model, saved.reader, documents, saved.paragraphs, run_json["arguments"]
        return fields_in_parts(*given, naming=saved.naming or None)
    about = saved.model, views, saved.reader, documents, run_json["arguments"]
    story, cuts = segment_story(*about, naming=saved.naming or None)
    return segment_files(story, cuts, documents, views, saved.reader)


def _stream(run: Path, run_json: Any, saved: Any, documents: Any, views: Any) -> dict[str, Any]:
    """Return what a stream says: the page shows its latest documents, the tables count all."""
    from coem.cli.report import story_again
    from coem.recipes.run_file import CLUSTERS, digest
    from coem.recipes.stream_folder import stream_clusters

    story, _ = story_again(run_json, saved, documents, views)
    now = digest(saved.path)
    states = run_json["stream"]["states"]
    counts = next((s["counts"] for s in states if s["model"] == now), states[-1]["counts"])
    return {"story": story, "tables": {CLUSTERS: stream_clusters(story, counts)}, "journal": True}


FIELDS = {"stream": _stream, "cluster": _groups, "topics": _topics, "segment": _segments}


def listed(run: Path, naming: Any, talk: Talk) -> tuple[str, list[dict[str, Any]]]:
    """Return the groups of a run with their names, as text and as data."""
    from coem.cli import _models
    from coem.recipes.matching import assignments
    from coem.recipes.run_file import TABLES, read_run

    _models.tell_changes(run, read_run(run), talk, TABLES)
    sizes = Counter[str]()
    for part in assignments(run, "label"):
        sizes.update({str(n["values"]): n["counts"] for n in part["label"].value_counts().tolist()})
    groups = [g for g in range(len(naming.own)) if naming.into[g] == g]
    data = [
        {
            "group": g,
            "documents": sizes[str(g)],
            "name": naming.names[g],
            "named": g in naming.given,
            "parts": naming.parts(g),
        }
        for g in groups
    ]
    rows = [
        [
            d["group"],
            d["documents"],
            d["name"],
            d["named"],
            ", ".join(map(str, d["parts"])) if len(d["parts"]) > 1 else "",
        ]
        for d in data
    ]
    return table(["group", "documents", "name", "by hand", "merged from"], rows), data
