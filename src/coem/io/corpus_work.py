"""An ingest under way: what is done is written down, so that it can go on after any interruption.

A new corpus is made in a hidden folder beside its place, and gets its name when it is complete.
Rows that are appended are written to new shards of the corpus, which count once the manifest names
them. The journal has a line for each file that is on the disk. A line that is not complete, a file
without a line, and what follows a line whose files are gone, are written again. When an ingest is
given up, its journal goes first.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from coem.io._parts import recover, remove
from coem.io._swap import take_place
from coem.io.corpus_writer import clear, sync, write_manifest, writing_in
from coem.io.whole import is_stream
from coem.stored import (
    KEYS,
    MANIFEST,
    READER,
    TABLE,
    WORK,
    Manifest,
    check_size,
    read_manifest,
    shard_name,
    stored_file,
    work_beside,
)

JOURNAL = "journal.jsonl"
COMPLETE, CALL = "complete", "call"
LINES = 1 << 28  # bytes of a journal
# What is in the folder of a corpus, and in that of a shard.
SHARD = re.compile(r"shard-\d{6,}")
FOLDER = re.compile(rf"{SHARD.pattern}|{re.escape(WORK)}")
OWN = re.compile(rf"{FOLDER.pattern}|\.?{re.escape(MANIFEST)}(\.[\w-]+\.part)?|{re.escape(READER)}")
IN_SHARD = re.compile(rf"{re.escape(TABLE)}|{re.escape(KEYS)}|\d+\.[a-z]+\.npy")


class Work:
    """An ingest that has the lock of its folder.

    Attributes
    ----------
    root : Path
        Where shards are written.
    base : Manifest
        What was there before.
    is_done : bool
        An earlier call has done all of it.
    left : bool
        Something of an earlier ingest was removed.
    resumed : bool
        An earlier call has begun it.
    """

    def __init__(self, root: Path, target: Path, base: Manifest) -> None:
        self.root, self.target, self.base = root, target, base
        self.is_done = self.left = self.resumed = False
        self.lines: list[dict[str, Any]] = []

    @property
    def scratch(self) -> Path:
        """A folder for anything else."""
        return self.root / WORK

    def begin(self, call: dict[str, Any], resume: bool) -> None:
        """Go on with what an earlier call has begun, or begin."""
        path = self.scratch / JOURNAL
        known = _read_lines(path)
        if resume and known:
            _check_call(known[0].get(CALL, {}), call, self.target)
            if known[0]["shards"] == len(self.base.shards):
                known = _read_lines(path, self._is_whole)
            self.lines, self.resumed = known, True
            return
        self._forget()
        self.left = clear(self.root, len(self.base.shards)) + self.scratch.exists() > 0
        remove(self.scratch)
        self.scratch.mkdir()
        self.add({CALL: call, "shards": len(self.base.shards)})

    def discard(self) -> None:
        """Remove all that was written."""
        self._forget()
        if self.root != self.target:
            remove(self.root)
            return
        clear(self.root, len(self.base.shards))
        remove(self.scratch)

    def _forget(self) -> None:
        """Remove the journal, before anything that it tells of goes: the process may be killed."""
        with suppress(OSError):
            (self.scratch / JOURNAL).unlink()
            sync(self.scratch)

    def _is_whole(self, line: dict[str, Any]) -> bool:
        """Return whether all files that a line tells of are there."""
        number = line.get("table", line.get("arrays"))
        folder = self.root if number is None else self.shard(number)
        try:
            for name, pair in line.get("files", {}).items():
                check_size(folder / name, stored_file(pair))
        except ValueError:
            return False
        return True

    def found(self, key: str) -> list[dict[str, Any]]:
        """Return the lines of the journal that have a key."""
        return [line for line in self.lines if key in line]

    def add(self, line: dict[str, Any]) -> None:
        """Write a line, after all that it tells of is on the disk."""
        with open(self.scratch / JOURNAL, "ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self.lines.append(line)

    def new_shard(self, number: int) -> Path:
        """Return the folder of a new shard, counted from those that were there before."""
        folder = self.shard(number)
        remove(folder)
        folder.mkdir()
        return folder

    def shard(self, number: int) -> Path:
        """Return the folder of a shard, counted from those that were there before."""
        return self.root / shard_name(len(self.base.shards) + number)

    def finish(self, manifest: Manifest) -> None:
        """Let the new rows count."""
        sync(self.root)
        self.add({COMPLETE: manifest.digest})
        write_manifest(self.root, manifest)
        self.end()

    def end(self) -> None:
        """Give a complete corpus its name, and clear away what only the work needed."""
        if self.root != self.target:
            if self.target.is_dir():
                _check_own(self.target)  # a long time may have passed
            take_place(self.root, self.target)
            sync(self.target.parent)
            remove(self.root)  # what had the name before
        shutil.rmtree(self.target / WORK, ignore_errors=True)


@contextmanager
def working(
    target: Path, call: dict[str, Any], *, append: bool, resume: bool, force: bool
) -> Iterator[Work]:
    """Give the work on a corpus, with a lock against other writers.

    Parameters
    ----------
    target : Path
        The folder of the corpus.
    call : dict
        What makes an ingest: one with another call does not go on with it.
    append : bool
        Add rows to the corpus that is there.
    resume : bool
        Go on with an ingest that was interrupted, if there is one.
    force : bool
        Replace the corpus that is there.

    Raises
    ------
    FileExistsError
        If there is something in the place.
    ValueError
        If another process writes there, or `resume` does not fit.
    """
    if is_stream(target):
        raise FileExistsError(f"{target} is a stream; name a folder that is not there yet")
    target = Path(os.path.realpath(target))
    recover(target)
    root = target if append else work_beside(target)
    if not append:
        done = resume and _is_finished(target, root, call)
        if not done:
            _check_place(target, root, resume, force)
        target.parent.mkdir(parents=True, exist_ok=True)
        root.mkdir(exist_ok=True)
    base = read_manifest(target) if append else Manifest()
    with writing_in(root):
        work = Work(root, target, base)
        if not append and done:
            remove(root)
            shutil.rmtree(target / WORK, ignore_errors=True)
            work.is_done = True
        elif append and resume and _is_appended(target, call, base):
            shutil.rmtree(target / WORK, ignore_errors=True)
            work.is_done = True
        else:
            _begin(work, call, resume)
        yield work


def _begin(work: Work, call: dict[str, Any], resume: bool) -> None:
    work.begin(call, resume)
    complete = work.found(COMPLETE)
    if complete and (work.root / MANIFEST).exists():
        found = read_manifest(work.root).digest
        if found == complete[0][COMPLETE]:
            work.end()
            work.is_done = True
    if work.found(CALL)[0]["shards"] != len(work.base.shards) and not work.is_done:
        raise ValueError(
            f"{work.target} was changed after the ingest that was interrupted; start again without "
            "--resume"
        )


def _is_finished(target: Path, root: Path, call: dict[str, Any]) -> bool:
    """Return whether a new corpus has its name, and is that of a call."""
    if not (target / MANIFEST).is_file() or (root / WORK).is_dir():
        return False
    ingests = read_manifest(target).ingests
    return len(ingests) == 1 and ingests[0].get(CALL) == call[CALL]


def _is_appended(target: Path, call: dict[str, Any], base: Manifest) -> bool:
    """Return whether the last rows of a corpus are those of a call."""
    lines = _read_lines(target / WORK / JOURNAL)
    if lines and not any(COMPLETE in line for line in lines):
        return False
    if lines and lines[-1].get(COMPLETE) != base.digest:
        return False
    return len(base.ingests) > 1 and base.ingests[-1].get(CALL) == call[CALL]


def _check_place(target: Path, root: Path, resume: bool, force: bool) -> None:
    """Refuse a place that must not be written to."""
    with suppress(FileNotFoundError):
        os.stat(target)  # which says that links lead in a circle
    if not os.path.lexists(target) or (target.is_dir() and not any(target.iterdir())):
        return
    if not target.is_dir():
        raise FileExistsError(f"{target} is a file; name a folder that is not there yet")
    if (target / MANIFEST).is_file() and (force or (resume and (root / WORK).is_dir())):
        _check_own(target)
        return
    what = "is a corpus already" if (target / MANIFEST).is_file() else "is there, and not empty"
    advice = "add rows to it with --append, replace it with --force, or" if "corpus" in what else ""
    raise FileExistsError(f"{target} {what}; {advice} name another folder".replace(";  ", "; "))


def _check_own(target: Path) -> None:
    """Refuse to replace a corpus whose folder holds anything else."""
    strange = next(_strange(target), None)
    if strange is not None:
        raise FileExistsError(
            f"{target} also holds {strange}, which would be lost; move it, or name another folder"
        )


def _strange(folder: Path, own: re.Pattern[str] = OWN) -> Iterator[str]:
    """Yield what is in the folder of a corpus, or of a shard, and no ingest has written."""
    for path in sorted(folder.iterdir()):
        known = own.fullmatch(path.name) is not None and not path.is_symlink()
        if not known or path.is_dir() != bool(FOLDER.fullmatch(path.name)):
            yield path.name
        elif SHARD.fullmatch(path.name):
            yield from (f"{path.name}/{name}" for name in _strange(path, IN_SHARD))


def _check_call(known: dict[str, Any], call: dict[str, Any], target: Path) -> None:
    """Refuse to go on with another call than the first."""
    first, now = known.get("settings", {}), json.loads(json.dumps(call["settings"]))
    differ = [name for name in sorted({*first, *now}) if first.get(name) != now.get(name)]
    differ += [name for name in ("append", "sources") if known.get(name) != call[name]]
    if not differ and any(known.get(name) != call[name] for name in ("sizes", "times")):
        raise ValueError(
            f"a source has changed since the ingest to {target} was interrupted; start again "
            "without --resume"
        )
    if differ:
        raise ValueError(
            f"the ingest to {target} that was interrupted had other parameters: "
            f"{', '.join(differ)}; give the same call again, or start again without --resume"
        )


def can_resume(target: Path) -> bool:
    """Return whether there is an ingest to a corpus that was interrupted."""
    roots = target, work_beside(target)
    return any((root / WORK / JOURNAL).is_file() for root in roots)


def _read_lines(
    path: Path, is_whole: Callable[[dict[str, Any]], bool] = bool
) -> list[dict[str, Any]]:
    """Return the lines of a journal; a damaged one, or one that is not whole, is cut off.

    So is all that follows it.
    """
    if not path.is_file() or path.stat().st_size > LINES:
        return []
    lines, good = [], 0
    data = path.read_bytes()
    for line in data.splitlines(keepends=True):
        try:
            found = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            found = None
        if not isinstance(found, dict) or not is_whole(found):
            break
        lines.append(found)
        good += len(line)
    if good < len(data):
        os.truncate(path, good)
    return lines if lines and CALL in lines[0] else []
