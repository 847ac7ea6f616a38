"""Work that is kept while it is done: a folder with a plan, results, and folders of parts."""

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np

from coem.checks import warn_user
from coem.io._lock import NAME as LOCK
from coem.io._lock import FolderLock
from coem.io.archive import read_archive, write_archive
from coem.io.fingerprint import TEXT, described, fingerprint
from coem.typing import Array

SCHEMA = 6
PLAN = "plan.zip"
PART = ".fit"  # how the names of the folders of parts end
OWN = re.compile(r"(plan|(run|coupling|done)-[\w.-]+)\.zip")
LEFT = re.compile(rf"\.{OWN.pattern}\.\d+-[0-9a-f]{{8}}\.part")  # by a process that was killed

# Parameters that change no result. They may differ when work goes on.
MACHINE = ("n_jobs", "verbose", "engine", "checkpoint", "step", "memory")

Content = tuple[dict[str, Any], dict[str, Array]]
"""A JSON document and named arrays."""

_in_trouble: set[Path] = set()  # folders that cannot be written, about which the user was warned


@dataclass(frozen=True)
class Part(os.PathLike[str]):
    """The folder of a part of some work. The caller that does all of the work locks and removes it.

    Parameters
    ----------
    folder : Path
        The folder of the part.
    root : Path
        The folder of all of the work, which messages name.
    """

    folder: Path
    root: Path

    def __fspath__(self) -> str:
        """Return the path of the folder."""
        return str(self.folder)

    def __str__(self) -> str:
        """Return the path of the folder."""
        return str(self.folder)


Place = str | os.PathLike[str]
"""What a user or another piece of work names as the folder."""


class Kept:
    """The folder of some work that can go on after it was stopped.

    From `seeds` to `clear` the folder is locked. As a context, it unlocks the folder if the work
    inside fails. The system itself unlocks the folder of a process that was killed.

    If a file cannot be written later on, because the disk is full for example, the user is warned
    once, and the work goes on. The files that were written before stay as they are.

    Parameters
    ----------
    place : path or Part
        The folder; it is created if it does not exist.
    fingerprint : str
        The result of `coem.io.fingerprint.fingerprint` for the data and the parameters.
    settings : dict of str -> (str, str)
        The result of `described` for the parameters, to tell how other work differs.
    """

    def __init__(
        self, place: Place, fingerprint: str, settings: Mapping[str, tuple[str, str]]
    ) -> None:
        self.folder = Path(place)
        self.is_part = isinstance(place, Part)
        self.root = place.root if isinstance(place, Part) else self.folder
        self.fingerprint = fingerprint
        self.settings = settings
        self._lock = FolderLock(self.folder)

    def __enter__(self) -> Self:
        """Return the kept work."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        """Unlock the folder after an error, so that the work can go on."""
        if kind is not None:
            self._lock.release()

    # -- the plan ----------------------------------------------------------------------------

    def seeds(self, seeds: Array, *, fixed: bool) -> Array:
        """Return the seeds of the runs; if the work was stopped, those that it began with.

        `fixed` is True if the user chose the seeds. Then different seeds mean different work.
        """
        if self.is_part:
            with suppress(OSError):  # the plan cannot be written either, and a warning says so
                self.folder.mkdir(parents=True, exist_ok=True)
        else:
            _in_trouble.discard(self.root)
            self._lock.take()
        plan = self.folder / PLAN
        if not plan.exists():
            self._write_plan(plan, seeds)
            return seeds
        meta, arrays = read(plan, f"delete the folder {self.root}, and the fit begins again")
        old = arrays.get("seeds", np.empty(0))
        same = meta.get("schema") == SCHEMA and meta.get("fit") == self.fingerprint
        usable = (old.shape, old.dtype) == (seeds.shape, seeds.dtype) and old.min(initial=0) >= 0
        if not same or not usable or (fixed and not np.array_equal(old, seeds)):
            raise ValueError(
                f"the checkpoint in {self.root} belongs to another fit "
                f"({self._difference(meta)}); delete the folder or choose another one"
            )
        return old

    def begin(self) -> None:
        """Lock the folder and write the plan of work without seeds of its own."""
        self.seeds(np.empty(0, dtype=np.int64), fixed=True)

    def _write_plan(self, plan: Path, seeds: Array) -> None:
        """Write the plan. Only the first one of all may fail: nothing is lost then."""
        meta = {"schema": SCHEMA, "fit": self.fingerprint, "settings": dict(self.settings)}
        if self.is_part:
            self.write(plan, meta, {"seeds": seeds})
            return
        try:
            write_archive(plan, meta, {"seeds": seeds})
        except BaseException:
            self._lock.release()
            with suppress(OSError):
                self.folder.rmdir()
            raise

    def _difference(self, meta: dict[str, Any]) -> str:
        """Return in words how the work of a plan differs from this."""
        if meta.get("schema") != SCHEMA:
            return "of another version of coem"
        changes, theirs = [], meta.get("settings")
        theirs = theirs if isinstance(theirs, dict) else {}
        for name, (digest, text) in self.settings.items():
            before, shown = _setting(theirs.get(name, ("", "not there")), text)
            if before != digest:
                other = text != shown
                changes.append(f"{name} was {shown} and is {text}" if other else f"other {name}")
        if changes:
            return ", ".join(changes)
        return (
            "other seeds" if meta.get("fit") == self.fingerprint else "other data or another init"
        )

    # -- files -------------------------------------------------------------------------------

    def write(self, path: Path, meta: dict[str, Any], arrays: Mapping[str, Array]) -> bool:
        """Write a file; if that fails, warn once, keep the old one, and return False."""
        try:
            write_archive(path, meta, arrays)
        except OSError as error:
            if self.root not in _in_trouble:
                _in_trouble.add(self.root)
                warn_user(
                    f"the checkpoint in {self.root} cannot be written "
                    f"({error.strerror or error}); the fit goes on, and what was written before is "
                    "kept: a fit that is stopped now goes on from there. Free some space, or see "
                    "to it that the folder can be written",
                    RuntimeWarning,
                )
            return False
        return True

    def clear(self) -> None:
        """Remove the files, because the work is complete; those of a part stay for the whole."""
        if self.is_part:
            return
        sweep(self.folder)
        self._lock.release()
        with suppress(OSError):  # files of others are in it, or another process was faster
            self.folder.rmdir()

    # -- parts -------------------------------------------------------------------------------

    def part(self, name: str) -> Part:
        """Return the folder for a part of the work."""
        return Part(self.folder / f"{_spelt(name)}{PART}", self.root)

    def once(self, name: str, work: Callable[[Part], Content], *, stays: bool = False) -> Content:
        """Return what `work` returns; if it was done before the work was stopped, what it was.

        `work` takes the folder that it may keep its own state in. When the result is written, the
        folder is removed, unless it `stays`.
        """
        path, part = self.folder / f"done-{_spelt(name)}.zip", self.part(name)
        if path.exists():
            advice = "delete this file, and this part of the fit begins again"
            meta, arrays = read(path, advice)
            if meta.get("fit") != self.fingerprint or not isinstance(meta.get("result"), dict):
                raise ValueError(f"{path} belongs to another fit; {advice}")
            return meta["result"], arrays
        result, arrays = work(part)
        if self.write(path, {"fit": self.fingerprint, "result": result}, arrays) and not stays:
            discard(part)
        return result, arrays


def kept_fits(place: Place | None, params: dict[str, Any], data: Sequence[Any]) -> Kept | None:
    """Return the folder of several fits with its plan, or None if the user asked for none."""
    if place is None:
        return None
    own = {name: value for name, value in params.items() if name not in MACHINE}
    kept = Kept(place, fingerprint(own, data), described(own))
    kept.begin()
    return kept


def check_seed(random_state: Any, checkpoint: Place | None, what: str) -> None:
    """Raise if several fits are to be kept and their seed cannot be given again."""
    if checkpoint is not None and not isinstance(random_state, Integral):
        raise ValueError(
            f"checkpoint with {what} needs random_state to be a number: a fit that goes on draws "
            "the same folds and seeds again; set random_state=0, for example"
        )


def once(
    kept: Kept | None, name: str, work: Callable[[Part | None], Content], *, stays: bool = False
) -> Content:
    """Return what `work` returns, as `Kept.once` does if the work is kept."""
    return work(None) if kept is None else kept.once(name, work, stays=stays)


def part_of(kept: Kept | None, name: str) -> Part | None:
    """Return the folder for a part of the work, or None if the work is not kept."""
    return None if kept is None else kept.part(name)


def discard(part: Part | None) -> None:
    """Remove the folder of a part that is not needed any more."""
    if part is not None and not part.folder.is_symlink():
        sweep(part.folder)
        with suppress(OSError):
            part.folder.rmdir()


def sweep(folder: Path) -> None:
    """Remove our own files and those of parts from a folder; the plan goes last."""
    with suppress(OSError):
        for path in sorted(folder.iterdir(), key=lambda path: path.name == PLAN):
            if path.is_symlink():
                continue
            if path.is_dir() and path.name.endswith(PART):
                sweep(path)
                (path / LOCK).unlink(missing_ok=True)
                with suppress(OSError):
                    path.rmdir()
            elif OWN.fullmatch(path.name) or LEFT.fullmatch(path.name):
                path.unlink(missing_ok=True)


def has_state(folder: Path) -> bool:
    """Return whether a folder holds more of some work than its plan."""
    return any(OWN.fullmatch(path.name) and path.name != PLAN for path in folder.rglob("*.zip"))


def read(path: Path, advice: str) -> Content:
    """Return what a file holds; an error says what to do."""
    try:
        return read_archive(path)
    except ValueError as error:
        raise ValueError(f"{error}; {advice}") from error


def _spelt(name: str) -> str:
    """Return a name that any file can have."""
    if re.fullmatch(r"[\w.-]{1,80}", name, re.ASCII):
        return name
    return hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]


def _setting(value: Any, text: str) -> tuple[str, str]:
    """Return the digest and the text of a parameter in a plan; `text` if it has none to show."""
    match value:
        case str(digest), str(shown) if shown.isprintable() and len(shown) < 2 * TEXT:
            return digest, shown
    return "", text
