"""Forgeries of model files: something hostile in every place of a saved model.

`forgeries` makes them, deterministically. `verdict` loads one and asks the model something. Run as
a program, in a process of its own with little memory, it tries the forgeries of some models:

    python -m tests.io.forgery "one view" classes --every 7
"""

import argparse
import faulthandler
import io
import json
import resource
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np

import coem
from coem import ModelFileError
from tests.io import fits
from tests.io.forging import members, write

SECONDS = 30  # for one forgery, of which most take milliseconds; others may use the machine too
MEMORY = 1 << 29  # bytes, besides what the process has when it begins
ENDS = 2  # items of a list that are tried, at its beginning

COLLIDING = [i * ((1 << 61) - 1) for i in range(20_000)]  # the hash of each is 0
VALUES = {
    "nothing": None,
    "true": True,
    "zero": 0,
    "negative": -1,
    "far below": -(10**15),
    "large": 1 << 31,
    "huge": 10**15,
    "endless": 10**4000,
    "fraction": 0.5,
    "nan": {"float": "nan"},
    "infinite": {"float": "inf"},
    "empty text": "",
    "text": "x",
    "long text": "a" * 10**6,
    "list": [],
    "list of lists": [[[1], [2]], [[3], [4]]],
    "list of text": ["a", "b"],
    "no object": {},
    "short range": {"range": [0, 3, 1]},
    "long range": {"range": [0, 10**15, 1]},
    "endless range": {"range": [0, 10**30, 1]},
    "tuple": {"tuple": []},
    "tuple of text": {"tuple": ["a", 1, None]},
    "tuple of huge": {"tuple": [10**15]},
    "dict": {"dict": []},
    "dict of all": {"dict": [["words", 1], [1, "words"], [None, {"range": [0, 10**4, 1]}]]},
    "colliding dict": {"dict": [[key, 0] for key in COLLIDING]},
    "colliding set": {"set": COLLIDING},
    "set": {"set": [1, "a"]},
    "slice": {"slice": [None, 10**18, None]},
    "no objects": {"objects": [[0], []]},
    "wide objects": {"objects": [[0, 10**15], []]},
    "objects": {"objects": [[2], ["a", {"range": [0, 10**4, 1]}]]},
    "scalar": {"scalar": ["int64", -5]},
    "scalar of list": {"scalar": ["float64", {"range": [0, 10**4, 1]}]},
    "dtype": {"dtype": "<f8"},
    "long dtype": {"dtype": "f8," * 10**5},
    "text dtype": {"dtype": "<U99999"},
    "type": {"type": "int"},
    "absent": {"absent": "encoder"},
    "path": {"path": "/dev/zero"},
    "records": {"object": ["Records", []]},
    "family": {"object": ["Gaussian", {}]},
    "schedule": {"object": ["Steps", {"values": {"range": [0, 10**4, 1]}, "rounds": 10**15}]},
    "estimator": {"object": ["MixtureClusterer", {"params": {}, "fitted": {}}]},
    "vectorizer": {"object": ["CountVectorizer", {"params": {"token_pattern": "(a+)+b"}}]},
}
ARRAYS = {
    "transposed": lambda a: a.T,
    "flat": lambda a: a.ravel(),
    "deeper": lambda a: a[np.newaxis],
    "shorter": lambda a: a[:-1] if a.ndim else a,
    "longer": lambda a: np.concatenate([a, a]) if a.ndim else np.array([a, a]),
    "none": lambda a: a[:0] if a.ndim else np.zeros(0),
    "wide and none": lambda a: np.zeros((0, 10**15)),
    "single": lambda a: a.ravel()[0] if a.size else np.float64(1),
    "whole numbers": lambda a: np.zeros(a.shape, np.int64),
    "far": lambda a: np.full(a.shape, 10**15),
    "below": lambda a: np.full(a.shape, -7, np.int64),
    "far numbers": lambda a: np.full(a.shape, 1e300),
    "not a number": lambda a: np.full(a.shape, np.nan),
    "infinite": lambda a: np.full(a.shape, np.inf),
    "minus infinite": lambda a: np.full(a.shape, -np.inf),
    "half": lambda a: np.zeros(a.shape, np.float16),
    "complex": lambda a: np.zeros(a.shape, complex),
    "text": lambda a: np.full(a.shape, "a"),
    "dates": lambda a: np.zeros(a.shape, "M8[s]"),
    "columns": lambda a: np.asfortranarray(np.zeros((*a.shape, 2))),
}


def places(value, where=()):
    """Yield the places of a JSON document, each as the keys that lead to it."""
    yield where
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*where, key))
    elif isinstance(value, list):
        for i, item in enumerate(value[:ENDS]):
            yield from places(item, (*where, i))


def at(value, where):
    """Return what is in a place."""
    for key in where:
        value = value[key]
    return value


def forgeries(parts):
    """Yield a description of each forgery of a model file, and a function that returns its members.

    Parameters
    ----------
    parts : dict of str to bytes
        The members of a true file, as `tests.io.forging.members` reads them. The digests are those
        of the true file: `tests.io.forging.write` makes new ones.
    """
    model = json.loads(parts["model.json"])["model"]
    for where in places(model):
        for what, value in VALUES.items():
            yield f"{where}: {what}", partial(_changed, parts, where, value)
        if where:
            yield f"{where}: left out", partial(_changed, parts, where, None, leave_out=True)
        if where[-1:] in (("array",), ("table",)):
            array = np.load(io.BytesIO(parts[f"{at(model, where)}.npy"]))
            for what, change in ARRAYS.items():
                yield f"{where}: {what} array", partial(_replaced, parts, where, change, array)


def _changed(parts, where, value, *, leave_out=False):
    """Return the members of a file with another value in one place."""
    meta = json.loads(parts["model.json"])
    holder = at(meta, ("model", *where)[:-1])
    key = ("model", *where)[-1]
    if leave_out:
        del holder[key]
    else:
        holder[key] = value
    return parts | {"model.json": json.dumps(meta).encode()}


def _replaced(parts, where, change, array):
    """Return the members of a file with another array in one place."""
    buffer = io.BytesIO()
    np.save(buffer, change(array))
    return _changed(parts, where, "odd") | {"odd.npy": buffer.getvalue()}


def verdict(path, X):
    """Load a file and ask the model about `X`; return what is wrong with that, or None.

    A model may refuse to be loaded, in one sentence that names the file, or to answer. It must not
    ask for memory that is not there, and raise nothing that is no error of Python's.
    """
    try:
        model = coem.load(path)
    except ModelFileError as error:
        sentence = str(path) in str(error) and "\n" not in str(error) and len(str(error)) < 1000
        if isinstance(error.__cause__, MemoryError) or not sentence:
            return f"load: {error.__cause__!r:.200}"
        return None
    for name in ("predict", "predict_proba", "transform"):
        try:
            if X is not None and hasattr(model, name):
                getattr(model, name)(X)
        except MemoryError:
            return f"{name} takes all memory"
        except Exception as error:
            if not isinstance(error, ValueError):
                return f"{name}: {error!r:.200}"
    return None


def main():
    """Try the forgeries of some models; print what is wrong, and how many there were."""
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--every", type=int, default=1, help="try one forgery in so many")
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    n_tried = n_wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in options.cases:
            path, X = Path(folder) / "model.coem", fits.data_of(case)
            coem.save(fits.fitted(case), path)
            assert verdict(path, X) is None, case
            true = members(path)
            _limit_memory()
            for i, (what, make) in enumerate(forgeries(true)):
                if i < options.first or (i - options.first) % options.every:
                    continue
                write(path, make())
                faulthandler.dump_traceback_later(SECONDS, exit=True)
                print(f"{case} {i} {what}", end="\r", file=sys.stderr)  # noqa: T201
                wrong = verdict(path, X)
                faulthandler.cancel_dump_traceback_later()
                n_tried, n_wrong = n_tried + 1, n_wrong + (wrong is not None)
                if wrong is not None:
                    sys.stdout.write(f"{case} {i} {what}: {wrong}\n")
    sys.stdout.write(f"{n_tried} forgeries, {n_wrong} wrong\n")
    return n_wrong > 0


def _limit_memory():
    own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (own + MEMORY, resource.RLIM_INFINITY))


if __name__ == "__main__":
    sys.exit(main())
