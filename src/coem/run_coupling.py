"""Couplings of runs: when runs learn from each other, and which run learns from which."""

import warnings
from dataclasses import KW_ONLY, InitVar, dataclass
from numbers import Integral
from typing import Any, Literal

from coem.checks import check_choice, check_flag, check_number

Via = Literal["xy", "a", "b", "c", "d", "x", "rows"]
Among = Literal["all", "ring", "pairs", "self"]
Path = tuple[str, ...]  # the observed variables between H1 and H2, in their order

VIAS: tuple[Via, ...] = ("xy", "a", "b", "c", "d")  # of aspect models
HUB_VIAS: tuple[Via, ...] = ("x",)  # of the traffic model, whose X and Y are the same
ROW_VIAS: tuple[Via, ...] = ("rows",)  # of mixtures
AMONG: tuple[Among, ...] = ("all", "ring", "pairs", "self")

# The paths by which p(x|h) and p(y|h) are coupled; X is the paper's D, Y its W.
PATHS: dict[Via, tuple[Path, Path]] = {
    "xy": (("y",), ("x",)),  # Lin (2006), Sec. 3.3, steps 2 (a) and (b)
    "a": (("y",), ("y",)),  # Sec. 4.3: H1 - W - H2
    "b": (("x",), ("x",)),  # H1 - D - H2
    "c": (("y", "x"), ("y", "x")),  # H1 - W - D - H2
    "d": (("x", "y"), ("x", "y")),  # H1 - D - W - H2
}


@dataclass(frozen=True)
class RunCoupling:
    """How the runs of a fit are coupled, whatever the model is.

    Parameters
    ----------
    via : {"xy", "a", "b", "c", "d", "x", "rows"}, default="xy"
        What the components of two runs have in common. Aspect models take "xy" to "d" (see
        `AspectModel`), traffic models "x", and mixtures "rows".
    among : {"all", "ring", "pairs", "self"}, default="all"
        Which runs a run learns from: from all others, from the next one, from one partner that
        changes every time, or from itself alone (SCoEM, Lin 2006, Sec. 4.3). For two runs the first
        three are the same; for more, "all" was the best in every case measured.
    include_self : bool, optional
        Whether a run takes the mean of what it learns *and* of what it has itself. None is True
        for "rows", where few runs would otherwise forget much, and False for the others, as in Lin
        (2006).
    n_couplings : int, optional
        Number of couplings. None takes `rounds` of an aspect or traffic model, and 3 for mixtures.
    n_rounds : int, optional
        Rounds of every run before each coupling. None takes `max_iter` of an aspect or traffic
        model, and 15 for mixtures.
    itself : bool, optional
        Deprecated: ``among="self"`` says the same.
    """

    via: Via = "xy"
    among: Among = "all"
    itself: InitVar[bool | None] = None  # third, as it was
    _: KW_ONLY
    include_self: bool | None = None
    n_couplings: int | None = None
    n_rounds: int | None = None

    def __post_init__(self, itself: bool | None) -> None:
        """Check the fields, and translate the deprecated one."""
        check_choice("RunCoupling: via", self.via, (*VIAS, *HUB_VIAS, *ROW_VIAS))
        if itself is not None:
            check_flag("RunCoupling: itself", itself)
            if itself:
                _warn("RunCoupling(itself=True)", "RunCoupling(among='self')")
                object.__setattr__(self, "among", "self")
        check_choice("RunCoupling: among", self.among, AMONG)
        if self.include_self is not None:
            check_flag("RunCoupling: include_self", self.include_self)
        for name in ("n_couplings", "n_rounds"):
            check_number(f"RunCoupling: {name}", getattr(self, name), Integral, 1, optional=True)

    @property
    def includes_self(self) -> bool:
        """Whether a run takes the mean of what it learns and of what it has itself."""
        return self.via == "rows" if self.include_self is None else bool(self.include_self)

    @property
    def needs_counts(self) -> bool:
        """True if a path has a step from X to Y, which only the counts can tell."""
        return any(len(path) > 1 for path in PATHS.get(self.via, ()))

    def partners(self, n_runs: int, turn: int) -> list[list[int]]:
        """Return for every run the runs that it learns from; `turn` counts the couplings."""
        runs = range(n_runs)
        if self.among == "self":
            return [[run] for run in runs]
        if self.among == "all":
            return [[other for other in runs if other != run] for run in runs]
        if self.among == "ring":
            return [[(run + 1) % n_runs] if n_runs > 1 else [] for run in runs]
        return _pairs(n_runs, turn)


def _pairs(n_runs: int, turn: int) -> list[list[int]]:
    """Return the partners of a tournament: the last seat stays, the others move on.

    An odd run waits for one coupling.
    """
    seats = [*range(n_runs)] if n_runs % 2 == 0 else [*range(n_runs), -1]
    moving = seats[:-1]
    shift = turn % max(len(moving), 1)
    seats = [seats[-1], *moving[shift:], *moving[:shift]]
    found: dict[int, int] = {}
    for i in range(len(seats) // 2):
        a, b = seats[i], seats[-1 - i]
        found |= {a: b, b: a}
    return [[found[run]] if found[run] >= 0 else [] for run in range(n_runs)]


def RowCoupling(
    times: int = 3, after: int = 15, among: Among = "all", own: bool = True
) -> RunCoupling:
    """Return a coupling of mixtures. Deprecated: use ``RunCoupling("rows", ...)``.

    Parameters
    ----------
    times, after : int
        Now `n_couplings` and `n_rounds`.
    among : {"all", "ring", "pairs"}
        As for `RunCoupling`.
    own : bool
        Now `include_self`.
    """
    _warn("RowCoupling(times, after, own=...)", "RunCoupling('rows', n_couplings=..., ...)")
    for name, value in (("times", times), ("after", after)):
        check_number(f"RowCoupling: {name}", value, Integral, 1)
    check_flag("RowCoupling: own", own)
    return RunCoupling("rows", among, include_self=own, n_couplings=times, n_rounds=after)


@dataclass(frozen=True)
class SavedRowCoupling:
    """A `RowCoupling` of an old model file. It is read as a `RunCoupling`."""

    times: int
    after: int
    among: Among
    own: bool

    def __new__(cls, **fields: Any) -> Any:
        """Return the coupling of today."""
        return RunCoupling(
            "rows",
            fields["among"],
            include_self=fields["own"],
            n_couplings=fields["times"],
            n_rounds=fields["after"],
        )


def _warn(old: str, new: str) -> None:
    message = f"{old} is deprecated and will go with version 0.3; write {new}"
    warnings.warn(message, FutureWarning, stacklevel=4)


def read_coupling(value: Any, vias: tuple[Via, ...], name: str) -> RunCoupling | None:
    """Return the coupling that a user names or gives, or None; `vias` are those of the model."""
    if value is None:
        return None
    if isinstance(value, RunCoupling):
        check_choice(f"via of {name}", value.via, vias)
        return value
    if not isinstance(value, str) or value not in vias:
        names = ", ".join(map(repr, vias))
        raise ValueError(f"{name} must be None, one of {names} or a RunCoupling, got {value!r}")
    return RunCoupling(value)
