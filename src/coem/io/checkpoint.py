"""Checkpoints: continue a fit that was stopped, with the same result bit for bit."""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, Self

import numpy as np

from coem.em import Keep, Past, Round
from coem.io._lock import FolderLock
from coem.io.archive import read_archive, write_archive
from coem.io.fingerprint import TEXT
from coem.io.packing import Packing
from coem.protocols import Theta
from coem.typing import Array

SCHEMA = 5
PLAN = "plan.zip"
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
        The result of `coem.io.fingerprint.fingerprint` for the data and the parameters of the fit.
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
        self._lock = FolderLock(self.folder)

    def __enter__(self) -> Self:
        """Return the checkpoint."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        """Unlock the folder after an error, so that the fit can go on."""
        if kind is not None:
            self._lock.release()

    def seeds(self, seeds: Array, *, fixed: bool) -> Array:
        """Return the seeds of the runs; if a fit was stopped, those of that fit.

        `fixed` is True if the user chose the seeds. Then different seeds mean a different fit.
        """
        self._lock.take()
        plan = self.folder / PLAN
        if not plan.exists():
            meta = {"schema": SCHEMA, "fit": self.fingerprint, "settings": dict(self.settings)}
            write_archive(plan, meta, {"seeds": seeds})
            return seeds
        meta, arrays = _read(plan, f"delete the folder {self.folder}, and the fit begins again")
        old = arrays.get("seeds", np.empty(0))
        same = meta.get("schema") == SCHEMA and meta.get("fit") == self.fingerprint
        usable = (old.shape, old.dtype) == (seeds.shape, seeds.dtype) and old.min(initial=0) >= 0
        if not same or not usable or (fixed and not np.array_equal(old, seeds)):
            raise ValueError(
                f"the checkpoint in {self.folder} belongs to another fit "
                f"({self._difference(meta)}); delete the folder or choose another one"
            )
        return old

    def _difference(self, meta: dict[str, Any]) -> str:
        """Return in words how the fit of a plan differs from this one."""
        if meta.get("schema") != SCHEMA:
            return "of another version of coem"
        told, theirs = [], meta.get("settings")
        theirs = theirs if isinstance(theirs, dict) else {}
        for name, (digest, text) in self.settings.items():
            before, shown = _setting(theirs.get(name, ("", "not there")), text)
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
            return self._unpack("theta", arrays), self._past(meta, arrays)
        except Exception as error:  # whatever the bytes of a stranger lead to
            raise ValueError(f"{path} is damaged ({error}); {advice}") from error

    def _past(self, meta: dict[str, Any], arrays: dict[str, Array]) -> Past[Theta]:
        """Return the rounds that a file holds."""
        history = [_round(t, record) for t, record in enumerate(meta["rounds"], 1)]
        n_initial_e_steps = meta["n_initial_e_steps"]
        lengths = {len(record.log_likelihood) for record in history}  # 1 for all views together
        if n_initial_e_steps not in (0, 1) or not lengths <= {1, self.packing.n_views}:
            raise ValueError("no run has such rounds")
        best = self._unpack("best", arrays) if meta["best"] else None
        return Past(history, best, int(n_initial_e_steps), _number(meta["fell"]))

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
        self._lock.release()
        with suppress(OSError):  # files of others are in it, or somebody else was faster
            self.folder.rmdir()

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


def _setting(value: Any, text: str) -> tuple[str, str]:
    """Return the digest and the text of a parameter in a plan; `text` if it has none to show."""
    match value:
        case str(digest), str(shown) if shown.isprintable() and len(shown) < 2 * TEXT:
            return digest, shown
    return "", text


def _round(t: int, record: dict[str, Any]) -> Round:
    """Return the record of round `t`."""
    likelihood = tuple(map(_number, record["log_likelihood"]))
    numbers = {name: _number(value) for name, value in record.items() if name != "log_likelihood"}
    if numbers["round"] != t:
        raise ValueError("its rounds are not in order")
    return Round(log_likelihood=likelihood, **numbers)


def _number(value: Any) -> Any:
    """Return a number as it is, and refuse what is none."""
    if not isinstance(value, int | float):
        raise TypeError(f"a {type(value).__name__} is in the place of a number")
    float(value)  # an int may be too large for the sums to come
    return value
