"""Checkpoints: continue a fit that was stopped, with the same result bit for bit."""

import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields, is_dataclass
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Any, Generic, Self

import numpy as np
import scipy.sparse as sp

from coem.em import Keep, Past, Round
from coem.io.archive import read_archive, write_archive
from coem.io.packing import Packing
from coem.protocols import Theta
from coem.typing import Array, Matrix

try:
    import fcntl
except ImportError:  # Windows has none, and folders are not locked there
    fcntl = None  # type: ignore[assignment]

SCHEMA = 4
PLAN = "plan.zip"
LOCK = "lock"
TEXT = 60  # characters that a message shows of a value
THRIFT = 20  # the time between two writes is at least this many times the time of a write


class Checkpoint(Generic[Theta]):
    """The folder of one fit, with a file for its plan and one file per run.

    From `seeds` to `clear` the folder is locked. As a context, it unlocks the folder if the work
    inside fails. The system itself unlocks the folder of a process that was killed.

    Parameters
    ----------
    folder : path
        The folder; it is created if it does not exist.
    packing : Packing
        How the parameters of the model become arrays.
    fingerprint : str
        The result of `fingerprint` for the data and the parameters of the fit.
    settings : dict of str -> (str, str)
        The result of `described` for the parameters, to tell how another fit differs.
    """

    def __init__(
        self,
        folder: Path,
        packing: Packing[Theta],
        fingerprint: str,
        settings: Mapping[str, tuple[str, str]],
    ) -> None:
        self.folder = Path(folder)
        self.packing = packing
        self.fingerprint = fingerprint
        self.settings = settings
        self._lock: int | None = None

    def __enter__(self) -> Self:
        """Return the checkpoint."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        """Unlock the folder after an error, so that the fit can go on."""
        if kind is not None:
            self._unlock()

    def seeds(self, seeds: Array, *, fixed: bool) -> Array:
        """Return the seeds of the runs; if a fit was stopped, those of that fit.

        `fixed` is True if the user chose the seeds. Then different seeds mean a different fit.
        """
        self._lock = _locked(self.folder)
        plan = self.folder / PLAN
        if not plan.exists():
            meta = {"schema": SCHEMA, "fit": self.fingerprint, "settings": dict(self.settings)}
            write_archive(plan, meta, {"seeds": seeds})
            return seeds
        meta, arrays = _read(plan, f"delete the folder {self.folder}, and the fit begins again")
        old = arrays.get("seeds", np.empty(0))
        same = meta.get("schema") == SCHEMA and meta.get("fit") == self.fingerprint
        if not same or old.shape != seeds.shape or (fixed and not np.array_equal(old, seeds)):
            raise ValueError(
                f"the checkpoint in {self.folder} belongs to another fit "
                f"({self._difference(meta)}); delete the folder or choose another one"
            )
        return old

    def _difference(self, meta: dict[str, Any]) -> str:
        """Return in words how the fit of a plan differs from this one."""
        if meta.get("schema") != SCHEMA:
            return "of another version of coem"
        theirs, told = meta.get("settings"), []
        theirs = theirs if isinstance(theirs, dict) else {}
        for name, (digest, text) in self.settings.items():
            before, shown = theirs.get(name) or ("", "not there")
            if before != digest:
                other = text != shown
                told.append(f"{name} was {shown} and is {text}" if other else f"other {name}")
        if told:
            return ", ".join(told)
        return (
            "other seeds" if meta.get("fit") == self.fingerprint else "other data or another init"
        )

    def has(self, run: int) -> bool:
        """Return True if there is a file for `run`."""
        return self._path(run).exists()

    def load(self, run: int) -> tuple[Theta, Past[Theta]] | None:
        """Return the parameters and the rounds of a run, or None if nothing was written yet."""
        path = self._path(run)
        if not self.has(run):
            return None
        advice = "delete this file, and the run begins again"
        meta, arrays = _read(path, advice)
        if meta.get("fit") != self.fingerprint:
            raise ValueError(f"{path} belongs to another fit; {advice}")
        try:
            rounds = [r | {"log_likelihood": tuple(r["log_likelihood"])} for r in meta["rounds"]]
            best = self._unpack("best", arrays) if meta["best"] else None
            theta = self._unpack("theta", arrays)
            history = [Round(**record) for record in rounds]
            return theta, Past(history, best, meta["n_initial_e_steps"], meta["fell"])
        except Exception as error:  # whatever the bytes of a stranger lead to
            raise ValueError(f"{path} is damaged ({error}); {advice}") from error

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
        self._unlock()
        with suppress(OSError):  # files of others are in it, or somebody else was faster
            self.folder.rmdir()

    def _unlock(self) -> None:
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        (self.folder / LOCK).unlink(missing_ok=True)
        os.close(lock)

    def _path(self, run: int) -> Path:
        return self.folder / f"run-{run}.zip"

    def _pack(self, name: str, theta: Theta) -> dict[str, Array]:
        return {f"{name}.{key}": part for key, part in self.packing.pack(theta).items()}

    def _unpack(self, name: str, arrays: dict[str, Array]) -> Theta:
        own = {k.removeprefix(f"{name}."): a for k, a in arrays.items() if k.startswith(f"{name}.")}
        return self.packing.unpack(own)


def _read(path: Path, advice: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return what a file holds; an error says what to do."""
    try:
        return read_archive(path)
    except ValueError as error:
        raise ValueError(f"{error}; {advice}") from error


# -- locks --------------------------------------------------------------------------------------


def _locked(folder: Path) -> int | None:
    """Create and lock a folder; return the open file that holds the lock, or None without locks."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        if fcntl is None:
            return None
        try:
            file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # another fit has just removed the folder
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_file(folder / LOCK, file):
                os.truncate(file, 0)
                os.write(file, f"{os.getpid()}\n".encode())
                return file
        except BlockingIOError:
            owner = os.read(file, 20).decode(errors="replace").strip() or "of unknown number"
            os.close(file)
            raise ValueError(
                f"the checkpoint folder {folder} is in use: process {owner} fits with it now; wait "
                "until that has ended, or give this fit a folder of its own"
            ) from None
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # the last owner has removed it since it was opened


def _is_file(path: Path, file: int) -> bool:
    """Return True if an open file is the one at a path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


# -- fingerprints -------------------------------------------------------------------------------


def fingerprint(params: dict[str, Any], parts: Iterable[Matrix | None]) -> str:
    """Return a digest of the parameters of a fit and of all its data; a part may be None."""
    digest = hashlib.blake2b(_spelt(params).encode())
    for part in parts:
        digest.update(f"{_spelt(part)}|".encode())
    return digest.hexdigest()


def described(params: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return for each parameter a digest of its value, and a short text to show."""
    return {name: (_digest(_spelt(value)), _shown(value)) for name, value in params.items()}


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= TEXT else f"{text[:TEXT]}..."


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _spelt(value: Any) -> str:
    """Return a text that differs for any two values that differ.

    The `repr` of an array is not such a text: it leaves out digits and entries. That of a function
    or of a plain object is its address.
    """
    if isinstance(value, type | np.generic | np.dtype):
        return repr(value)
    if is_dataclass(value):
        own = {field.name: getattr(value, field.name) for field in fields(value)}
        return _kind(value) + _spelt(own | getattr(value, "__dict__", {}))
    if isinstance(value, Mapping):
        return "{" + ",".join(sorted(f"{_spelt(k)}:{_spelt(v)}" for k, v in value.items())) + "}"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__}({','.join(map(_spelt, value))})"
    if isinstance(value, set | frozenset):
        return f"set({','.join(sorted(map(_spelt, value)))})"
    if sp.issparse(value):
        rows = value.tocsr()
        return _spelt((rows.shape, rows.indptr, rows.indices, rows.data))
    if hasattr(value, "__array__"):
        return _spelt_array(np.asarray(value))
    return _spelt_object(value)


def _spelt_object(value: Any) -> str:
    """Return such a text for a function, or for an object with attributes."""
    if isinstance(value, partial):
        return "partial" + _spelt((value.func, value.args, value.keywords))
    if isinstance(value, FunctionType):
        inside = [cell.cell_contents for cell in value.__closure__ or ()]
        code = value.__code__
        constants = [c for c in code.co_consts if not hasattr(c, "co_code")]
        parts = (code.co_code, code.co_names, constants, value.__defaults__, value.__kwdefaults__)
        return f"{value.__module__}.{value.__qualname__}{_spelt((*parts, inside))}"
    own = getattr(value, "__dict__", None)
    return repr(value) if own is None else _kind(value) + _spelt(own)


def _kind(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _spelt_array(array: Array) -> str:
    if array.dtype.hasobject:
        return f"{array.shape}{_spelt(array.ravel().tolist())}"
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return f"{array.dtype.str}{array.shape}{hashlib.blake2b(data).hexdigest()}"
