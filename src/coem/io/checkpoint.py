"""Checkpoints: continue a fit that was stopped, with the same result bit for bit."""

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic

import numpy as np

from coem.em import Keep, Past, Round
from coem.io.kept import Kept, Place, read
from coem.io.packing import Packing
from coem.io.stopping import StoppedAfterRound, asked
from coem.kernels.counts import as_table, is_table
from coem.protocols import Theta
from coem.typing import Array

THRIFT = 20  # the time between two writes is at least this many times the time of a write
RUN = re.compile(r"run-(\d{1,9})(?:-(\d{1,9}))?\.zip")


@dataclass(frozen=True)
class Before(Generic[Theta]):
    """What a run brings with it to its current phase.

    Attributes
    ----------
    history : list of Round
        The rounds of the phases before.
    fell : float
        The largest fall of the free energy in these phases, as in `Past`.
    notes : dict
        What the task keeps of the run, as JSON can hold it.
    tables : dict
        Parameters that the task keeps of the run, beside the current ones.
    arrays : dict
        What the task keeps of the state of the run, if that does not follow from the parameters.
    """

    history: list[Round] = field(default_factory=list)
    fell: float = 0.0
    notes: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, Theta] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Stop(Generic[Theta]):
    """Where a run was when it was stopped: the end of a round."""

    theta: Theta
    past: Past[Theta]
    before: Before[Theta]


class Checkpoint(Kept, Generic[Theta]):
    """The folder of one fit, with a file for its plan and one file per run and phase.

    The files of a phase stay until the next phase of all runs has files, because a coupling needs
    all runs at the end of a phase.

    Parameters
    ----------
    place : path or Part
        The folder; it is created if it does not exist.
    packing : Packing
        How the parameters of the model become arrays.
    fingerprint, settings
        As for `Kept`.
    """

    def __init__(
        self,
        place: Place,
        packing: Packing[Theta],
        fingerprint: str,
        settings: Mapping[str, tuple[str, str]],
    ) -> None:
        super().__init__(place, fingerprint, settings)
        self.packing = packing
        self._n_runs = 0

    def seeds(self, seeds: Array, *, fixed: bool) -> Array:
        """Return the seeds of the runs; if a fit was stopped, those of that fit."""
        self._n_runs = len(seeds)
        return super().seeds(seeds, fixed=fixed)

    # -- phases and couplings ----------------------------------------------------------------

    def first_phase(self) -> int:
        """Return the last phase of which all runs have a file, or 0."""
        for phase in sorted(self._phases(), reverse=True):
            couplings = all(self._coupling(number).exists() for number in range(phase))
            if couplings and self._all_in(phase):
                return phase
        return 0

    def has(self, run: int) -> bool:
        """Return True if `run` does not have to start from the beginning."""
        return self._path(run, 0).exists() or self.first_phase() > 0

    def keep_coupling(self, number: int, links: Sequence[Mapping[str, Any]]) -> None:
        """Write the transitions of a coupling, and remove the files of phases before it."""
        saved: list[dict[str, Any]] = []
        arrays: dict[str, Array] = {}
        for i, link in enumerate(links):
            saved.append({n: v for n, v in link.items() if not isinstance(v, np.ndarray)})
            arrays |= {f"{i}.{n}": v for n, v in link.items() if isinstance(v, np.ndarray)}
        self.write(self._coupling(number), {"fit": self.fingerprint, "links": saved}, arrays)
        if self._all_in(number) and all(self._coupling(i).exists() for i in range(number)):
            for path, phase in self._files():
                if phase < number:
                    with suppress(OSError):
                        path.unlink()

    def load_coupling(self, number: int) -> list[dict[str, Any]]:
        """Return the transitions of a coupling."""
        path = self._coupling(number)
        advice = f"delete the folder {self.root}, and the fit begins again"
        meta, arrays = read(path, advice)
        if meta.get("fit") != self.fingerprint:
            raise ValueError(f"{path} belongs to another fit; {advice}")
        try:
            links = [dict(link) for link in meta["links"]]
            for name, matrix in arrays.items():
                i, _, key = name.partition(".")
                links[int(i)][key] = matrix
            return links
        except Exception as error:  # whatever the bytes of a stranger lead to
            raise ValueError(f"{path} is damaged ({error}); {advice}") from error

    def _all_in(self, phase: int) -> bool:
        return all(self._path(run, phase).exists() for run in range(self._n_runs))

    def _phases(self) -> set[int]:
        return {phase for _, phase in self._files()}

    def _files(self) -> list[tuple[Path, int]]:
        """Return the files of the runs, with their phases."""
        try:
            found = [(path, RUN.fullmatch(path.name)) for path in self.folder.iterdir()]
        except OSError:
            return []
        return [(path, int(match[2] or 0)) for path, match in found if match]

    # -- runs --------------------------------------------------------------------------------

    def load(self, run: int, phase: int = 0) -> Stop[Theta] | None:
        """Return where a run was in a phase, or None if nothing was written yet."""
        path, advice = self._path(run, phase), self._advice(phase)
        if not path.exists():
            return None
        meta, arrays = read(path, advice)
        if meta.get("fit") != self.fingerprint:
            raise ValueError(f"{path} belongs to another fit; {advice}")
        with self.explained(run, phase):
            # Kernels read tables as they are, and a model file tells them from other arrays.
            arrays |= {str(name): as_table(arrays[name]) for name in meta["kernel_tables"]}
            theta = self._unpack("theta", arrays)
            return Stop(theta, self._past(meta, arrays), self._before(meta, arrays))

    @contextmanager
    def explained(self, run: int, phase: int = 0) -> Iterator[None]:
        """Turn all errors inside into one that names the file of a run, and says what to do."""
        try:
            yield
        except Exception as error:  # whatever the bytes of a stranger lead to
            path, advice = self._path(run, phase), self._advice(phase)
            raise ValueError(f"{path} is damaged ({error}); {advice}") from error

    def _advice(self, phase: int) -> str:
        """Return what to do if the file of a run cannot be used."""
        if phase:
            return f"delete the folder {self.root}, and the fit begins again"
        return "delete this file, and the run begins again"

    def _past(self, meta: dict[str, Any], arrays: dict[str, Array]) -> Past[Theta]:
        """Return the rounds of the phase that a file holds."""
        n_initial_e_steps = meta["n_initial_e_steps"]
        if n_initial_e_steps not in (0, 1):
            raise ValueError("no run has such rounds")
        best = self._unpack("best", arrays) if meta["best"] else None
        history = self._rounds(meta["rounds"])
        return Past(history, best, int(n_initial_e_steps), _number(meta["fell"]))

    def _before(self, meta: dict[str, Any], arrays: dict[str, Array]) -> Before[Theta]:
        """Return what the run brought with it to the phase."""
        earlier, notes = meta["earlier"], meta["notes"]
        if not isinstance(notes, dict):
            raise TypeError("its notes are not a JSON object")
        tables = {str(name): self._unpack(f"table.{name}", arrays) for name in meta["tables"]}
        history, fell = self._rounds(earlier["rounds"]), _number(earlier["fell"])
        return Before(history, fell, notes, tables, _named("array", arrays))

    def _rounds(self, records: list[dict[str, Any]]) -> list[Round]:
        history = [_round(t, record) for t, record in enumerate(records, 1)]
        lengths = {len(record.log_likelihood) for record in history}  # 1 for all views together
        if not lengths <= {1, self.packing.n_views}:
            raise ValueError("no run has such rounds")
        return history

    def keep(
        self, run: int, phase: int = 0, before: Callable[[], Before[Theta]] = Before
    ) -> Keep[Theta]:
        """Return a function that writes the state of a run if enough time has passed.

        `before` returns what the run brings with it. If fits were asked to stop, the state is
        written in any case, and `StoppedAfterRound` is raised.
        """
        due = 0.0

        def write(theta: Theta, past: Past[Theta], over: bool) -> None:
            nonlocal due
            began = time.perf_counter()
            if began < due and not over and not asked():
                return
            self.write(self._path(run, phase), *self._packed(theta, past, before()))
            done = time.perf_counter()
            due = done + THRIFT * (done - began)
            if asked():
                raise StoppedAfterRound

        return write

    def _packed(
        self, theta: Theta, past: Past[Theta], before: Before[Theta]
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return the content of the file of a run."""
        arrays = self._pack("theta", theta)
        if past.best is not None:
            arrays |= self._pack("best", past.best)
        for name, table in before.tables.items():
            arrays |= self._pack(f"table.{name}", table)
        arrays |= {f"array.{name}": array for name, array in before.arrays.items()}
        meta = {
            "fit": self.fingerprint,
            "n_initial_e_steps": past.n_initial_e_steps,
            "best": past.best is not None,
            "fell": past.fell,
            "rounds": [asdict(record) for record in past.history],
            "earlier": {
                "fell": before.fell,
                "rounds": [asdict(record) for record in before.history],
            },
            "notes": before.notes,
            "tables": list(before.tables),
            "kernel_tables": [name for name, array in arrays.items() if is_table(array)],
        }
        return meta, arrays

    def _path(self, run: int, phase: int) -> Path:
        return self.folder / (f"run-{run}-{phase}.zip" if phase else f"run-{run}.zip")

    def _coupling(self, number: int) -> Path:
        return self.folder / f"coupling-{number}.zip"

    def _pack(self, name: str, theta: Theta) -> dict[str, Array]:
        return {f"{name}.{key}": part for key, part in self.packing.pack(theta).items()}

    def _unpack(self, name: str, arrays: dict[str, Array]) -> Theta:
        return self.packing.unpack(_named(name, arrays))


def _named(name: str, arrays: dict[str, Array]) -> dict[str, Array]:
    """Return the arrays whose names begin with a name and a dot, without these."""
    start = f"{name}."
    return {key.removeprefix(start): a for key, a in arrays.items() if key.startswith(start)}


def _round(t: int, record: dict[str, Any]) -> Round:
    """Return the record of round `t`."""
    likelihood = tuple(map(_number, record["log_likelihood"]))
    numbers = {name: _number(value) for name, value in record.items() if name != "log_likelihood"}
    if numbers["round"] != t:
        raise ValueError("its rounds are not in order")
    return Round(log_likelihood=likelihood, **numbers)


def _number(value: Any) -> Any:
    """Return `value` unchanged; raise unless it is a number."""
    if not isinstance(value, int | float):
        raise TypeError(f"a {type(value).__name__} is in the place of a number")
    float(value)  # an int may be too large for the sums to come
    return value
