"""Links in the other direction: which rows name the id of a row."""

from collections import defaultdict

import numpy as np
import pyarrow as pa

from coem.text._tables import read_ids, read_items
from coem.text.lists import USUAL


def outbound_links(table, spec, id_column, view):
    """Return the links of the rows as arrays of source and target ids.

    Targets need not be rows of the table: they may be rows of another one later.
    """
    ids = read_ids(table, id_column, view)
    seen = {}
    for row, name in enumerate(ids):
        if not name:
            raise ValueError(
                f"view {view!r}, row {row} has no id in column {id_column!r}; inbound links need "
                f"one for every row"
            )
        if name in seen:
            raise ValueError(
                f"view {view!r}, row {row} has the id {name!r} of row {seen[name]} in column "
                f"{id_column!r}; ids must differ"
            )
        seen[name] = row
    separator = spec.get("between", USUAL)
    starts, targets = read_items(table, spec["columns"][0], view, separator)
    sources = np.repeat(np.array(ids, dtype=object), np.diff(starts))
    return {"sources": sources, "targets": np.array(targets.to_pylist(), dtype=object)}


def known_links(links, vocabulary):
    """Return the links from sources that have a column."""
    known = set(vocabulary.tolist())
    kept = np.fromiter((s in known for s in links["sources"]), bool, len(links["sources"]))
    return {name: values[kept] for name, values in links.items()}


def inbound_items(links, ids):
    """Return for each id the sources that link to it, as starts of the rows and an array."""
    by_target = defaultdict(list)
    for source, target in zip(links["sources"], links["targets"], strict=True):
        by_target[target].append(source)
    rows = [by_target.get(name, []) for name in ids]
    starts = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    words = [source for row in rows for source in row]
    return starts, pa.array(words, pa.large_string())
