"""What makes an ingest, and the ids, columns and words of its rows."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from coem.corpus import Corpus
from coem.io.corpus_work import CALL, Work
from coem.io.streams import STDIN
from coem.recipes.corpora import DECIDED, decided
from coem.recipes.defaults import MAX_DF, MIN_DF
from coem.recipes.documents import NO_IDS
from coem.recipes.listener import Listener

LOOKED = "looked"  # in the journal: the fingerprints of the sources
FIXED = {**DECIDED, "label": None, "hash_features": None}  # by the first ingest, and defaults


def names_of(sources: Any) -> list[str]:
    """Return the names of files and folders."""
    names = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    if "" in names:  # such as that of a variable that is not set; it would be the folder one is in
        raise ValueError("the name of a source is empty; name a file, a folder, or - for stdin")
    for name in names:
        if not isinstance(name, str | os.PathLike):
            raise TypeError(
                f"sources are names of files and folders, got {type(name).__name__}; write tables "
                "to files first"
            )
    return [os.fspath(name) for name in names]


def check_appended(settings: dict[str, Any], base: Corpus) -> None:
    """Refuse parameters that the first ingest has fixed, unless they are the same."""
    first = decided(base)
    now = json.loads(json.dumps({name: settings[name] for name in FIXED}))
    for name, default in FIXED.items():
        same = now[name] in (default, first.get(name, default))
        if not same and now[name] != base.manifest.columns.get(name):
            raise ValueError(
                f"{name}: the first ingest to {base.path} has fixed its views; leave {name} out, "
                "or ingest all documents to a new corpus"
            )


def check_label(label: str | None, ids: str | None, settings: dict[str, Any]) -> None:
    """Refuse labels that are the ids, or in a view."""
    if label is None:
        return
    if label == ids:
        raise ValueError(f"column {label!r} cannot be both the ids and the labels; choose another")
    if label in (settings["text"] or ()):
        raise ValueError(f"column {label!r} cannot be both a text and the labels; choose another")


def check_vectors(views: Any) -> None:
    """Refuse views that need an encoder."""
    for view, spec in dict(views or {}).items():
        if str(spec).endswith(":embed"):
            raise ValueError(
                f"view {view!r}: no sentence vectors are made for a corpus; make them a column, "
                "and write 'COLUMN:vector'"
            )


def check_hashing(given: dict[str, Any]) -> None:
    """Refuse parameters that choose words; the default of `min_df` is for vocabularies."""
    for name, default in {"min_df": MIN_DF, "max_df": MAX_DF, "max_features": None}.items():
        if given[name] != default:
            raise ValueError(
                f"{name} chooses words of a vocabulary, and hash_features learns none; "
                f"leave {name} out"
            )
    given["min_df"] = 1


def call_of(names: list[str], settings: dict[str, Any], append: bool) -> dict[str, Any]:
    """Return what makes an ingest, as JSON has it."""
    if not names:
        raise ValueError("there is nothing to ingest; name a file, a folder, or - for stdin")
    if names.count(STDIN) > 1:
        raise ValueError("standard input can be read once")
    kept = {name: value for name, value in settings.items() if name != "threads"}
    known = [{"name": os.path.basename(os.path.abspath(n)), **_size(n)} for n in names]
    call = {"settings": kept, "append": append}
    digest = hashlib.blake2b(json.dumps([call, known]).encode(), digest_size=16).hexdigest()
    files = [os.path.abspath(n) if n != STDIN else n for n in names]
    times = [os.stat(n).st_mtime_ns if os.path.isfile(n) else None for n in names]
    return {**call, "sources": files, "sizes": known, "times": times, CALL: digest}


def _size(name: str) -> dict[str, Any]:
    return {"size": os.path.getsize(name)} if os.path.isfile(name) else {}


def id_column(given: str | None, names: list[str], source: str) -> str | None:
    """Return the column of the ids: what was asked for, or one that is called id."""
    if given is None:
        return next((name for name in names if name.lower() == "id"), None)
    if given in names:
        return given
    if given == NO_IDS:
        return None
    raise ValueError(f"{source} has no column {given!r} for the ids; it has {', '.join(names)}")


def check_ids(
    column: str | None,
    tables: Iterable[Any],
    base: Corpus | None,
    place: Callable[[int], str],
    given: str | None,
    listener: Listener,
) -> str | None:
    """Return the column of the ids if they tell all rows apart, else None or an error.

    Of each id there are eight bytes in memory.
    """
    if column is None:
        return None
    problem = _ambiguous(column, tables, base, place)
    if problem is None:
        return column
    reason, is_empty = problem
    if base is not None:
        raise ValueError(
            f"column {column!r} cannot be the ids: {reason}; mend it, or ingest all documents to a "
            f"new corpus with id='COLUMN' or id='{NO_IDS}'"
        )
    if given is not None or not is_empty:
        raise ValueError(
            f"column {column!r} cannot be the ids: {reason}; mend it, or choose another column "
            f"with id=, or id='{NO_IDS}' to number the rows"
        )
    listener.note(f"column {column!r} is not used for the ids: {reason}")
    return None


def _ambiguous(
    column: str, tables: Iterable[Any], base: Corpus | None, place: Callable[[int], str]
) -> tuple[str, bool] | None:
    """Return why ids cannot tell rows apart, and whether one is empty; None if they can."""
    n_old = 0 if base is None else len(base)
    hashes, first = [], 0
    for table in _both(column, base, tables):
        ids = _as_text(table.column(column))
        empty = next((i for i, name in enumerate(ids) if not name), None)
        if empty is not None and first >= n_old:
            return f"{place(first + empty - n_old)} has none", True
        hashes.append(np.fromiter(map(hash, ids), np.int64, len(ids)))
        first += len(ids)
    every = np.concatenate(hashes)
    every.sort()
    twice = set(every[:-1][every[1:] == every[:-1]].tolist())
    return _twice(_both(column, base, tables), column, twice, n_old, place) if twice else None


def _both(column: str, base: Corpus | None, tables: Iterable[Any]) -> Iterator[Any]:
    """Return the tables of a corpus and the new ones; one at a time is in memory."""
    yield from () if base is None else (shard.table([column]) for shard in base.shards)
    yield from tables


def _twice(
    tables: Iterable[Any],
    column: str,
    twice: set[int],
    n_old: int,
    place: Callable[[int], str],
) -> tuple[str, bool] | None:
    """Return which rows have one id, among those whose hash is there twice."""
    seen: dict[str, int] = {}
    first = 0
    for table in tables:
        for row, name in enumerate(_as_text(table.column(column)), start=first):
            if hash(name) not in twice:
                continue
            if name in seen and row >= n_old:
                other = seen[name]
                where = place(other - n_old) if other >= n_old else f"row {other + 1} of the corpus"
                return f"{where} and {place(row - n_old)} are both called {name!r:.60}", False
            seen[name] = row
        first += table.num_rows
    return None


def _as_text(column: Any) -> list[str]:
    return ["" if value is None else str(value) for value in column.to_pylist()]


def check_sources(work: Work, parts: Iterable[Any]) -> None:
    """Refuse to go on with other documents than those that the interrupted ingest had."""
    now, before = [part.fingerprint for part in parts], work.found(LOOKED)
    if not before:
        work.add({LOOKED: now})
    elif before[0][LOOKED] != now:
        raise ValueError(
            f"the documents are not those that the ingest to {work.target} had when it was "
            "interrupted; give it the same ones, or start again without --resume"
        )


def known_columns(base: Corpus | None) -> Any:
    """Return the columns of a corpus that rows are added to, or None without a corpus."""
    if base is None:
        return None
    if not base.columns:
        raise ValueError(f"{base.path} was written as views, and no table can be added to it")
    return base.shards[0].table().schema


def fitted_columns(schema: Any, base: Corpus | None, listener: Listener) -> Any:
    """Return the columns that are stored: those of the corpus, if rows are added to one."""
    if base is None:
        return schema
    known = known_columns(base)
    more = [name for name in schema.names if name not in known.names]
    gone = [name for name in known.names if name not in schema.names]
    if len(gone) == len(known.names):
        raise ValueError(
            f"the sources have none of the columns of {base.path}: {', '.join(known.names)}"
        )
    for names, what in (
        (more, "is not in the corpus, and is left out"),
        (gone, "is empty in them"),
    ):
        for name in names:
            listener.note(f"column {name!r} of the new rows {what}")
    for own in schema:
        if own.name in known.names:
            _check_type(own, known.field(own.name), base)
    return known


def _check_type(new: Any, known: Any, base: Corpus) -> None:
    """Refuse a column that holds something else than in the corpus."""
    numbers = pa.types.is_integer(new.type) and pa.types.is_floating(known.type)
    texts = pa.types.is_string(known.type) and pa.types.is_primitive(new.type)
    if new.type != known.type and not (numbers or texts or pa.types.is_null(new.type)):
        raise ValueError(
            f"column {new.name!r} holds {new.type}, and in {base.path} it holds {known.type}; make "
            "it the same, or ingest all documents to a new corpus"
        )


def unknown_words(reader: Any, table: Any, views: Any) -> dict[str, int]:
    """Return how many words the texts of some rows have, and how many of them do not count."""
    n_words, n_known = reader.count_words(table), 0
    for view, spec in reader.views_.items():
        if spec["kind"] == "text":
            n_known += int(views[view].sum(dtype=np.float64))
    return {"words": n_words, "unknown": n_words - n_known}
