"""What the report says about a fitted model, as plain data from which the page is made."""

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from coem.report.agreement import Agreement
from coem.report.texts import clean
from coem.report.timeline import Timeline
from coem.report.tree import Tree
from coem.report.truth import Truth


@dataclass(frozen=True)
class Group:
    """One group: a cluster, a class or a topic.

    `size` is the number of its rows. `empty` is the number of those that are empty in every view:
    the model cannot know where they belong, and puts them into the group of the largest weight.
    `probability` is the mean over its rows, `agreement` the share of its rows on which the views
    agree. `words` maps a view to its `Words`. `classes` are the most frequent labels of its
    labelled rows with their numbers. `stability` is its record of `coem.selection.stability`.
    `named` says that people gave it its name. `parts` are the numbers of the groups that were
    merged to make it, and `gone` is the number of the group that it was merged into; such a group
    has no rows.
    """

    label: object
    name: str
    size: int
    empty: int
    share: float
    probability: float | None
    agreement: float | None
    words: dict
    typical: list
    doubtful: list
    classes: list
    stability: dict | None
    named: bool = False
    parts: list = field(default_factory=list)
    gone: int | None = None


@dataclass(frozen=True, eq=False)
class Assignments:
    """The groups of all rows, one column per field; `vars` makes a table of them.

    `probability` and `second_probability` are NaN if the model has no posterior. `disagreement` is
    NaN if there is one view. `second` is None if there is one group. `empty` marks rows that are
    empty in every view; their probabilities are the weights of the groups.
    """

    id: np.ndarray
    label: np.ndarray
    name: np.ndarray
    probability: np.ndarray
    second: np.ndarray
    second_probability: np.ndarray
    disagreement: np.ndarray
    empty: np.ndarray


@dataclass(frozen=True)
class ViewFacts:
    """The shape of a view; `silent` if the model leaves it out."""

    name: str
    family: str | None
    n_columns: int
    density: float
    n_empty: int
    silent: bool = False


@dataclass(frozen=True, eq=False)
class Story:
    """What the report says about a fitted model; `to_dict` makes it JSON.

    Attributes
    ----------
    heading : str
        Title of the page.
    model : dict
        `kind` of the model, `noun` for its groups, `rounds`, `converged` (None if the number of
        rounds was fixed), `objective`, and the `parameters` that differ from their defaults.
    n_rows : int
        Number of rows.
    views : list of ViewFacts
        The views.
    groups : list of Group
        The groups in the order of the model.
    assignments : Assignments
        The group of each row, with its probability and the second choice.
    agreement : Agreement or None
        How much the views agree, if there are several.
    trace : dict
        Lists with one number per round: `objective`, and `agreement` of the views if the model
        recorded it.
    runs : list of dict
        The restarts.
    stability : dict or None
        `summary`, `n_others`, `agreement` of the runs and a `table` of the groups, if `tell` was
        given a stability.
    truth : Truth or None
        The groups compared with known classes.
    documents : list of Document
        Rows for the search: all of them, or a choice.
    settings : dict
        What the caller wants on the page besides.
    library : Library or None
        The texts of all documents, of which the page takes what it has room for. `to_dict` leaves
        it out.
    places : ndarray of shape (n_rows, 2) or None
        The map: a point for each row, from 0 to 1. See `DocumentMap`.
    tree : Tree or None
        Which groups are close; None if there are fewer than three with rows.
    timeline : Timeline or None
        The groups over time, if there are dates in more than one period.
    sampled : int or None
        The number of rows that everything here is about but `n_rows`, and the sizes, shares and
        probabilities of the groups; None if that is all of them.
    """

    heading: str
    model: dict
    n_rows: int
    views: list
    groups: list
    assignments: Assignments
    agreement: Agreement | None
    trace: dict
    runs: list
    stability: dict | None
    truth: Truth | None
    documents: list
    settings: dict = field(default_factory=dict)
    library: object = field(default=None, repr=False)
    places: np.ndarray | None = None
    tree: Tree | None = None
    timeline: Timeline | None = None
    sampled: int | None = None

    @property
    def whole(self):
        """The groups without those that were merged into others."""
        return [group for group in self.groups if group.gone is None]

    @property
    def shared(self):
        """View -> words that are frequent in many groups, those of the most groups first."""
        found = {}
        for group in self.whole:
            for view, words in group.words.items():
                for word, _ in words.shared:
                    found.setdefault(view, Counter())[word] += 1
        return {view: [word for word, _ in times.most_common()] for view, times in found.items()}

    def to_dict(self):
        """Return the story in types that JSON has; NaN and infinities become None."""
        names = [f.name for f in dataclasses.fields(self) if f.name != "library"]
        return plain({name: getattr(self, name) for name in names})


def plain(value):
    """Return a value in types that JSON has; NaN and infinities become None."""
    if dataclasses.is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if hasattr(value, "items"):
        return {str(key): plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else clean(value)


def brief(value):
    """Return a parameter as people write it, without the quotes, defaults and arrays of a repr."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return repr(float(value))  # keeps the .0: a share of 1.0 is not a number of 1
    if isinstance(value, Mapping):
        return ", ".join(f"{clean(key)}: {brief(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(brief, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr)
        texts = ((name, brief(item)) for name, item in fields if item is not None)
        arguments = ", ".join(f"{name}={text.removesuffix('.0')}" for name, text in texts)
        return f"{type(value).__name__}({arguments})"
    return clean(" ".join((value if isinstance(value, str) else repr(value)).split()))
