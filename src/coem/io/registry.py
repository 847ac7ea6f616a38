"""The classes whose objects a model file may hold. No other class is ever made from a file."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sklearn.utils import Bunch

from coem import families, schedules
from coem.families.bernoulli import BernoulliStats, BernoulliTheta
from coem.families.categorical import CategoricalStats
from coem.families.gaussian import GaussianStats, GaussianTheta
from coem.families.multinomial import MultinomialStats
from coem.families.von_mises_fisher import VonMisesFisherStats, VonMisesFisherTheta
from coem.latent.aspect import Aspects
from coem.latent.mixture import Expected
from coem.latent.traffic import Traffic
from coem.latent.transitions import HubLink, Link
from coem.run_coupling import RunCoupling


@dataclass(frozen=True)
class Entry:
    """What is known of a class: see `register`."""

    cls: type
    name: str
    skip: frozenset[str] = field(default_factory=frozenset)
    drop: frozenset[str] = field(default_factory=frozenset)
    absent: frozenset[str] = field(default_factory=frozenset)
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
    check: Callable[[Any], None] | None = None,
) -> type:
    """Let objects of a class be part of model files; usable as a decorator.

    A class of your own, such as a family, has to be registered before its objects are saved, and
    again before they are loaded.

    Parameters
    ----------
    cls : type
        A named tuple, a dataclass, a subclass of list or dict, a scikit-learn estimator, or a
        class whose objects are what their attributes say.
    name : str, optional
        What the class is called in files.
    skip : tuple of str
        Parameters of an estimator, or attributes, that belong to this machine and are never saved:
        a loaded estimator has their defaults.
    drop : tuple of str
        Parameters of an estimator that are saved if they can be, and else left at their defaults.
    absent : tuple of str
        Fields that may hold something that no file can, such as a function. A `coem.io.Absent`
        is then in its place.
    check : function, optional
        Called with every loaded object; raises an error if it does not fit together.

    Returns
    -------
    cls : type
        The class.
    """
    name = cls.__name__ if name is None else name
    known = _by_name.get(name)
    if known is not None and (known.cls.__module__, known.cls.__qualname__) != (
        cls.__module__,
        cls.__qualname__,
    ):
        raise ValueError(f"{name!r} is {known.cls} already; register the class by another name")
    entry = Entry(cls, name, frozenset(skip), frozenset(drop), frozenset(absent), check)
    if known is not None:
        del _by_class[known.cls]
    _by_name[name] = _by_class[cls] = entry
    return cls


def entry_of(cls: type) -> Entry | None:
    """Return what is known of a class: of itself, not of those above it."""
    return _by_class.get(cls)


def entry_named(name: Any) -> Entry:
    """Return the class that is called so in files."""
    if not isinstance(name, str) or name not in _by_name:
        raise ValueError(
            f"it holds a {name!r}, which this coem does not know; if the class is yours, pass it "
            "to coem.io.register first"
        )
    return _by_name[name]


for _cls in (
    *families.FAMILIES.values(),
    *(BernoulliTheta, GaussianTheta, VonMisesFisherTheta, Aspects, Traffic),
    *(BernoulliStats, CategoricalStats, GaussianStats, MultinomialStats, VonMisesFisherStats),
    *(schedules.Constant, schedules.Linear, schedules.Geometric, schedules.Steps, schedules.Later),
    *(Expected, RunCoupling, Link, HubLink, Bunch),
):
    register(_cls)
