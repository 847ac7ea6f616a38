"""What a run of an aspect or a traffic model takes down on its way, and how that is kept."""

from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from sklearn.utils import Bunch

from coem.io.checkpoint import Before
from coem.latent.aspect import Aspects, Tables
from coem.latent.traffic import Traffic
from coem.protocols import Parameters
from coem.records import Records


class CountTheta(Parameters, Tables, Protocol):
    """Parameters of a model of counts."""

    @property
    def plain(self) -> Aspects | Traffic:
        """The parameters as people read them."""
        ...


Theta = TypeVar("Theta", bound=CountTheta)


@dataclass(frozen=True)
class Candidate(Generic[Theta]):
    """Parameters that a run may end with, and how good they are."""

    theta: Theta
    objective: float
    kl: float
    held_out: float | None  # log likelihood of the held-out counts, if there are any

    @property
    def merit(self) -> float:
        """What decides between candidates; larger is better."""
        return self.objective if self.held_out is None else self.held_out


@dataclass
class Journal(Generic[Theta]):
    """The records of one run, and its best parameters so far."""

    next_start: Theta | None  # where the next phase starts; None while a phase runs
    phase_start: Candidate[Theta] | None = None  # where this phase started, if it may go back
    kl_before: float = 0.0  # at the start of this phase
    rounds: Records = field(default_factory=Records)
    phases: Records = field(default_factory=Records)
    best: Candidate[Theta] | None = None

    def offer(self, candidate: Candidate[Theta]) -> None:
        """Keep the best by the held-out counts; without such counts, keep the latest."""
        latest = self.best is None or candidate.held_out is None
        if latest or (self.best is not None and candidate.merit > self.best.merit):
            self.best = candidate

    def take_start(self) -> Theta:
        """Return where the next phase starts, and forget it, so that the run can free it."""
        theta, self.next_start = self.next_start, None
        assert theta is not None
        return theta


# -- checkpoints --------------------------------------------------------------------------------

CANDIDATES = ("best", "phase_start")


def noted(before: Before[Theta], journal: Journal[Theta]) -> Before[Theta]:
    """Return what a run brings with it, and its journal in the middle of a phase."""
    found = {name: getattr(journal, name) for name in CANDIDATES}
    there = {name: candidate for name, candidate in found.items() if candidate is not None}
    notes = {
        "kl_before": journal.kl_before,
        "rounds": [dict(record) for record in journal.rounds],
        "phases": [dict(record) for record in journal.phases],
        **{name: [c.objective, c.kl, c.held_out] for name, c in there.items()},
    }
    tables = {name: candidate.theta for name, candidate in there.items()}
    return replace(before, notes=notes, tables=tables)


def recalled(before: Before[Theta]) -> Journal[Theta]:
    """Return the journal that a run had; raise ValueError if it is not valid."""
    try:
        notes, tables = before.notes, before.tables
        found = {name: Candidate(tables[name], *_merits(notes[name])) for name in tables}
        return Journal(
            None,
            found.get("phase_start"),
            _number(notes["kl_before"]),
            Records(_record(record) for record in notes["rounds"]),
            Records(_record(record) for record in notes["phases"]),
            found.get("best"),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"the checkpoint has no journal of a run ({error}); delete its folder"
        ) from error


def _merits(values: Any) -> tuple[float, float, float | None]:
    objective, kl, held_out = values
    return _number(objective), _number(kl), None if held_out is None else _number(held_out)


def _record(fields: Any) -> Bunch:
    """Return a record of a round or a phase: numbers, flags, and None where nothing is known."""
    known = {name: value if value is None else _number(value) for name, value in fields.items()}
    return Bunch(**known)


def _number(value: Any) -> Any:
    if not isinstance(value, int | float):
        raise TypeError(f"a {type(value).__name__} is in the place of a number")
    return value
