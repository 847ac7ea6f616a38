"""The folder of a run: always the same names, written whole or not at all."""

import json
import platform
import shutil
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa

from coem import report as pages
from coem.io import new_file
from coem.io.regular import is_special
from coem.io.table_parts import write_tables
from coem.kernels import instruction_set
from coem.models import read_info, save
from coem.recipes.defaults import FORMATS
from coem.recipes.encoders import known_encoder
from coem.recipes.names import NAMES, Names, names_of, place_in, read_names, write_names
from coem.recipes.run_file import (
    ASSIGNMENTS,
    CLUSTERS,
    MODEL,
    REPORT,
    RUN,
    SCHEMA,
    TRACE,
    digest,
    read_run,
)
from coem.recipes.settings import recorded
from coem.report import Naming
from coem.report.story import plain

Tables = Iterable[Any]  # of pyarrow, with the same columns
AT_A_TIME = 1 << 16  # rows
NOT_FULL = "full: the documents do not fit in memory, and the page shows some of them; leave it out"
# Among the inputs of a run, which are views otherwise.
LABELS, ENCODER = "--labels", "--encoder"


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
    found = _write_computed(folder, result.computed or result, written)
    return rewrite(folder, result, result.naming) if result.naming else found


def tables_of(result: Any, format: str) -> dict[str, Tables]:
    """Return the tables of a result by the names of their files, each in parts."""
    own: dict[str, Tables] = {name: [table] for name, table in result.tables.items()}
    if result.journal:  # its rows are appended, and never written again
        return own
    if result.rows is None:
        rows: Tables = [as_table(result.story.assignments, result.columns)]
    else:
        rows = in_parts(result.rows, result.columns)
    return {f"{ASSIGNMENTS}.{format}": rows, CLUSTERS: [clusters(result.story)]} | own


def _write_tables(folder: Path, result: Any, written: dict[str, Any]) -> int:
    """Write the tables of a result, and return how many formulas are in them."""
    found, safe = 0, bool(written.get("safe_csv", False))
    for name, tables in tables_of(result, written.get("format", FORMATS[0])).items():
        n_found = write_tables(tables, place_in(folder, name), safe=safe)
        found += 0 if safe or not name.endswith(".csv") else n_found
    return found


def rewrite(folder: Path, result: Any, naming: Any) -> int:
    """Write the tables and the page of a run again, under names that people gave.

    `result` has `story`, `columns`, `tables` and `page`, like a `Result`. The digests of what
    differs from what the run computed go to names.json, before the first file is replaced: so the
    files are known, whenever the process is stopped. Return what `write_run` does.
    """
    run = read_run(folder)
    earlier = renamed_files(folder, run)
    with TemporaryDirectory() as scratch:
        found = _write_renamed(Path(scratch), result, run)
        made = sorted(Path(scratch).iterdir())
        digests = {path.name: digest(path) for path in made}
        changed = {name: new for name, new in digests.items() if new != run["files"].get(name)}
        places = [place_in(folder, path.name) for path in made]
        write_names(folder, Names(naming, changed, earlier))
        for path, place in zip(made, places, strict=True):
            with path.open("rb") as new, new_file(place) as file:
                shutil.copyfileobj(new, file)
    write_names(folder, Names(naming, changed))
    return found


def _write_renamed(folder: Path, result: Any, run: dict[str, Any]) -> int:
    """Write the tables and the page of a run."""
    found = _write_tables(folder, result, run["written"])
    if run["written"].get("report", REPORT in run["files"]):
        write_page(result, folder / REPORT, full=bool(run["written"].get("full", False)))
    return found


def own_names(folder: Path) -> list[str]:
    """Return the names that the groups of a run had before any was named by hand."""
    return names_of(read_info(folder / MODEL))


def naming_in(folder: Path) -> Any:
    """Return what the groups of a run are called, or None if they have no given names."""
    if not (folder / NAMES).is_file() or not (folder / MODEL).is_file():
        return None
    return read_names(folder, own_names(folder)).naming


def renamed_files(folder: Path, run_json: dict[str, Any]) -> dict[str, str]:
    """Return the digests of the files of a run that were written again with names.

    `run_json` is the content of run.json. The files themselves are checked, because one may
    not have been written again.
    """
    same = run_json["files"].keys() - changed_files(folder, run_json).keys()
    found = {name: digest(folder / name) for name in sorted(same)}
    return {name: now for name, now in found.items() if now != run_json["files"][name]}


def changed_files(folder: Path, run_json: dict[str, Any]) -> dict[str, str]:
    """Return which files of a run are no longer what it wrote, and what became of them.

    `run_json` is the content of run.json. Files with names that people gave are in names.json.
    """
    found, names = {}, _names_in(folder)
    for name, was in sorted(run_json["files"].items()):
        path = folder / name
        if not path.is_file():
            found[name] = "is not a regular file" if is_special(path) else "is gone"
        elif digest(path) not in (was, names.files.get(name), names.earlier.get(name)):
            found[name] = "was changed after the run"
    return found


def _names_in(folder: Path) -> Names:
    if not (folder / NAMES).is_file() or not (folder / MODEL).is_file():
        return Names(Naming(()))
    return read_names(folder, own_names(folder))


def _write_computed(folder: Path, result: Any, written: dict[str, Any]) -> int:
    story = result.story
    extra = {"names": [group.name for group in story.whole], **result.extra}
    documents = result.documents
    save(result.pipeline, folder / MODEL, extra=extra, fingerprint=documents.fingerprint)
    found = _write_tables(folder, result, written)
    lines = [to_json(record) for record in getattr(result.model, "history_", ())]
    (folder / TRACE).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    if written["report"]:
        write_page(result, folder / REPORT, full=written["full"])
    # Names of files need not be text; the escapes are those of JSON, and lead back to the file.
    text = _run_json(result, folder, written)
    (folder / RUN).write_text(text, encoding="utf-8", errors="backslashreplace")
    return found


def write_page(result: Any, path: Path, *, full: bool = False) -> None:
    """Write the page about a result, with all texts if it shall be full."""
    if full and getattr(result.story, "sampled", None):
        raise ValueError(NOT_FULL)
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


def in_parts(assignments: Any, more: dict[str, Any] | None = None) -> Tables:
    """Yield the groups of very many rows as tables, one after the other; their ids are read now."""
    columns = vars(assignments) | (more or {})
    n_rows = len(columns["label"])
    kinds = {name: _kind(values) for name, values in columns.items()}
    for lo in range(0, n_rows, AT_A_TIME):
        parts = {name: values[lo : lo + AT_A_TIME] for name, values in columns.items()}
        arrays = {
            name: pa.array(_listed(part), kinds[name], from_pandas=True)
            for name, part in parts.items()
        }
        yield pa.table(arrays)


def _listed(values: Any) -> list[Any]:
    found: list[Any] = values if isinstance(values, list) else values.tolist()
    return found


def _kind(values: Any) -> Any:
    """Return the type of a column in Arrow: the same in all parts."""
    if not isinstance(values, np.ndarray):
        return pa.string()
    if values.dtype != object:
        return pa.from_numpy_dtype(values.dtype)
    first = next((value for value in values if value is not None), None)
    return pa.array([first]).type


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
    """Return anything as JSON; NaN and infinity are null."""
    return json.dumps(plain(value), ensure_ascii=ensure_ascii, allow_nan=False, indent=indent)


def _run_json(result: Any, folder: Path, written: dict[str, Any]) -> str:
    documents = result.documents
    content = {
        "schema": SCHEMA,
        "verb": result.verb,
        "arguments": recorded(result.settings),
        "call": result.call,
        "written": written,
        "source": documents.path,
        "called": documents.called,
        "fingerprint": documents.fingerprint,
        "inputs": _inputs(result),
        "rows": len(documents),
        "bad_rows": documents.n_bad,
        "seed": result.settings["seed"],
        "versions": versions(recorded(result.settings)),
        "instruction_set": instruction_set(),
        "seconds": round(result.seconds, 3),
        "result": result.figures,
        "stability": result.story.stability,
        "held_out": _held_out(result.story),
        "files": {path.name: digest(path) for path in sorted(folder.iterdir())},
    }
    return to_json(content, indent=2) + "\n"


def _inputs(result: Any) -> dict[str, str]:
    """Return the digests of the files of vectors, by view, of that of the labels, and an encoder's.

    That of an encoder is of what it says of known sentences, and of its files.
    """
    found = files_read(result.settings)
    known = known_encoder(result.reader)
    return found if known is None else {**found, ENCODER: known}


def files_read(settings: dict[str, Any]) -> dict[str, str]:
    """Return the digests of the files that settings name, beside the documents."""
    given = recorded(settings)
    views = given.get("views", {}).items()
    files = {view: spec for view, spec in views if str(spec).endswith(".npy")}
    files |= {LABELS: given["labels"]} if given.get("labels") else {}
    return {name: digest(Path(file)) for name, file in files.items()}


def _held_out(story: Any) -> Any:
    """Return what held-out labels said, which cannot be computed again without new fits."""
    return story.truth if story.truth is not None and story.truth.held_out else None


def known_as(run_json: dict[str, Any]) -> tuple[str | None, str]:
    """Return the name that a run gave its documents, and their digest."""
    return run_json.get("called"), run_json["fingerprint"]


def versions(settings: dict[str, Any] | None = None) -> dict[str, str]:
    """Return the versions of what the result depends on, with the library of an encoder."""
    encoder = (settings or {}).get("encoder")
    names = ["coem", "numpy", "scipy", "scikit-learn", "pyarrow"]
    names += [encoder.partition(":")[0]] if isinstance(encoder, str) else []
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
