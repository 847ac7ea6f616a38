"""``coem cluster --stream``: groups of documents that keep coming."""

from pathlib import Path
from typing import Any

import click

from coem.cli._process import STOPPED, will_write
from coem.cli._talk import Talk, table

# Options of coem cluster that a stream has no use for.
ALONE = {
    "label": "--label judges all documents at once",
    "names_from": "--names-from is for a new grouping; groups of a stream keep their names",
    "encoder": "--encoder cannot be kept between two calls",
    "full": "--full would put all documents on the page; a stream shows the latest",
    "resume": "the same call goes on without --resume",
    "checkpoint": "--out keeps the state of a stream; leave --checkpoint out",
}

stream_option = click.option(
    "--stream",
    is_flag=True,
    help="FILE keeps growing, or is a pipe that stays open: find groups in the first documents, "
    "assign all that follow, and add groups that are new. Called again with the same --out, it "
    "goes on.",
)

batch_option = click.option(
    "--batch",
    type=click.IntRange(1),
    metavar="N",
    help="Documents of a batch of --stream. [all of a file, 1000 of stdin]",
)


def run(options: dict[str, Any], talk: Talk) -> None:
    """Follow a stream to its end, and print its groups."""
    from coem.cli import _recipes
    from coem.recipes import stream

    _check(options)
    out = _recipes.place(options)
    options["out"] = out
    will_write(out)
    settings = {name: v for name, v in options.items() if name not in _recipes.OWN | ALONE.keys()}
    pages = {"report": not options["no_report"], "safe_csv": options["safe_csv"]}
    where = {"out": out, "batch": options["batch"], "force": options["force"]}
    n_formulas = 0
    try:
        for found in stream(options["source"], **where, **pages, **settings, listener=talk):
            n_formulas += _formulas([str(name) for name in found.ids])
            if talk.as_json:
                talk.result("", _as_data(found))
    except FileExistsError as error:
        raise _recipes.refused(error) from None
    except KeyboardInterrupt:
        _stopped(out)
        raise
    groups = _groups(out)
    names = [str(group["name"]) for group in groups]
    talk.formulas(0 if _is_safe(out) else n_formulas + _formulas(names))
    if not talk.as_json:
        rows = [[int(g["label"]), int(g["size"]), int(g["since"]), g["name"]] for g in groups]
        talk.result(table(["group", "documents", "since batch", "name"], rows), None)
    note = "" if options["no_report"] else f", the page is {out / 'report.html'}"
    talk.note(f"results in {out}{note}; the same call goes on with documents that come later")


def _check(options: dict[str, Any]) -> None:
    """Refuse, before any work, options that a stream would not use."""
    for name, why in ALONE.items():
        if options.get(name):
            raise click.UsageError(f"--stream: {why}")
    if options["form"] != "csv":
        raise click.UsageError("--stream: rows are appended to a .csv file; leave --format out")
    if options["strict"]:
        raise click.UsageError("--stream: a stream never converges; leave --strict out")


def _stopped(out: Path) -> None:
    """Note what a stream that is stopped has written, as its folder says."""
    from coem.recipes.run_file import RUN, read_run

    if not (out / RUN).is_file():
        return
    number = read_run(out)["result"].get("documents", 0)
    click.get_current_context().meta[STOPPED] = (
        f"{out} has {number:,} documents; the same call goes on with those that come later"
    )


def _as_data(found: Any) -> dict[str, Any]:
    """Return a batch as a line of JSON."""
    rows = found.assignments
    parts = zip(rows.id, rows.label, rows.name, rows.probability, strict=True)
    return {
        "batch": found.number,
        "documents": [
            {"id": str(i), "label": int(label), "name": str(name), "probability": float(p)}
            for i, label, name, p in parts
        ],
        "new": found.new,
        "faded": found.faded,
        "back": found.back,
        "unknown": found.unknown,
        "so_far": found.n_rows,
    }


def _groups(out: Path) -> list[dict[str, Any]]:
    """Return the groups, the largest first, as their table has them."""
    from coem.io.tables import read_table
    from coem.recipes.run_file import CLUSTERS

    data = read_table(out / CLUSTERS).data.to_pylist()
    return sorted(data, key=lambda row: -int(row["size"]))


def _formulas(cells: list[str]) -> int:
    """Return how many cells a spreadsheet would run."""
    import pyarrow as pa

    from coem.io.formulas import n_formulas

    return n_formulas(pa.table({"cell": pa.array(cells, pa.string())}))


def _is_safe(out: Path) -> bool:
    """Return whether the tables of a stream have apostrophes before formulas, as it began."""
    from coem.recipes.run_file import read_run

    return bool(read_run(out)["written"].get("safe_csv", False))
