"""``coem info``: what a file holds."""

from pathlib import Path
from typing import Any

import click

from coem.cli._options import RunPath, config_option, reading_options, talk_options
from coem.cli._talk import Talk, table

TABLES = ("groups", "classes", "topics")  # of a result: clusters.csv has them, to be read

EXAMPLE = """\b
Examples:
  coem info posts.csv
  coem info groups/model.coem
  coem info groups
  coem info posts.corpus
"""


@click.command("info", epilog=EXAMPLE)
@click.argument("source", metavar="FILE|MODEL|RUN|CORPUS", type=RunPath())
@reading_options
@config_option
@talk_options
def command(**options: Any) -> None:
    """Show the columns of a file and the views guessed from them, or what a model is made of.

    Of a corpus, show its views, its columns and where its rows come from.
    """
    from coem.io.regular import is_special
    from coem.recipes.run_file import RUN
    from coem.stored import is_corpus

    talk = Talk(quiet=options["quiet"], as_json=options["as_json"])
    path = Path(options["source"])
    if (path / RUN).is_file() or is_special(path / RUN):
        _of_run(path, talk)
    elif is_corpus(path):
        _of_corpus(path, talk)
    elif path.suffix == ".coem":
        _of_model(path, talk)
    else:
        _of_table(options, talk)


def _of_run(path: Path, talk: Talk) -> None:
    from coem.recipes.run_file import read_run

    run_json = read_run(path)
    rows = [[key, _short(run_json[key])] for key in ("verb", "source", "rows", "seed", "seconds")]
    result = run_json["result"].items()
    rows += [[key, _short(value)] for key, value in result if key not in TABLES]
    talk.result(table(["run", str(path)], rows), run_json)


def _of_corpus(path: Path, talk: Talk) -> None:
    from coem import open_corpus

    corpus = open_corpus(path)
    manifest = corpus.manifest
    sources = [source for one in manifest.ingests for source in one.get("sources", [])]
    names = [str(source.get("name")) for source in sources if isinstance(source, dict)]
    data = {
        "rows": len(corpus),
        "shards": len(corpus.shards),
        "bytes": corpus.n_bytes,
        "columns": corpus.columns,
        "ids": manifest.columns.get("id"),
        "labels": manifest.columns.get("label"),
        "ingests": len(manifest.ingests),
        "sources": names,
        "digest": corpus.digest,
        "views": [vars(view) for view in corpus.views],
    }
    rows = [[key, _short(value)] for key, value in data.items() if key != "views"]
    views = [[v.name, v.width, "sparse" if v.sparse else "dense", v.dtype] for v in corpus.views]
    head = ["view", "columns", "kind", "numbers"]
    talk.result(f"{table(['corpus', str(path)], rows)}\n\n{table(head, views)}", data)


def _of_model(path: Path, talk: Talk) -> None:
    from coem import read_info
    from coem.io.regular import no_file

    if not path.is_file():
        raise ValueError(no_file(path))
    info = vars(read_info(path))
    rows = [["written by", f"coem {info['versions']['coem']}"], ["size", f"{info['size']:,} bytes"]]
    parts = info["summary"].get("steps", [info["summary"]])
    rows += [[key, _short(value)] for part in parts for key, value in part.items()]
    rows += [[key, _short(value)] for key, value in info["extra"].items()]
    if info["left_out"]:
        rows.append(["left out", ", ".join(info["left_out"])])
    talk.result(table(["model", str(path)], rows), info)


def _of_table(options: dict[str, Any], talk: Talk) -> None:
    from coem.recipes.columns import HEADER, look_at_columns
    from coem.recipes.dates import find_dates
    from coem.recipes.documents import read_source, tell_reading
    from coem.recipes.settings import READING
    from coem.text.guess import in_words

    reading = {name: options[name] for name in READING if name in options}
    found = read_source(options["source"], **reading)
    tell_reading(found, talk)
    documents = _documents(found, options["source"], talk)
    date, _ = find_dates("auto", documents, talk)
    taken = look_at_columns(documents, talk, date=date)
    rows = []
    for name, column in zip(found.data.column_names, found.data.columns, strict=True):
        example = next((v for v in column.slice(0, 50).to_pylist() if v not in (None, "")), "")
        rows.append([name, in_words(column.type), _n_empty(column), _short(example)])
    reasons = {name: {"taken_as": what, "why": why} for name, what, why in taken}
    keys = ("name", "holds", "empty", "example")
    data = {
        "rows": found.data.num_rows,
        "columns": [dict(zip(keys, r, strict=True)) | reasons[r[0]] for r in rows],
        "bad_rows": len(found.bad),
    }
    text = "\n".join(
        [
            f"{found.data.num_rows:,} rows, {len(found.bad):,} of them bad"
            if found.bad
            else f"{found.data.num_rows:,} rows",
            "",
            table(["column", "holds", "empty", "for example"], rows),
            "",
            table(HEADER, taken),
        ]
    )
    talk.result(text, data)


def _documents(found: Any, source: str, talk: Talk) -> Any:
    """Return the rows of a table, also if the guessed column of ids is wrong."""
    from coem.recipes.documents import NO_IDS, as_documents

    try:
        return as_documents(found, source, talk)
    except ValueError as error:
        talk.note(str(error))
        return as_documents(found, source, talk, id=NO_IDS)


def _n_empty(column: Any) -> int:
    """Return how many cells have nothing in them: no value, blanks, or a list without items."""
    import pyarrow.compute as pc

    n_empty: int = column.null_count
    kind = str(column.type)
    if kind in ("string", "large_string"):
        n_empty += pc.sum(pc.equal(pc.utf8_trim_whitespace(column), "")).as_py() or 0
    elif kind.startswith(("list", "large_list")):
        n_empty += pc.sum(pc.equal(pc.list_value_length(column), 0)).as_py() or 0
    elif kind in ("double", "float"):
        n_empty += pc.sum(pc.is_nan(column)).as_py() or 0
    return n_empty


def _short(value: Any) -> Any:
    if isinstance(value, int | float):
        return value
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."
