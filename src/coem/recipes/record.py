"""The folder of a run: always the same names, written whole or not at all."""

import hashlib
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from coem import report as pages
from coem.io.formulas import n_formulas
from coem.io.tables import write_table
from coem.models import read_info, save
from coem.recipes.defaults import FORMATS
from coem.recipes.encoders import known_encoder
from coem.recipes.names import NAMES, Names, read_names, write_names
from coem.recipes.settings import recorded
from coem.report.story import plain

MODEL, CLUSTERS, TRACE = "model.coem", "clusters.csv", "trace.jsonl"
SEGMENTS = "segments.csv"
REPORT, RUN = "report.html", "run.json"
ASSIGNMENTS = "assignments"
TABLES = tuple(f"{ASSIGNMENTS}.{form}" for form in FORMATS)
FILES = (MODEL, CLUSTERS, SEGMENTS, TRACE, REPORT, RUN, NAMES, *TABLES)
REWRITTEN = (CLUSTERS, SEGMENTS, REPORT, *TABLES)  # when groups get names
# Among the inputs of a run, which are views otherwise.
LABELS, ENCODER = "--labels", "--encoder"
VERBS = ("cluster", "classify", "topics", "segment")  # that write such a folder
SCHEMA = 1


def write_run(
    folder: Path,
    result: Any,
    *,
    format: str = "csv",
    report: bool = True,
    full: bool = False,
    safe_csv: bool = False,
) -> int:
    """Write all files of the result of a recipe: what it computed, and then names over it.

    Return how many cells of .csv files a spreadsheet would run as formulas: none with `safe_csv`.
    """
    written = {"format": format, "report": report, "full": full, "safe_csv": safe_csv}
    _write_computed(folder, result.computed or result, written)
    if result.naming:
        rewrite(folder, result, result.naming)
    tables = tables_of(result, format).items()
    return 0 if safe_csv else sum(n_formulas(t) for name, t in tables if name.endswith(".csv"))


def tables_of(told: Any, format: str) -> dict[str, Any]:
    """Return the tables of a result by the names of their files."""
    rows = as_table(told.story.assignments, told.columns)
    return {f"{ASSIGNMENTS}.{format}": rows, CLUSTERS: clusters(told.story)} | told.tables


def rewrite(folder: Path, told: Any, naming: Any) -> None:
    """Write the tables and the page of a run again, under names that people gave.

    `told` has `story`, `columns`, `tables` and `page`, as a result has them. The digests of what
    differs from what the run computed go to names.json.
    """
    run = read_run(folder)
    computed, full = run["files"], bool(run["written"].get("full", False))
    safe = bool(run["written"].get("safe_csv", False))
    (target,) = folder.glob(f"{ASSIGNMENTS}.*")
    for name, table in tables_of(told, target.suffix[1:]).items():
        write_table(table, folder / name, safe=safe)
    if REPORT in computed:
        write_page(told, folder / REPORT, full=full)
    digests = {name: digest(folder / name) for name in computed if (folder / name).is_file()}
    changed = {name: found for name, found in digests.items() if found != computed[name]}
    write_names(folder, Names(naming, {n: d for n, d in changed.items() if n in REWRITTEN}))


def own_names(folder: Path) -> list[str]:
    """Return the names that the groups of a run had before anybody named them."""
    return [str(name) for name in read_info(folder / MODEL).extra.get("names", [])]


def naming_in(folder: Path) -> Any:
    """Return what the groups of a run are called, or None if nobody has named them."""
    if not (folder / NAMES).is_file() or not (folder / MODEL).is_file():
        return None
    return read_names(folder, own_names(folder)).naming


def renamed_files(folder: Path) -> dict[str, str]:
    """Return the digests of the files of a run that were written again with names."""
    if not (folder / NAMES).is_file() or not (folder / MODEL).is_file():
        return {}
    return read_names(folder, own_names(folder)).files


def _write_computed(folder: Path, result: Any, written: dict[str, Any]) -> None:
    story = result.story
    extra = {"names": [group.name for group in story.whole], **result.extra}
    documents = result.documents
    save(result.pipeline, folder / MODEL, extra=extra, fingerprint=documents.fingerprint)
    for name, table in tables_of(result, written["format"]).items():
        write_table(table, folder / name, safe=written["safe_csv"])
    lines = [to_json(record) for record in getattr(result.model, "history_", ())]
    (folder / TRACE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if written["report"]:
        write_page(result, folder / REPORT, full=written["full"])
    # Names of files need not be text; the escapes are those of JSON, and lead back to the file.
    told = _run_json(result, folder, written)
    (folder / RUN).write_text(told, encoding="utf-8", errors="backslashreplace")


def write_page(result: Any, path: Path, *, full: bool = False) -> None:
    """Write the page about a result, with all texts if it shall be full."""
    if result.page is None:
        pages.write_report(result.story, path, full=full)
        return
    if full:
        raise ValueError(f"full: the page of coem {result.verb} has no texts to be packed")
    result.page(result.story, path)


def as_table(assignments: Any, more: dict[str, Any] | None = None) -> Any:
    """Return the groups of rows as a table, and more columns after them."""
    columns = (vars(assignments) | (more or {})).items()
    return pa.table({name: pa.array(values.tolist(), from_pandas=True) for name, values in columns})


def clusters(story: Any) -> Any:
    """Return the table of the groups; words and ids are lists, for they may hold blanks."""
    views = list(dict.fromkeys(view for group in story.whole for view in group.words))
    columns: dict[str, list[Any]] = {
        "label": [group.label for group in story.whole],
        "name": [group.name for group in story.whole],
        "size": [group.size for group in story.whole],
        "empty": [group.empty for group in story.whole],
        "share": [group.share for group in story.whole],
    }
    for view in views:
        for kind in ("discriminating", "descriptive"):
            columns[f"{kind}_{view}"] = [
                [str(word) for word, *_ in getattr(g.words[view], kind)] for g in story.whole
            ]
    ids = story.assignments.id  # those of documents are cut to be shown
    columns["examples"] = [[ids[d.row] for d in g.typical] for g in story.whole]
    columns["trust"] = [trust_of(group) for group in story.whole]
    return pa.table(columns)


def trust_of(group: Any) -> float | None:
    """Return the trust of a group, from 0 to 1, or None if it is not known."""
    trust = None if group.stability is None else group.stability["trust"]
    return None if trust is None else float(trust)


# -- run.json -----------------------------------------------------------------------------------


def to_json(value: Any, *, ensure_ascii: bool = False, indent: int | None = None) -> str:
    """Return anything as JSON; what is no number is null."""
    return json.dumps(plain(value), ensure_ascii=ensure_ascii, allow_nan=False, indent=indent)


def _run_json(result: Any, folder: Path, written: dict[str, Any]) -> str:
    documents = result.documents
    told = {
        "schema": SCHEMA,
        "verb": result.verb,
        "arguments": recorded(result.settings),
        "written": written,
        "source": documents.path,
        "called": documents.called,
        "fingerprint": documents.fingerprint,
        "inputs": _inputs(result),
        "rows": len(documents),
        "bad_rows": documents.n_bad,
        "seed": result.settings["seed"],
        "versions": versions(recorded(result.settings)),
        "seconds": round(result.seconds, 3),
        "result": result.figures,
        "stability": result.story.stability,
        "held_out": _held_out(result.story),
        "files": {path.name: digest(path) for path in sorted(folder.iterdir())},
    }
    return to_json(told, indent=2) + "\n"


def _inputs(result: Any) -> dict[str, str]:
    """Return the digests of the files of vectors, by view, of that of the labels, and an encoder's.

    That of an encoder is of what it says of known sentences, and of its files.
    """
    settings = recorded(result.settings)
    views = settings.get("views", {}).items()
    files = {view: spec for view, spec in views if str(spec).endswith(".npy")}
    files |= {LABELS: settings["labels"]} if settings.get("labels") else {}
    found = {view: digest(Path(file)) for view, file in files.items()}
    known = known_encoder(result.reader)
    return found if known is None else {**found, ENCODER: known}


def _held_out(story: Any) -> Any:
    """Return what held-out labels said, which no one could find out again without new fits."""
    return story.truth if story.truth is not None and story.truth.held_out else None


def known_as(told: dict[str, Any]) -> tuple[str | None, str]:
    """Return what a run called its documents, and what they are known by under another name."""
    return told.get("called"), told["fingerprint"]


def versions(settings: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the versions of what the result depends on, with the library of an encoder."""
    encoder = (settings or {}).get("encoder")
    names = ["coem", "numpy", "scipy", "scikit-learn", "pyarrow"]
    names += [encoder.partition(":")[0]] if isinstance(encoder, str) else []
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
    "written": dict,
    "fingerprint": str,
    "rows": int,
    "versions": dict,
    "result": dict,
    "files": dict,
}


def _kinds(told: dict[str, Any]) -> dict[str, type]:
    return {key: type(value) for key, value in told.items()}
