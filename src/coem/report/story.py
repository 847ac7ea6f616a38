"""What there is to tell about a fitted model: plain data, from which a page is made."""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from coem.report.agreement import Agreement, agree
from coem.report.choice import Document, Teller
from coem.report.reading import read
from coem.report.recurrence import recurrence
from coem.report.texts import Texts, clean, excerpt, words_shown
from coem.report.truth import Truth, compare, compare_held_out
from coem.report.words import lengths_of, name_groups, names_of, words_of

N_WORDS = 12


@dataclass(frozen=True)
class Group:
    """One group: a cluster, a class or a topic.

    `size` counts its rows, `empty` those of them that say nothing in any view: nothing is known of
    where they belong, and they are in the group that is the most probable without looking.
    `words` maps a view to its `Words`; `classes` are the most frequent labels of its labelled rows
    with their numbers; `stability` is its record of `coem.selection.stability`.
    """

    label: object
    name: str
    size: int
    empty: int
    share: float
    probability: float | None  # mean of its rows
    agreement: float | None  # share of its rows on which the views agree
    words: dict
    typical: list
    doubtful: list
    classes: list
    stability: dict | None


@dataclass(frozen=True, eq=False)
class Assignments:
    """One entry for every row, in columns; `dataclasses.asdict` makes a table of them.

    `probability` and `second_probability` are NaN if the model has no posterior, `disagreement` if
    there is one view; `second` is None for a single group. `empty` marks rows that say nothing in
    any view: their probabilities are those of a row that nobody has looked at.
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
    """The shape of a view."""

    name: str
    family: str | None
    n_columns: int
    density: float
    n_empty: int


@dataclass(frozen=True, eq=False)
class Story:
    """What there is to tell about a fitted model; `to_dict` makes it JSON.

    Attributes
    ----------
    heading : str
        Title of the page.
    model : dict
        `kind` and `noun` of the model, `rounds`, `converged` (None if their number was fixed),
        `objective`, `parameters` that were set.
    n_rows : int
        Number of rows.
    views : list of ViewFacts
        The views.
    groups : list of Group
        The groups in the order of the model.
    assignments : Assignments
        The group of every row, and what it was chosen by.
    agreement : Agreement or None
        How far the views agree, if there are several.
    trace : dict
        Lists of one number a round: `objective`, and `agreement` of the views if it is recorded.
    runs : list of dict
        The restarts.
    stability : dict or None
        `summary`, `n_others`, `agreement` of the runs and a `table` of the groups, where it was
        examined.
    truth : Truth or None
        Groups beside known classes.
    documents : list of Document
        Rows for the search, all or a choice of them.
    settings : dict
        What the caller wants to be told as well.
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

    def to_dict(self):
        """Return the story in types that JSON knows; what is not a number is None."""
        return plain({f.name: getattr(self, f.name) for f in dataclasses.fields(self)})


def plain(value):
    """Return a value in the types of JSON: no arrays, no NaN."""
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


def tell(
    model,
    views,
    *,
    feature_names=None,
    ids=None,
    texts=None,
    titles=None,
    labels=None,
    held_out=None,
    stability=None,
    settings=None,
    heading=None,
    n_examples=5,
):
    """Return the story of a fitted model.

    Parameters
    ----------
    model : estimator
        A fitted mixture, `SphericalKMeans`, `MultiViewAgglomerative` or `AspectModel`.
    views : matrix, list, dict or Views
        Rows as the model takes them: those of `fit`, or others; for a tree those of `fit`.
    feature_names : dict of view to sequence of str, or sequence of str, optional
        Names of the columns; a sequence if there is one view.
    ids, texts, titles : sequences of length n_rows, optional
        What a document is called and what it says. Without `texts` rows are shown by their words.
    labels : array of shape (n_rows,), optional
        Known classes, -1, None, NaN or "" where there is none, to compare the groups with.
    held_out : HeldOut or dict, optional
        What `coem.selection.held_out` found for this classifier, or the `truth` of an earlier
        story as a dict: the labels are then compared with predictions that did not know them.
    stability : Stability or dict, optional
        What `coem.selection.stability` found for this model, or the `stability` of an earlier
        story of the same model and rows.
    settings : dict, optional
        More to be told on the page: files, arguments, versions.
    heading : str, optional
        Title of the page.
    n_examples : int, default=5
        Number of typical and of doubtful documents of a group.

    Returns
    -------
    story : Story
    """
    reading = read(model, views)
    columns = names_of(model, reading.views, feature_names)
    words = words_of(reading, columns, N_WORDS)
    names = _names(reading, words)
    shown = words_shown(reading.space, columns) if texts is None else None
    told = Texts(len(reading.groups), ids, texts, titles, shown)
    teller = Teller(reading, told, names)
    known = compare(reading, labels)
    truth = known if held_out is None else compare_held_out(reading, labels, held_out)
    agreement = agree(reading, teller.disputed(2 * n_examples))
    stability = recurrence(stability, reading)
    groups = _groups(reading, names, words, teller, known, agreement, stability, n_examples)
    return Story(
        heading=clean(heading or _heading(reading)),
        model=_facts(model, reading),
        n_rows=len(reading.groups),
        views=[_view(reading, name) for name in reading.views.names],
        groups=groups,
        assignments=_assignments(reading, told.ids if ids is None else ids, names),
        agreement=agreement,
        trace=_trace(model),
        runs=[_flat(run) for run in getattr(model, "runs_", [])],
        stability=stability,
        truth=truth,
        documents=teller.some(groups, agreement),
        settings={clean(k): v for k, v in (settings or {}).items()},
    )


def assign(model, views, ids, names=None):
    """Return the groups of rows, as `tell` would.

    Parameters
    ----------
    model : estimator
        A fitted model that `tell` knows.
    views : matrix, list, dict or Views
        Rows as the model takes them.
    ids : sequence of length n_rows
        What rows are called.
    names : sequence of str, optional
        What groups are called; else they are named by what the model calls them.

    Returns
    -------
    assignments : Assignments
    """
    reading = read(model, views)
    return _assignments(reading, ids, names or [clean(key) for key in reading.keys])


def _heading(reading):
    what = {"class": "classes", "topic": "topics"}.get(reading.noun, "groups")
    return f"{len(reading.groups):,} rows in {reading.n_groups} {what}"


def _names(reading, words):
    """Return the names of the groups: a class has one already."""
    if reading.noun == "class":
        return [clean(key) for key in reading.keys]
    return name_groups(words, lengths=lengths_of(reading.views))


def _groups(reading, names, words, teller, truth, agreement, stability, n_examples):
    """Return all groups."""
    sizes, k = reading.sizes, reading.n_groups
    empty = np.bincount(reading.groups[reading.blank], minlength=k)
    mean = [None] * k
    if reading.proba is not None:
        best = reading.proba[np.arange(len(reading.groups)), reading.groups]
        sums = np.bincount(reading.groups, weights=best, minlength=k)
        mean = [float(s / n) if n else None for s, n in zip(sums, sizes, strict=True)]
    return [
        Group(
            label=reading.keys[g],
            name=names[g],
            size=int(sizes[g]),
            empty=int(empty[g]),
            share=float(sizes[g] / sizes.sum()),
            probability=mean[g],
            agreement=agreement.groups[g] if agreement and sizes[g] else None,
            words=words[g],
            typical=teller.typical(g, n_examples),
            doubtful=teller.doubtful(g, n_examples),
            classes=_most_frequent(truth, g),
            stability=stability and {"n_others": stability["n_others"], **stability["table"][g]},
        )
        for g in range(k)
    ]


def _most_frequent(truth, group, n=3):
    """Return the classes that a group has most labelled rows of, with their numbers."""
    if truth is None:
        return []
    pairs = zip(truth.classes, truth.table[group], strict=True)
    return sorted(((c, m) for c, m in pairs if m), key=lambda pair: -pair[1])[:n]


def _assignments(reading, ids, names):
    """Return the columns of all rows."""
    rows, (first, second) = np.arange(len(reading.groups)), reading.order.T
    keys = np.array(reading.keys)
    nothing = np.full(len(rows), np.nan)
    chosen, next_best = nothing, nothing
    if reading.proba is not None:
        chosen = reading.proba[rows, first].astype(np.float64)
        if reading.n_groups > 1:
            next_best = reading.proba[rows, second].astype(np.float64)
    return Assignments(
        id=np.array([str(name) for name in ids], dtype=object),
        label=keys[first],
        name=np.array(names, dtype=object)[first],
        probability=chosen,
        second=keys[second] if reading.n_groups > 1 else np.full(len(rows), None),
        second_probability=next_best,
        disagreement=nothing if reading.disagreement is None else reading.disagreement,
        empty=reading.blank,
    )


def _facts(model, reading):
    """Return what there is to say about the model itself."""
    default = type(model)().get_params(deep=False)
    params = model.get_params(deep=False)
    changed = {k: v for k, v in params.items() if repr(v) != repr(default.get(k))}
    return {
        "kind": type(model).__name__,
        "noun": reading.noun,
        "rounds": getattr(model, "n_iter_", None),
        "converged": _converged(model),
        "objective": getattr(model, "objective_", None),
        "parameters": {name: excerpt(brief(value)) for name, value in changed.items()},
    }


def _converged(model):
    """Return whether a fit converged, or None where it was to run a fixed number of rounds."""
    converged = getattr(model, "converged_", None)
    # The patience of an aspect model is with held-out counts, and without them nothing ends it.
    waits = getattr(model, "patience", None) and getattr(model, "validation", True) is not None
    fixed = getattr(model, "tol", None) == 0 and not waits
    return None if fixed and not converged else converged


def brief(value):
    """Return a parameter as people write it, without the quotes, defaults and arrays of a repr."""
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return repr(float(value))  # a share of 1.0 is not a number of 1
    if isinstance(value, Mapping):
        return ", ".join(f"{clean(key)}: {brief(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(brief, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.repr)
        texts = ((name, brief(item)) for name, item in pairs if item is not None)
        told = ", ".join(f"{name}={text.removesuffix('.0')}" for name, text in texts)
        return f"{type(value).__name__}({told})"
    return clean(" ".join((value if isinstance(value, str) else repr(value)).split()))


def _view(reading, name):
    matrix = reading.views[name]
    filled = matrix.nnz if sp.issparse(matrix) else np.count_nonzero(matrix)
    cells = math.prod(matrix.shape)
    return ViewFacts(
        name=clean(name),
        family=reading.families.get(name),
        n_columns=int(matrix.shape[1]),
        density=float(filled / cells) if cells else 0.0,
        n_empty=int(reading.views[[name]].empty.sum()) if matrix.shape[1] else 0,
    )


def _trace(model):
    """Return the course of the fit, one number a round."""
    history = getattr(model, "history_", [])
    trace = {"objective": [float(record["objective"]) for record in history]}
    if len(getattr(model, "view_names_", ())) > 1 and history:
        rates = [record.get("agreement_rate") for record in history]
        if None not in rates:
            trace["agreement"] = [float(rate) for rate in rates]
    return trace


def _flat(record):
    """Return the fields of a record that are single values, and the same in every fit."""
    told = plain(record).items()
    return {k: v for k, v in told if not isinstance(v, list | dict) and k != "seconds"}


__all__ = ["Agreement", "Assignments", "Document", "Group", "Story", "Truth", "ViewFacts", "tell"]
