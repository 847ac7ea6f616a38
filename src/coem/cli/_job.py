"""From a file and some options to views: what all verbs that read documents begin with."""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from coem.cli._program import PLACE
from coem.cli._talk import Talk

FOLDERS = "label"  # the column that says in which sub-folder a text is
# What other programs write for nothing, beside nan in any case; "none" and "na" may be classes.
NO_LABELS = frozenset(("-1", "-1.0", "None", "null", "NULL", "NA", "<NA>", "N/A", "n/a"))
EXCERPT = 2000  # characters of a document that are kept to be shown


@dataclass(frozen=True)
class Documents:
    """The rows of a file, and what they are called."""

    table: Any  # a pyarrow.Table
    source: str
    fingerprint: str
    ids: list[str]
    id_column: str | None  # where they come from; None: they are numbers
    n_bad: int

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.ids)


def read_source(options: dict[str, Any]) -> Any:
    """Return the table that the options name, and its bad rows."""
    from coem.io.tables import read_table

    reading = {name: options[name] for name in ("encoding", "delimiter", "skip_bad")}
    # A verb without the option knows no plain text.
    plain = "plain" in options and (options["plain"] or is_text_file(options["source"]))
    return read_table(options["source"], plain=plain, **reading)


def is_text_file(source: str) -> bool:
    """Return whether a name is that of a plain text, packed or not."""
    return source.lower().endswith((".txt", ".txt.gz", ".txt.zst")) and not os.path.isdir(source)


def read_documents(options: dict[str, Any], talk: Talk) -> Documents:
    """Return the rows of the file that the options name."""
    found = read_source(options)
    remember(found)
    if found.bad:
        first, why = found.bad[0]
        talk.note(f"{len(found.bad)} bad rows were left out; the first is row {first}: {why}")
    ids, column = _ids(found, options.get("id_column"), options.get("id_guess") or "id", talk)
    return Documents(found.data, found.source, found.fingerprint, ids, column, len(found.bad))


def remember(found: Any) -> None:
    """Let errors name rows as the file that was read last has them."""
    context = click.get_current_context(silent=True)
    if context is not None:
        context.meta[PLACE] = lambda row: f"{found.source}, row {found.number(row)}"


def column_of(table: Any, source: str, name: str, what: str) -> list[Any]:
    """Return a column, or say which ones there are."""
    if name not in table.column_names:
        names = ", ".join(table.column_names)
        raise ValueError(f"{source} has no column {name!r} for the {what}; it has {names}")
    values: list[Any] = table.column(name).to_pylist()
    return values


def _ids(found: Any, column: str | None, guess: str, talk: Talk) -> tuple[list[str], str | None]:
    """Return what rows are called, and the column that says so: else their numbers from 1 on."""
    table, source = found.data, found.source
    numbers = [str(i + 1) for i in range(table.num_rows)]
    given = column is not None
    if column is None:
        column = next((c for c in table.column_names if c.lower() == guess.lower()), None)
    if column is None:
        return numbers, None
    ids = ["" if v is None else str(v) for v in column_of(table, source, column, "ids")]
    problem = _ambiguous(ids, found.number)
    if problem is None:
        return ids, column
    if given:
        raise ValueError(
            f"column {column!r} of {source} cannot be the ids: {problem}; mend it, or choose "
            "another column with --id"
        )
    talk.note(f"column {column!r} is not used for the ids: {problem}")
    return numbers, None


def _ambiguous(ids: list[str], number: Callable[[int], int]) -> str | None:
    """Return why these cannot tell rows apart, or None if they can."""
    seen: dict[str, int] = {}
    for row, name in enumerate(ids):
        if not name:
            return f"row {number(row)} has none"
        if name in seen:
            return f"rows {number(seen[name])} and {number(row)} are both called {name!r}"
        seen[name] = row
    return None


# -- views --------------------------------------------------------------------------------------


def text_views(options: dict[str, Any], documents: Documents, **settings: Any) -> Any:
    """Return the transformer that the options ask for."""
    from coem.text import TextViews

    words = options["stop_words"]
    return TextViews(
        chosen_views(options, documents.table.column_names) or None,
        id=documents.id_column,
        stop_words=None if words == "none" else words,
        min_df=options["min_df"],
        max_df=options["max_df"],
        max_features=options["max_features"],
        max_length=options.get("max_length") or None,
        ngram_range=(1, options["ngrams"]),
        n_jobs=threads(options),
        **settings,
    )


def chosen_views(options: dict[str, Any], columns: list[str]) -> dict[str, Any]:
    """Return view -> specification, as `TextViews` takes it, from --text and --view."""
    views: dict[str, Any] = {}
    if options["text"]:
        views["text"] = list(options["text"]) if len(options["text"]) > 1 else options["text"][0]
    for item in options["view"]:
        name, found, spec = item.partition("=")
        if not (name and found and spec):
            raise click.BadParameter(f"{item!r} is not NAME=COLUMN", param_hint="--view")
        if not name.isprintable():  # bytes that are no UTF-8, too: no file can hold them
            raise click.BadParameter(f"{name!r} is no name to print", param_hint="--view")
        if name in views:
            raise click.BadParameter(f"there are two views {name!r}", param_hint="--view")
        views[name] = spec if spec.endswith(".npy") else _columns(spec, columns)
    return views


def _columns(spec: str, known: list[str]) -> str | list[str]:
    """Return the columns of ``title+body`` or ``a+b:number``, where the kind is that of all."""
    from coem.text.specs import KINDS

    if spec in known or spec.rpartition(":")[0] in known:
        return spec
    parts = spec.split("+")
    kinds = [part.rpartition(":")[2] for part in parts]
    if kinds[-1] in KINDS:
        pairs = zip(parts, kinds, strict=True)
        parts = [part if kind in KINDS else f"{part}:{kinds[-1]}" for part, kind in pairs]
    return parts if len(parts) > 1 else parts[0]


def shown_texts(documents: Documents, reader: Any) -> list[str]:
    """Return what can be shown of every row: its first text columns, cut short."""
    texts = [spec for spec in reader.views_.values() if spec["kind"] == "text"]
    columns = [name for spec in texts for name in spec["columns"]]
    if not columns:
        return [""] * len(documents)
    columns = sorted(dict.fromkeys(columns), key=lambda name: name.lower() != "title")
    parts = [documents.table.column(name).to_pylist() for name in columns]
    rows = zip(*parts, strict=True)
    return ["  ".join(str(p) for p in row if p)[:EXCERPT] for row in rows]


def threads(options: dict[str, Any]) -> int:
    """Return the number of threads: what was asked for, or all processors."""
    return options.get("threads") or -1


def label_of(options: dict[str, Any], documents: Documents, talk: Talk) -> str | None:
    """Return the column of the classes: what was asked for, or sub-folders of a folder of texts."""
    if options["label"] is not None or not os.path.isdir(options["source"]):
        return options["label"]
    folders = set(documents.table.column(FOLDERS).to_pylist()) - {None}
    if len(folders) < 2:
        return None
    talk.note(f"the {len(folders):,} sub-folders are the classes (--label {FOLDERS})")
    return FOLDERS


def labels_of(documents: Documents, column: str, talk: Talk | None = None) -> np.ndarray:
    """Return the labels of the rows, "" where there is none; say which words mean that."""
    values = column_of(documents.table, documents.source, column, "labels")
    labels = ["" if v is None or v != v else str(v).strip() for v in values]
    taken = Counter(label for label in labels if label in NO_LABELS or label.lower() == "nan")
    if taken and talk is not None:
        which = ", ".join(f"{label!r} in {n:,} rows" for label, n in taken.most_common())
        talk.note(f"taken as no label in column {column!r}: {which}; if that is a class, rename it")
    return np.array(["" if label in taken else label for label in labels], dtype=object)


def to_views(reader: Any, documents: Documents, talk: Talk, leave_out: str | None = None) -> Any:
    """Return the views of the documents, and say what they are; labels are not guessed a view."""
    from coem.families import as_family

    table = documents.table
    if leave_out:
        column_of(table, documents.source, leave_out, "labels")
        table = table.drop_columns([leave_out])
    views = reader.fit_transform(table)
    for name, family in _dense(reader).items():
        as_family(family).check(views[name], name)  # while all rows are here: a fit may see a part
    for sentence in reader.guesses_:
        talk.note(sentence)
    widths = {name: views[name].shape[1] for name in views.names}
    sizes = ", ".join(f"{name} ({n:,} column{'' if n == 1 else 's'})" for name, n in widths.items())
    talk.note(f"{len(documents):,} rows; views: {sizes}")
    empty = int(views.empty.all(axis=1).sum())
    if empty:
        talk.note(f"{empty:,} rows are empty in every view: nothing is known of where they belong")
    return views


def families(reader: Any) -> dict[str, Any]:
    """Return the families of the views: numbers are Gaussian, and vectors are directions.

    Where long documents were shortened the pseudo-counts go down with them: they would drown a
    small collection otherwise.
    """
    from coem.families import Multinomial

    shortened = {name: Multinomial(alpha=kept) for name, kept in reader.kept_.items()}
    return dict.fromkeys(reader.views_, "auto") | _dense(reader) | shortened


def _dense(reader: Any) -> dict[str, str]:
    """Return the families of the dense views."""
    kinds = {
        "number": "gaussian",
        **dict.fromkeys(("vector", "array", "embed"), "von_mises_fisher"),
    }
    views = reader.views_.items()
    return {name: kinds[spec["kind"]] for name, spec in views if spec["kind"] in kinds}


def check_size(k: int, views: Any) -> None:
    """Refuse more groups than there are rows with anything in them."""
    filled = int((~views.empty.all(axis=1)).sum())
    if k > filled:
        raise ValueError(
            f"-k {k} groups cannot be made of {filled} rows that are not empty; ask for fewer"
        )
