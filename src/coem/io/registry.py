"""The classes whose objects a model file may contain. coem creates no other objects from files."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import Bunch

from coem import families, schedules
from coem.coupling import CoEM, Joint
from coem.families.bernoulli import BernoulliStats, BernoulliTheta
from coem.families.categorical import CategoricalStats
from coem.families.gaussian import GaussianStats, GaussianTheta
from coem.families.mixture_of import MixtureOfStats, MixtureOfTheta
from coem.families.multinomial import MultinomialStats
from coem.families.von_mises_fisher import VonMisesFisherStats, VonMisesFisherTheta
from coem.kernels.sparse_sums import SparseSums
from coem.kernels.sparse_tables import SparseTable
from coem.latent.aspect import Aspects
from coem.latent.chain import ChainStats
from coem.latent.markov import MarkovStats
from coem.latent.mixture import Expected
from coem.latent.traffic import Traffic
from coem.latent.transitions import HubLink, Link
from coem.online import Running
from coem.posterior import Hard, Soft
from coem.run_coupling import RunCoupling, SavedRowCoupling

# Parameters of any estimator that say how a machine works, and nothing about a model.
MACHINE = frozenset({"n_jobs", "verbose", "engine", "checkpoint", "memory"})


@dataclass(frozen=True)
class Entry:
    """A registered class and its options; see `register`."""

    cls: type
    name: str
    skip: frozenset[str] = field(default_factory=frozenset)
    drop: frozenset[str] = field(default_factory=frozenset)
    absent: frozenset[str] = field(default_factory=frozenset)
    patterns: frozenset[str] = field(default_factory=frozenset)
    spans: frozenset[str] = field(default_factory=frozenset)
    check: Callable[[Any], None] | None = None


_by_name: dict[str, Entry] = {}
_by_class: dict[type, Entry] = {}


def register(
    cls: type,
    *,
    name: str | None = None,
    skip: tuple[str, ...] = (),
    drop: tuple[str, ...] = (),
    absent: tuple[str, ...] = (),
    patterns: tuple[str, ...] = (),
    spans: tuple[str, ...] = (),
    check: Callable[[Any], None] | None = None,
) -> type:
    """Allow objects of a class in model files. You can use it as a decorator.

    Register your own class, such as a family, before you save its objects. In another program,
    register it again before you load them.

    Parameters
    ----------
    cls : type
        A named tuple, a dataclass, a subclass of list or dict, a scikit-learn estimator, or a
        class whose objects are fully described by their attributes.
    name : str, optional
        The name of the class in files; by default the name of the class in Python.
    skip : tuple of str
        Parameters of an estimator, or attributes, that make sense only on this machine. They are
        never saved, and a loaded estimator has their defaults. The parameters `n_jobs`, `verbose`,
        `engine`, `checkpoint` and `memory` of an estimator are among them in any case.
    drop : tuple of str
        Parameters of an estimator that are saved if possible. If not, a loaded estimator has their
        defaults.
    absent : tuple of str
        Fields whose value may be something that cannot be saved, such as a function. A loaded
        object then has a `coem.io.Absent` in its place.
    patterns : tuple of str
        Parameters of an estimator that are regular expressions. Those that could take for ever are
        loaded only if the caller of `coem.load` trusts them.
    spans : tuple of str
        Parameters of an estimator that are the least and the most words of an n-gram. Long ones are
        loaded only if the caller trusts them.
    check : function, optional
        Called with every loaded object. It should raise an error if the object is inconsistent.

    Returns
    -------
    cls : type
        The class that was passed in.
    """
    name = cls.__name__ if name is None else name
    known = _by_name.get(name)
    if known is not None and (known.cls.__module__, known.cls.__qualname__) != (
        cls.__module__,
        cls.__qualname__,
    ):
        raise ValueError(f"{name!r} is {known.cls} already; register your class under another name")
    machine = MACHINE if issubclass(cls, BaseEstimator) else frozenset()
    sets = frozenset(drop), frozenset(absent), frozenset(patterns), frozenset(spans)
    entry = Entry(cls, name, frozenset(skip) | machine, *sets, check)
    if known is not None:
        del _by_class[known.cls]
    _by_name[name] = _by_class[cls] = entry
    return cls


def entry_of(cls: type) -> Entry | None:
    """Return the entry of a class, or None; entries of parent classes do not count."""
    return _by_class.get(cls)


def entry_named(name: Any) -> Entry:
    """Return the entry of the class with this name in files."""
    if not isinstance(name, str) or name not in _by_name:
        raise ValueError(
            f"it contains a {name!r}, which this version of coem does not know; if the class is "
            "yours, pass it to coem.io.register first"
        )
    return _by_name[name]


for _cls in (
    *families.FAMILIES.values(),
    *(families.MixtureOf, MixtureOfTheta, MixtureOfStats),
    *(BernoulliTheta, GaussianTheta, VonMisesFisherTheta, Aspects, Traffic),
    *(BernoulliStats, CategoricalStats, GaussianStats, MultinomialStats, VonMisesFisherStats),
    *(schedules.Constant, schedules.Linear, schedules.Geometric, schedules.Steps, schedules.Later),
    *(schedules.StepSize, Running, Expected, ChainStats, MarkovStats),
    *(RunCoupling, Link, HubLink, Bunch),
    *(CoEM, Joint, Soft, Hard),
):
    register(_cls)
register(SavedRowCoupling, name="RowCoupling")
register(SparseTable, check=SparseTable.check)
register(SparseSums, check=SparseSums.check)
