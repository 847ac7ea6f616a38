"""The folder of a run: always the same names, written whole or not at all."""

import hashlib
import json
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coem.cli._job import Documents
from coem.cli._options import FORMATS
from coem.cli._talk import Talk, to_json

MODEL, CLUSTERS, TRACE = "model.coem", "clusters.csv", "trace.jsonl"
SEGMENTS = "segments.csv"
REPORT, RUN = "report.html", "run.json"
ASSIGNMENTS = "assignments"
FILES = (
    *(MODEL, CLUSTERS, SEGMENTS, TRACE, REPORT, RUN),
    *(f"{ASSIGNMENTS}.{form}" for form in FORMATS),
)
VERBS = ("cluster", "classify", "topics", "segment")  # that write such a folder
SCHEMA = 1


@dataclass(frozen=True)
class Outcome:
    """What a verb found, to be written down."""

    verb: str
    options: dict[str, Any]
    documents: Documents
    pipeline: Any
    story: Any
    figures: dict[str, Any]  # what run.json tells of the result
    started: float = field(default_factory=time.time)
    columns: dict[str, Any] = field(default_factory=dict)  # more of the rows, in assignments
    extra: dict[str, Any] = field(default_factory=dict)  # more for the model file
    tables: dict[str, Any] = field(default_factory=dict)  # more files: name -> table
    page: Any = None  # what writes the page, if it is not that of all models


def place(options: dict[str, Any]) -> Path:
    """Return the folder that results go to."""
    if options["out"] is not None:
        return Path(options["out"])
    name = "stdin" if options["source"] == "-" else Path(options["source"]).resolve().name
    return Path(f"coem-{name.split('.')[0] or 'run'}")


@contextmanager
def new_run(options: dict[str, Any]) -> Iterator[Path]:
    """Give the folder to write to, which gets its name when all is done.

    A place that cannot be written, or must not be, is refused here, before any work.
    """
    from coem.io import new_folder

    target = place(options)
    if Path(options["source"]).resolve().parent == target.resolve():
        raise ValueError(f"{options['source']} is in {target}; name another folder with --out")
    try:
        with new_folder(target, force=options["force"], mark=RUN, names=FILES) as folder:
            yield folder
    except FileExistsError as error:
        said = str(error).replace("force its replacement", "replace it with --force")
        raise ValueError(said) from None


def write_run(folder: Path, outcome: Outcome) -> None:
    """Write all files of a run."""
    import coem
    from coem.io.tables import write_table
    from coem.report import write_report

    options, story = outcome.options, outcome.story
    _forget_times(outcome.pipeline.steps[-1][1])
    extra = {"names": [group.name for group in story.groups], **outcome.extra}
    coem.save(
        outcome.pipeline, folder / MODEL, extra=extra, fingerprint=outcome.documents.fingerprint
    )
    rows = as_table(story.assignments, outcome.columns)
    write_table(rows, folder / f"{ASSIGNMENTS}.{options['form']}")
    for name, more in ({CLUSTERS: clusters(story)} | outcome.tables).items():
        write_table(more, folder / name)
    history = getattr(outcome.pipeline.steps[-1][1], "history_", ())
    lines = [to_json(record) for record in history]
    (folder / TRACE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if not options["no_report"]:
        (outcome.page or write_report)(story, folder / REPORT)
    # Names of files need not be text; the escapes are those of JSON, and lead back to the file.
    told = _run_json(outcome, folder)
    (folder / RUN).write_text(told, encoding="utf-8", errors="backslashreplace")


def as_table(assignments: Any, more: dict[str, Any] | None = None) -> Any:
    """Return the groups of rows as a table, and more columns after them."""
    import pyarrow as pa

    columns = (vars(assignments) | (more or {})).items()
    return pa.table({name: pa.array(values.tolist(), from_pandas=True) for name, values in columns})


def clusters(story: Any) -> Any:
    """Return the table of the groups; words and ids are lists, for they may hold blanks."""
    import pyarrow as pa

    views = list(dict.fromkeys(view for group in story.groups for view in group.words))
    columns: dict[str, list[Any]] = {
        "label": [group.label for group in story.groups],
        "name": [group.name for group in story.groups],
        "size": [group.size for group in story.groups],
        "empty": [group.empty for group in story.groups],
        "share": [group.share for group in story.groups],
    }
    for view in views:
        for kind in ("discriminating", "descriptive"):
            columns[f"{kind}_{view}"] = [
                [str(word) for word, *_ in getattr(g.words[view], kind)] for g in story.groups
            ]
    ids = story.assignments.id  # those of documents are cut to be shown
    columns["examples"] = [[ids[d.row] for d in g.typical] for g in story.groups]
    columns["trust"] = [trust_of(group) for group in story.groups]
    return pa.table(columns)


def trust_of(group: Any) -> float | None:
    """Return the trust of a group, from 0 to 1, or None if it is not known."""
    return None if group.stability is None else float(group.stability["trust"])


def _forget_times(model: Any) -> None:
    """Take the times out of the records of a fit: the same run again shall be the same files."""
    for name in ("history_", "runs_"):
        for record in getattr(model, name, ()):
            record.pop("seconds", None)


# -- run.json -----------------------------------------------------------------------------------


def _run_json(outcome: Outcome, folder: Path) -> str:
    told = {
        "schema": SCHEMA,
        "verb": outcome.verb,
        "arguments": recorded(outcome.options),
        "source": str(Path(outcome.documents.source).resolve()) if _is_file(outcome) else None,
        "called": called(outcome.options, outcome.documents),
        "fingerprint": outcome.documents.fingerprint,
        "inputs": _inputs(outcome),
        "rows": len(outcome.documents),
        "bad_rows": outcome.documents.n_bad,
        "seed": outcome.options.get("seed"),
        "versions": versions(),
        "seconds": round(time.time() - outcome.started, 3),
        "result": outcome.figures,
        "stability": outcome.story.stability,
        "held_out": _held_out(outcome.story),
        "files": {path.name: digest(path) for path in sorted(folder.iterdir())},
    }
    return to_json(told, indent=2) + "\n"


def _inputs(outcome: Outcome) -> dict[str, str]:
    """Return the digests of the files of vectors, by view."""
    views = outcome.pipeline.steps[0][1].views or {}
    files = {view: spec for view, spec in views.items() if str(spec).endswith(".npy")}
    return {view: digest(Path(file)) for view, file in files.items()}


def _held_out(story: Any) -> Any:
    """Return what held-out labels said, which no one could find out again without new fits."""
    return story.truth if story.truth is not None and story.truth.held_out else None


def _is_file(outcome: Outcome) -> bool:
    return outcome.options["source"] != "-"


def recorded(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that decide what comes out, as JSON."""
    left_out = {"out", "force", "as_json", "quiet", "called"}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in options.items()
        if name not in left_out
    }


def called(options: dict[str, Any], documents: Documents) -> str:
    """Return the name of the documents: in a run made again, the one that they had."""
    name, fingerprint = options.get("called") or (None, None)
    if name and fingerprint == documents.fingerprint:
        return str(name)
    return Path(documents.source).resolve().name


def known_as(told: dict[str, Any]) -> tuple[str | None, str]:
    """Return what a run called its documents, and what they are known by under another name."""
    return told.get("called"), told["fingerprint"]


def story_of(
    model: Any, views: Any, reader: Any, documents: Documents, options: dict[str, Any], **more: Any
) -> Any:
    """Return what there is to tell about a run; `more` is for `tell`."""
    from coem.cli._job import shown_texts
    from coem.report import tell

    return tell(
        model,
        views,
        feature_names=reader.vocabulary_,
        ids=documents.ids,
        texts=shown_texts(documents, reader),
        settings=on_page(recorded(options), called(options, documents)),
        **more,
    )


def on_page(arguments: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what the page tells of how a run was made; of its documents the name.

    Options that were not used are left out; whether a run was strict is no matter of its result.
    """
    used = {
        option: value
        for option, value in arguments.items()
        if option not in ("source", "strict") and value not in (None, []) and value is not False
    }
    return {"file": name, **used}


def versions() -> dict[str, str]:
    """Return the versions of what the result depends on."""
    from importlib.metadata import version

    names = ("coem", "numpy", "scipy", "scikit-learn", "pyarrow")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_run(folder: Path) -> dict[str, Any]:
    """Return what run.json of a folder says."""
    path = folder / RUN
    if not path.is_file():
        raise ValueError(f"{folder} is no folder of a run: there is no {RUN} in it")
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}; run it again") from None
    if not isinstance(told, dict) or not KEYS.items() <= _kinds(told).items():
        raise ValueError(f"{path} is no record of a run")
    if told["verb"] not in VERBS:
        raise ValueError(f"{path} is the record of an unknown verb, {told['verb']!r}")
    if told["schema"] > SCHEMA:
        raise ValueError(f"{path} was written by a newer coem; this one reads schema {SCHEMA}")
    return told


KEYS = {
    "schema": int,
    "verb": str,
    "arguments": dict,
    "fingerprint": str,
    "rows": int,
    "versions": dict,
    "result": dict,
    "files": dict,
}


def _kinds(told: dict[str, Any]) -> dict[str, type]:
    return {key: type(value) for key, value in told.items()}


def finish(talk: Talk, options: dict[str, Any], *, converged: bool) -> None:
    """Say where the results are; with --strict, end with 3 if there was no convergence."""
    from coem.cli._program import NOT_CONVERGED

    folder = place(options)
    talk.note(
        f"results in {folder}{'' if options['no_report'] else f', the page is {folder / REPORT}'}"
    )
    if options["strict"] and not converged:
        talk.note(f"no convergence after {options['max_iter']} rounds; raise --max-iter")
        sys.exit(NOT_CONVERGED)
