"""Labels in a column: which column, and which rows have one."""

from collections import Counter
from typing import Any

import numpy as np

from coem.phrases import first_few
from coem.recipes.corpora import label_in
from coem.recipes.documents import Documents, check_column
from coem.recipes.listener import Listener
from coem.text.lists import USUAL, between, split

AS_LIST = ":list"  # after the name of a column of text that holds several labels
FOLDERS = "label"  # the column that says in which sub-folder a text is
# What other programs write for nothing, beside nan in any case; "none" and "na" may be classes.
NO_LABELS = frozenset(("-1", "-1.0", "None", "null", "NULL", "NA", "<NA>", "N/A", "n/a"))


def label_of(label: str | None, documents: Documents, listener: Listener) -> str | None:
    """Return the column of the classes: what was asked for, or sub-folders of a folder of texts."""
    if documents.corpus is not None:
        return label_in(label, documents.corpus)
    if label is not None or not documents.are_in_a_folder:
        return label
    folders = set(documents.table.column(FOLDERS).to_pylist()) - {None}
    if len(folders) < 2:
        return None
    listener.note(f"the {len(folders):,} sub-folders are the classes (label={FOLDERS!r})")
    return FOLDERS


def label_column(label: str, table: Any) -> str:
    """Return the column of ``topics`` or ``topics:list``."""
    bare = label.removesuffix(AS_LIST)
    return bare if label not in table.column_names and bare in table.column_names else label


def labels_of(documents: Documents, label: str, listener: Listener | None = None) -> np.ndarray:
    """Return the labels of the rows, "" where there is none or more than one."""
    return exact(all_labels_of(documents, label, listener))


def exact(labels: np.ndarray) -> np.ndarray:
    """Return labels without those of rows with several."""
    return np.array([found if isinstance(found, str) else "" for found in labels], dtype=object)


def all_labels_of(
    documents: Documents, label: str, listener: Listener | None = None, *, multi: bool = False
) -> np.ndarray:
    """Return the labels of the rows: "" where there is none, a set where there are several.

    Note which words count as no label. With `multi`, refuse a row with several.
    """
    column = label_column(label, documents.table)
    check_column(documents.table.column_names, documents.source, column, "labels")
    values, codes = _each_once(documents.table.column(column))
    rows = _lists(values, split_all=column != label)
    if column == label and listener is not None:
        _tell_lists(rows, column, listener)
    taken: Counter[str] = Counter()
    for row, n_rows in zip(rows, np.bincount(codes, minlength=len(rows)).tolist(), strict=True):
        taken.update({name: row.count(name) * n_rows for name in row if _is_none(name)})
    if taken and listener is not None:
        which = ", ".join(f"{name!r} in {n:,} rows" for name, n in taken.most_common())
        listener.note(
            f"taken as no label in column {column!r}: {which}; if that is a class, rename it"
        )
    kept = [list(dict.fromkeys(name for name in row if name not in taken)) for row in rows]
    labels = np.empty(len(kept), dtype=object)
    labels[:] = [frozenset(row) if len(row) > 1 else "".join(row) for row in kept]
    labels = labels[codes]
    _tell_several(documents, column, labels, listener, multi)
    return labels


def _each_once(column: Any) -> tuple[list[Any], np.ndarray]:
    """Return the different values of a column, and for each row the place of its own.

    So a string is in memory once, however many rows have it.
    """
    places: dict[str, int] = {}
    values: list[Any] = []
    codes = np.empty(len(column), dtype=np.int32)
    row = 0
    for chunk in column.chunks:
        for value in chunk.to_pylist():
            place = places.setdefault(repr(value), len(values))
            if place == len(values):
                values.append(value)
            codes[row] = place
            row += 1
    return values, codes


def _lists(values: list[Any], *, split_all: bool) -> list[list[str]]:
    """Return the labels of every row as a list; split texts if `split_all` or all have brackets."""
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    brackets = bool(texts) and all(t.startswith("[") and t.endswith("]") for t in texts)
    separator = between(texts) if split_all else None
    rows = []
    for value in values:
        if value is None or value != value:
            found = []
        elif isinstance(value, list):
            found = [item for item in value if item is not None]
        elif isinstance(value, str) and (brackets or separator):
            found = split(value, separator or USUAL)
        else:
            found = [value]
        names = [str(item).strip() for item in found]
        rows.append([name for name in names if name])
    return rows


def _tell_lists(rows: list[list[str]], column: str, listener: Listener) -> None:
    """Say that labels look like lists, if bars or semicolons in them part other labels."""
    names = {row[0] for row in rows if len(row) == 1}
    parts = {name: split(name) for name in sorted(names) if len(split(name)) > 1}
    met = Counter(part for found in parts.values() for part in found)
    alike = [name for name in parts if any(p in names or met[p] > 1 for p in parts[name])]
    if alike:
        listener.note(
            f"labels in column {column!r} look like lists, such as {alike[0]!r:.60}, and each is "
            f"taken as a class of its own; read them as lists with label='{column}{AS_LIST}'"
        )


def _is_none(name: str) -> bool:
    return name in NO_LABELS or name.lower() == "nan"


def _tell_several(
    documents: Documents, column: str, labels: np.ndarray, listener: Listener | None, multi: bool
) -> None:
    """Say that some rows have several labels, or refuse it."""
    several = [row for row, found in enumerate(labels) if not isinstance(found, str)]
    if not several:
        return
    first = several[0]
    names = first_few(f"{name:.60}" for name in sorted(labels[first]))
    shown = f"row {documents.ids[first]:.60} has {names}"
    if multi:
        raise ValueError(
            f"{documents.source}, column {column!r}: {len(several):,} rows have several labels, "
            f"the first, {shown}; a mixture gives each row one class, so that it cannot learn "
            "several at once. Without multi, such a row is in one of its classes; or classify once "
            "for each label"
        )
    if listener is not None:
        listener.note(
            f"{len(several):,} rows have several labels in column {column!r}, and are taken to be "
            f"in one of these classes; the first, {shown}"
        )


def check_labels(labels: np.ndarray, column: str) -> None:
    """Raise unless there are two classes or more, and the column is not an id or a text."""
    sets = [{found} if isinstance(found, str) else found for found in set(labels.tolist())]
    classes = sorted(set().union(*sets) - {""})
    if not classes:
        raise ValueError(
            f"no row has a label in column {column!r}; fill in some (put texts into sub-folders), "
            "or use coem.cluster"
        )
    if not any(isinstance(found, str) and found for found in set(labels.tolist())):
        raise ValueError(
            f"every row with a label in column {column!r} has several, and such rows only say "
            "which classes a row may be in; give some rows one label, so that there is something "
            "to learn from"
        )
    if len(classes) == 1:
        raise ValueError(
            f"all labels in column {column!r} are {classes[0]!r:.60}; there must be two classes or "
            "more"
        )
    if len(classes) > len(labels) / 2 and len(classes) > 20:
        raise ValueError(
            f"column {column!r} has {len(classes)} different labels in {len(labels)} rows; is it "
            "an id or a text?"
        )


def needed_label(label: Any, documents: Documents, listener: Listener) -> str:
    """Return the column of the classes; you can leave it out only for a folder."""
    if documents.corpus is not None:
        label = label_in(label, documents.corpus)
    if label is None and not documents.are_in_a_folder:
        raise ValueError("name the column of the labels: label='COLUMN'")
    return label_of(label, documents, listener) or FOLDERS
