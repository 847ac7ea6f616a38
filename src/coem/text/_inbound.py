"""Links in the other direction: which rows name the id of a row."""

from collections import defaultdict

import numpy as np
import pyarrow as pa

from coem.text._tables import read_ids, read_items
from coem.text.lists import USUAL


def outbound_links(parts, spec, id_column, view):
    """Return the links of the rows as arrays of source and target ids.

    Targets need not be rows of the table: they may be rows of another one later. The table comes in
    parts; all of its links are in memory.
    """
    seen, sources, targets = {}, [], []
    for table in parts:
        ids = read_ids(table, id_column, view)
        _check_ids(ids, seen, id_column, view)
        separator = spec.get("between", USUAL)
        starts, words = read_items(table, spec["columns"][0], view, separator)
        sources.append(np.repeat(np.array(ids, dtype=object), np.diff(starts)))
        targets.append(np.array(words.to_pylist(), dtype=object))
    return {"sources": np.concatenate(sources), "targets": np.concatenate(targets)}


def _check_ids(ids, seen, id_column, view):
    """Refuse rows without an id, or with that of a row that was seen before."""
    for row, name in enumerate(ids, start=len(seen)):
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


def known_links(links, vocabulary):
    """Return the links from sources that have a column."""
    known = set(vocabulary.tolist())
    kept = np.fromiter((s in known for s in links["sources"]), bool, len(links["sources"]))
    return {name: values[kept] for name, values in links.items()}


def inbound_items(links, ids):
    """Return for each id the sources that link to it, as starts of the rows and an array."""
    by_target, wanted = defaultdict(list), set(ids)
    for source, target in zip(links["sources"], links["targets"], strict=True):
        if target in wanted:
            by_target[target].append(source)
    rows = [by_target.get(name, []) for name in ids]
    starts = np.append(0, np.cumsum([len(row) for row in rows])).astype(np.int64)
    words = [source for row in rows for source in row]
    return starts, pa.array(words, pa.large_string())
