"""The files of a run: their names, and run.json, which a user may have edited."""

import hashlib
import json
from pathlib import Path
from typing import Any

from coem.io.json_lines import DEEPEST, is_deeper
from coem.io.regular import check_regular
from coem.recipes.defaults import FORMATS
from coem.recipes.names import NAMES

MODEL, CLUSTERS, TRACE = "model.coem", "clusters.csv", "trace.jsonl"
SEGMENTS = "segments.csv"
REPORT, RUN = "report.html", "run.json"
ASSIGNMENTS = "assignments"
TABLES = (CLUSTERS, SEGMENTS, *(f"{ASSIGNMENTS}.{form}" for form in FORMATS))
# Of a stream: its assignments, the documents of the first batch that were not learned from, and
# the latest ones, in two files that take turns.
JOURNAL, REFERENCE, RECENT = f"{ASSIGNMENTS}.csv", "reference.parquet", "recent-{}.parquet"
KEPT = (REFERENCE, *(RECENT.format(i) for i in range(2)))
FILES = (MODEL, TRACE, REPORT, RUN, NAMES, *TABLES, *KEPT)
VERBS = ("cluster", "classify", "topics", "segment", "stream")  # that write such a folder
SCHEMA = 1
STILL: dict[str, list[Any]] = {"states": []}  # of a run that is not a stream
LARGEST = 2**63 - 1  # of a whole number
ROUNDING = 1e-6  # by which a mean of shares may leave 0 to 1

# What run.json says. A type is a value of it, a set has all values, a tuple is one of several, a
# list is a list of something, and a dict has fields: those with a ? need not be there, and * stands
# for any other.
NUMBER, TEXT = (int, float, None), (str, None)
ARGUMENTS = {
    "text?": [str],
    "views?": {"*": (str, [str], None)},
    "stop_words?": (str, [str]),
    "skip_bad?": bool,
    "plain?": bool,
    **{f"{name}?": TEXT for name in ("encoder", "id", "date", "label", "labels", "encoding")},
    "*": (bool, int, float, str, None),
}
CURVE = ({"confidence": [NUMBER], "accuracy": [NUMBER], "rows": [int], "error": NUMBER}, None)
STABILITY = {
    "summary": str,
    "n_others": int,
    "agreement": [[(int, float)]],
    "mean_agreement": NUMBER,
    "table": [{"trust?": NUMBER, "*": NUMBER}],
    "reliability?": CURVE,
}
HELD_OUT = {
    "n_rows": int,
    "classes": [str],
    "table": [[int]],
    "scores": {"*": (int, float)},
    "reliability": CURVE,
    "supervised": bool,
    "held_out": {"error": (int, float), "folds": int},
}
STATE = {
    "model": str,
    "length": int,
    "recent": int,
    "names": [str],
    "counts": {
        "sizes": [int],
        "since": [int],
        "largest": [(int, float)],
        "faded": [int],
        **dict.fromkeys(("n_rows", "n_batches", "waiting", "first"), int),
        "usual": (int, float),
    },
    "inputs": [{"source": str, "first": str, "rows": int, "digest": str, "shards?": [str]}],
}
STREAM = {"states": [STATE], "given": ARGUMENTS, "id": TEXT}
RECORD = {
    "schema": int,
    "verb": str,
    "arguments": ARGUMENTS,
    "call?": TEXT,
    "written": {"format?": {*FORMATS}, "report?": bool, "full?": bool, "safe_csv?": bool},
    "source": TEXT,
    "called?": TEXT,
    "fingerprint": str,
    "inputs?": {"*": str},
    "rows": int,
    "bad_rows?": int,
    "seed": (int, None),
    "versions": {"*": str},
    "instruction_set?": str,
    "seconds": (int, float),
    "result": {"k?": (int, None), "objective?": NUMBER, "nmi?": NUMBER, "*": object},
    "stability?": (STABILITY, None),
    "held_out?": (HELD_OUT, None),
    "stream?": STREAM,
    "files": {MODEL: str, **{f"{name}?": str for name in FILES}},
    "*": object,
}


def read_run(folder: Path) -> dict[str, Any]:
    """Return the content of run.json in a folder; raise if a run would not write that."""
    path = folder / RUN
    check_regular(path)
    if not path.is_file():
        raise ValueError(f"{folder} is not the folder of a run: there is no {RUN} in it")
    try:
        run_json = json.loads(path.read_text(encoding="utf-8"))
        if is_deeper(run_json, DEEPEST):
            raise RecursionError
    except (ValueError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ValueError(f"{path} is damaged: {said}; run it again") from None
    if not isinstance(run_json, dict):
        raise ValueError(f"{path} is not the record of a run; run it again")
    schema, verb = run_json.get("schema"), run_json.get("verb")
    if type(schema) is int and schema > SCHEMA:
        raise ValueError(f"{path} was written by a newer coem; this one reads schema {SCHEMA}")
    strange = misfit(run_json, RECORD) or _uneven(run_json) or _untrue(run_json)
    if strange is not None:
        raise ValueError(
            f"{path} is not the record of a run: {strange[:80]} is not what a run writes there; "
            "undo what was edited, or run it again"
        )
    if verb == "stream" and not run_json.get("stream", STILL)["states"]:
        raise ValueError(
            f"{path} is not the record of a stream: its states are missing; start it anew"
        )
    if verb not in VERBS:
        raise ValueError(f"{path} is the record of an unknown verb, {verb!r:.80}; run it again")
    return run_json


def misfit(value: Any, shape: Any, place: str = "it") -> str | None:
    """Return where a value differs from `shape`, or None if it does not."""
    if isinstance(shape, tuple):
        found = [misfit(value, one, place) for one in shape]
        # The one that went deepest is of the kind that was meant.
        return None if None in found else max(map(str, found), key=len, default=place)
    if isinstance(shape, list):
        if type(value) is not list:
            return place
        return _first(misfit(item, shape[0], f"{place}[{i}]") for i, item in enumerate(value))
    if isinstance(shape, dict):
        return _misfit_of_fields(value, shape, place)
    if isinstance(shape, set):
        return None if isinstance(value, str) and value in shape else place
    same = value is None if shape is None else shape is object or type(value) is shape
    too_large = type(value) is int and abs(value) > LARGEST
    return None if same and not too_large else place


def _misfit_of_fields(value: Any, shape: dict[str, Any], place: str) -> str | None:
    if type(value) is not dict:
        return place
    inside = "" if place == "it" else f"{place}."
    missing = (f"{inside}{key}" for key in shape if key[-1] not in "?*" and key not in value)
    shapes = {key.removesuffix("?"): one for key, one in shape.items()}
    faults = (
        misfit(item, shapes.get(key, shapes.get("*", ())), f"{inside}{key}")
        for key, item in value.items()
    )
    return _first(missing) or _first(faults)


def _uneven(run_json: dict[str, Any]) -> str | None:
    """Return which table or curve of a record is not of one length everywhere, or None."""
    stability, held_out = (run_json.get(name) or {} for name in ("stability", "held_out"))
    lengths = {}
    if stability:
        runs = stability["agreement"]
        lengths["stability.agreement"] = {len(runs), *map(len, runs)}
    if held_out:
        classes = len(held_out["classes"])
        lengths["held_out.table"] = {classes, *map(len, held_out["table"])}
    for name, part in (("stability", stability), ("held_out", held_out)):
        curve = part.get("reliability")
        if curve:
            bins = {len(curve[key]) for key in ("confidence", "accuracy", "rows")}
            lengths[f"{name}.reliability"] = bins
    return _first(place for place, found in lengths.items() if len(found) > 1 or 0 in found)


def _untrue(run_json: dict[str, Any]) -> str | None:
    """Return which trust or point of a curve is not between 0 and 1, or None."""
    stability, held_out = (run_json.get(name) or {} for name in ("stability", "held_out"))
    trusts = [row.get("trust") for row in stability.get("table", [])]
    wrong = (i for i, trust in enumerate(trusts) if trust is not None and not 0 <= trust <= 1)
    curves = {"stability": stability, "held_out": held_out}
    return _first(f"stability.table[{i}].trust" for i in wrong) or _first(
        f"{name}.reliability"
        for name, part in curves.items()
        if not _is_curve(part.get("reliability"))
    )


def _is_curve(curve: dict[str, Any] | None) -> bool:
    """Return whether every bin of a curve that has rows has shares; one without rows has none."""
    if curve is None:
        return True
    points = zip(curve["rows"], curve["confidence"], curve["accuracy"], strict=True)
    return all(
        n == 0 or (n > 0 and all(s is not None and -ROUNDING < s < 1 + ROUNDING for s in shares))
        for n, *shares in points
    )


def _first(found: Any) -> str | None:
    return next((place for place in found if place is not None), None)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_model(folder: Path, run_json: dict[str, Any]) -> None:
    """Refuse a model file that is not the one that the run wrote."""
    path = folder / MODEL
    known = [
        run_json["files"][MODEL],
        *(s["model"] for s in run_json.get("stream", STILL)["states"]),
    ]
    if path.is_file() and digest(path) not in known:
        raise ValueError(
            f"{path} is not the file that the run wrote: {RUN} has another digest; put it back, "
            "run it again, or use the model in another folder, by itself"
        )
