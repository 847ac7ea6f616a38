"""Labels in a column: which column, and which rows have one."""

from collections import Counter
from typing import Any

import numpy as np

from coem.recipes.documents import Documents, column_of
from coem.recipes.listener import Listener

FOLDERS = "label"  # the column that says in which sub-folder a text is
# What other programs write for nothing, beside nan in any case; "none" and "na" may be classes.
NO_LABELS = frozenset(("-1", "-1.0", "None", "null", "NULL", "NA", "<NA>", "N/A", "n/a"))


def label_of(label: str | None, documents: Documents, listener: Listener) -> str | None:
    """Return the column of the classes: what was asked for, or sub-folders of a folder of texts."""
    if label is not None or not documents.are_in_a_folder:
        return label
    folders = set(documents.table.column(FOLDERS).to_pylist()) - {None}
    if len(folders) < 2:
        return None
    listener.note(f"the {len(folders):,} sub-folders are the classes (label={FOLDERS!r})")
    return FOLDERS


def labels_of(documents: Documents, column: str, listener: Listener | None = None) -> np.ndarray:
    """Return the labels of the rows, "" where there is none; say which words mean that."""
    values = column_of(documents.table, documents.source, column, "labels")
    labels = ["" if v is None or v != v else str(v).strip() for v in values]
    taken = Counter(label for label in labels if label in NO_LABELS or label.lower() == "nan")
    if taken and listener is not None:
        which = ", ".join(f"{label!r} in {n:,} rows" for label, n in taken.most_common())
        listener.note(
            f"taken as no label in column {column!r}: {which}; if that is a class, rename it"
        )
    return np.array(["" if label in taken else label for label in labels], dtype=object)


def check_labels(labels: np.ndarray, column: str) -> None:
    """Raise unless there are two classes or more, and the column is not an id or a text."""
    classes = sorted(set(labels) - {""})
    if not classes:
        raise ValueError(
            f"no row has a label in column {column!r}; fill in some (put texts into sub-folders), "
            "or use coem.cluster"
        )
    if len(classes) == 1:
        raise ValueError(
            f"all labels in column {column!r} are {classes[0]!r}; there must be two classes or more"
        )
    if len(classes) > len(labels) / 2 and len(classes) > 20:
        raise ValueError(
            f"column {column!r} has {len(classes)} different labels in {len(labels)} rows; is it "
            "an id or a text?"
        )


def needed_label(label: Any, documents: Documents, listener: Listener) -> str:
    """Return the column of the classes; only a folder may have it without being told."""
    if label is None and not documents.are_in_a_folder:
        raise ValueError("name the column of the labels: label='COLUMN'")
    return label_of(label, documents, listener) or FOLDERS
