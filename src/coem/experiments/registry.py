"""Find the experiments: every module of a paper's folder is one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from coem.experiments.code import digest
from coem.experiments.results import Results, Table
from coem.experiments.verdict import Verdict

HERE = Path(__file__).parent
PARTS = ("trials", "measure", "judge", "tabulate", "draw")


@dataclass(frozen=True)
class Experiment:
    """A figure or a table of a paper; `coem.experiments` says what each part is.

    Parameters
    ----------
    name : str
        Paper and experiment: "bickel-scheffer-2005/figure-1".
    title : str
        What it shows, in a line.
    code : str
        A digest of the code that measures. Trials are run again if it has changed.
    needs : tuple of str
        The data sets that it reads.
    """

    name: str
    title: str
    code: str
    trials: Callable[[bool], Sequence[Mapping[str, Any]]]
    measure: Callable[..., Mapping[str, Any] | Sequence[Mapping[str, Any]]]
    judge: Callable[[Results], Verdict]
    tabulate: Callable[[Results], Table]
    draw: Callable[[Results, Any], None]
    needs: tuple[str, ...] = ()


def names() -> list[str]:
    """Return the names of all experiments. Nothing of them is imported."""
    files = (p for p in HERE.glob("*/*.py") if not p.name.startswith("_"))
    return sorted(f"{p.parent.name}/{p.stem}".replace("_", "-") for p in files)


def find(wanted: Sequence[str]) -> list[str]:
    """Return the names of the experiments that are wanted: by their names or those of papers.

    Nothing wanted means all.

    Examples
    --------
    >>> from coem.experiments import find
    >>> find(["bickel-scheffer-2005/figure-1"])
    ['bickel-scheffer-2005/figure-1']
    """
    known = names()
    papers = {name.partition("/")[0] for name in known}
    for name in wanted:
        if name not in papers and name not in known:
            near = get_close_matches(name, [*known, *papers], n=1)
            hint = f"did you mean {near[0]!r}?" if near else "coem reproduce --list shows all"
            raise ValueError(f"there is no experiment or paper {name!r}; {hint}")
    return [n for n in known if not wanted or n in wanted or n.partition("/")[0] in wanted]


def load(name: str) -> Experiment:
    """Return an experiment."""
    if name not in names():
        find([name])  # raises, unless it is a paper
        raise ValueError(f"{name!r} is a paper; name one of its experiments")
    module = import_module(f"coem.experiments.{name.replace('-', '_').replace('/', '.')}")
    missing = [part for part in PARTS if not callable(getattr(module, part, None))]
    if missing or not module.__doc__:
        raise TypeError(f"the experiment {name} has no {missing[0] if missing else 'docstring'}")
    return Experiment(
        name=name,
        title=module.__doc__.splitlines()[0].rstrip("."),
        code=digest(Path(str(module.__file__))),
        needs=tuple(getattr(module, "NEEDS", ())),
        **{part: getattr(module, part) for part in PARTS},
    )
