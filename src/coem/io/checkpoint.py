"""Checkpoints: continue a fit that was stopped, with the same result bit for bit."""

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, Generic

import numpy as np
import scipy.sparse as sp

from coem.em import Keep, Past, Round
from coem.io.archive import read_archive, write_archive
from coem.io.packing import Packing
from coem.protocols import Theta
from coem.typing import Array, Matrix

SCHEMA = 3
PLAN = "plan.zip"
THRIFT = 20  # the time between two writes is at least this many times the time of a write


class Checkpoint(Generic[Theta]):
    """The folder of one fit, with a file for its plan and one file per run.

    Parameters
    ----------
    folder : path
        The folder; it is created if it does not exist.
    packing : Packing
        How the parameters of the model become arrays.
    fingerprint : str
        The result of `fingerprint` for the data and the parameters of the fit.
    """

    def __init__(self, folder: Path, packing: Packing[Theta], fingerprint: str) -> None:
        self.folder = Path(folder)
        self.packing = packing
        self.fingerprint = fingerprint

    def seeds(self, seeds: Array, *, fixed: bool) -> Array:
        """Return the seeds of the runs; if a fit was stopped, those of that fit.

        `fixed` is True if the user chose the seeds. Then different seeds mean a different fit.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        plan = self.folder / PLAN
        if not plan.exists():
            write_archive(plan, {"schema": SCHEMA, "fit": self.fingerprint}, {"seeds": seeds})
            return seeds
        meta, arrays = read_archive(plan)
        old = arrays.get("seeds", np.empty(0))
        same = meta.get("schema") == SCHEMA and meta.get("fit") == self.fingerprint
        if not same or old.shape != seeds.shape or (fixed and (old != seeds).any()):
            raise ValueError(
                f"the checkpoint in {self.folder} belongs to another fit (other data, parameters "
                "or version of coem); delete the folder or choose another one"
            )
        return old

    def has(self, run: int) -> bool:
        """Return True if there is a file for `run`."""
        return self._path(run).exists()

    def load(self, run: int) -> tuple[Theta, Past[Theta]] | None:
        """Return the parameters and the rounds of a run, or None if nothing was written yet."""
        path = self._path(run)
        if not self.has(run):
            return None
        meta, arrays = read_archive(path)
        if meta.get("fit") != self.fingerprint:
            raise ValueError(f"{path} belongs to another fit; delete it")
        try:
            rounds = [r | {"log_likelihood": tuple(r["log_likelihood"])} for r in meta["rounds"]]
            best = self._unpack("best", arrays) if meta["best"] else None
            theta = self._unpack("theta", arrays)
            history = [Round(**record) for record in rounds]
            return theta, Past(history, best, meta["n_initial_e_steps"], meta["fell"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is damaged ({error}); delete it") from error

    def keep(self, run: int) -> Keep[Theta]:
        """Return a function that writes the state of a run if enough time has passed."""
        due = 0.0

        def write(theta: Theta, past: Past[Theta], over: bool) -> None:
            nonlocal due
            began = time.perf_counter()
            if began < due and not over:
                return
            arrays = self._pack("theta", theta)
            if past.best is not None:
                arrays |= self._pack("best", past.best)
            meta = {
                "fit": self.fingerprint,
                "n_initial_e_steps": past.n_initial_e_steps,
                "best": past.best is not None,
                "fell": past.fell,
                "rounds": [asdict(record) for record in past.history],
            }
            write_archive(self._path(run), meta, arrays)
            done = time.perf_counter()
            due = done + THRIFT * (done - began)

        return write

    def clear(self) -> None:
        """Remove the files, because the fit is complete."""
        for path in [*self.folder.glob("run-*.zip"), self.folder / PLAN]:
            path.unlink(missing_ok=True)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _path(self, run: int) -> Path:
        return self.folder / f"run-{run}.zip"

    def _pack(self, name: str, theta: Theta) -> dict[str, Array]:
        return {f"{name}.{key}": part for key, part in self.packing.pack(theta).items()}

    def _unpack(self, name: str, arrays: dict[str, Array]) -> Theta:
        own = {k.removeprefix(f"{name}."): a for k, a in arrays.items() if k.startswith(f"{name}.")}
        return self.packing.unpack(own)


def fingerprint(params: dict[str, Any], parts: Iterable[Matrix | None]) -> str:
    """Return a digest of the parameters of a fit and of all its data; a part may be None."""
    digest = hashlib.blake2b(_spelt(params).encode())
    for part in parts:
        digest.update(f"{_spelt(part)}|".encode())
    return digest.hexdigest()


def _spelt(value: Any) -> str:
    """Return a text that differs for any two values that differ.

    The `repr` of an array is not such a text: it leaves out digits and entries.
    """
    if is_dataclass(value) and not isinstance(value, type):
        kind = f"{type(value).__module__}.{type(value).__qualname__}"
        return kind + _spelt({field.name: getattr(value, field.name) for field in fields(value)})
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{_spelt(k)}:{_spelt(v)}" for k, v in value.items())) + "}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({','.join(map(_spelt, value))})"
    if sp.issparse(value):
        rows = value.tocsr()
        return _spelt((rows.shape, rows.indptr, rows.indices, rows.data))
    if hasattr(value, "__array__") and not isinstance(value, np.generic | type):
        return _spelt_array(np.asarray(value))
    return repr(value)


def _spelt_array(array: Array) -> str:
    if array.dtype.hasobject:
        return f"{array.shape}{_spelt(array.ravel().tolist())}"
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return f"{array.dtype.str}{array.shape}{hashlib.blake2b(data).hexdigest()}"
