"""The story of a fitted model, from one reading of its rows."""

import math
from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from coem.io.registry import MACHINE
from coem.report.agreement import agree
from coem.report.choice import Teller
from coem.report.library import Library
from coem.report.links import links_of
from coem.report.map import DocumentMap
from coem.report.marks import marks_of
from coem.report.readers import read
from coem.report.recurrence import recurrence
from coem.report.story import Assignments, Group, Story, ViewFacts, brief, plain
from coem.report.texts import Texts, clean, excerpt, words_shown
from coem.report.timeline import as_dates, timeline_of
from coem.report.tree import tree_of
from coem.report.truth import compare, compare_held_out, known_labels
from coem.report.words import lengths_of, name_groups, names_of, words_of
from coem.views import as_views

N_WORDS = 12


def tell(
    model,
    views,
    *,
    lengths=None,
    reading=None,
    feature_names=None,
    ids=None,
    texts=None,
    titles=None,
    dates=None,
    labels=None,
    held_out=None,
    stability=None,
    settings=None,
    heading=None,
    n_examples=5,
    naming=None,
    map=True,
):
    """Return the story of a fitted model.

    Parameters
    ----------
    model : estimator
        A fitted mixture, `SphericalKMeans`, `MultiViewAgglomerative`, `AspectModel` or
        `HiddenMarkovModel`.
    views : matrix, list, dict or Views
        Rows in the form that the model takes: those of `fit`, or others. For a tree, pass those of
        `fit`.
    lengths : array-like of int, optional
        For a hidden Markov model, the number of rows of each sequence.
    reading : Reading, optional
        What `coem.report.read` returned for this model and these rows. With it, the model is not
        asked about the rows again.
    feature_names : dict of view to sequence of str, or sequence of str, optional
        Names of the columns; a sequence if there is one view.
    ids, texts, titles : sequences of length n_rows, optional
        Id, text and title of each document. Without `texts`, documents are shown by their words.
    dates : Dates or sequence of length n_rows, optional
        Dates of the documents, as `coem.text.dates.read_dates` takes them.
    labels : array of shape (n_rows,), optional
        Known classes to compare the groups with; -1, None, NaN or "" for a row without one.
    held_out : HeldOut or dict, optional
        What `coem.selection.held_out` found for this classifier, or the `truth` of an earlier
        story as a dict. The labels are then compared with predictions by models that were fitted
        without them.
    stability : Stability or dict, optional
        What `coem.selection.stability` found for this model, or the `stability` of an earlier
        story of the same model and rows.
    settings : dict, optional
        More facts for the page: files, arguments, versions.
    heading : str, optional
        Title of the page.
    n_examples : int, default=5
        Number of typical and of doubtful documents per group.
    naming : Naming, optional
        Names that people gave to the groups, and groups that count as one.
    map : bool, default=True
        Place the documents on a map. It takes some seconds for 20,000 documents.

    Returns
    -------
    story : Story
    """
    reading = read(model, views, lengths) if reading is None else _checked(reading, views)
    stability = recurrence(stability, reading)
    places = DocumentMap(model).fit(views, reading).places_ if map else None
    reading = reading if naming is None else naming.of(reading)  # which leaves the map as it is
    columns = names_of(model, reading.views, feature_names)
    words = words_of(reading, columns, N_WORDS)
    names = _names(reading, words) if naming is None else [clean(name) for name in naming.names]
    shown = words_shown(reading.space, columns) if texts is None else None
    documents = Texts(len(reading.groups), ids, texts, titles, shown)
    known = compare(reading, labels)
    given = None if known is None else known_labels(labels, len(reading.groups))
    dates = as_dates(dates, len(reading.groups))
    teller = Teller(reading, documents, names, given, dates)
    truth = known if held_out is None else compare_held_out(reading, labels, held_out)
    agreement = agree(reading, teller.disputed(2 * n_examples))
    groups = _groups(reading, names, words, teller, known, agreement, stability, n_examples)
    groups = groups if naming is None else _merged(groups, naming)
    library = _library(reading, columns, documents, teller)
    return Story(
        heading=clean(heading or _heading(reading, settings or {})),
        model=_facts(model, reading),
        n_rows=len(reading.groups),
        views=[_view(reading, name) for name in reading.views.names],
        groups=groups,
        assignments=_assignments(reading, documents.ids if ids is None else ids, names),
        agreement=agreement,
        trace=_trace(model, reading),
        runs=[_single_values(run) for run in getattr(model, "runs_", [])],
        stability=stability,
        truth=truth,
        documents=teller.some(groups, agreement),
        settings={clean(k): v for k, v in (settings or {}).items()},
        library=library,
        places=places,
        tree=tree_of(reading),
        timeline=timeline_of(reading, dates, columns, without=library.links),
    )


def assign(model, views, ids, names=None, lengths=None, naming=None, *, reading=None):
    """Return the groups of rows, with the values that `tell` gives them.

    Parameters
    ----------
    model : estimator
        A fitted model that `tell` knows.
    views : matrix, list, dict or Views
        Rows in the form that the model takes.
    ids : sequence of length n_rows
        Ids of the rows.
    names : sequence of str, optional
        Names of the groups; by default the model's own labels.
    lengths : array-like of int, optional
        For a hidden Markov model, the number of rows of each sequence.
    naming : Naming, optional
        Names that people gave to the groups, and groups that count as one. They replace `names`.
    reading : Reading, optional
        What `coem.report.read` returned for this model and these rows.

    Returns
    -------
    assignments : Assignments
    """
    reading = read(model, views, lengths) if reading is None else _checked(reading, views)
    if naming is not None:
        reading, names = naming.of(reading), naming.names
    return _assignments(reading, ids, names or [clean(key) for key in reading.keys])


def _library(reading, columns, documents, teller):
    """Return the texts of all documents, with what marks and links them."""
    marks = marks_of(reading, columns, documents.titled)
    return Library(documents, teller.all, marks, links_of(columns, documents))


def _checked(reading, views):
    """Return the reading; raise unless it has as many rows as the views."""
    n_rows = len(as_views(views))
    if len(reading.groups) != n_rows:
        raise ValueError(
            f"reading has {len(reading.groups)} rows and views {n_rows}; pass what "
            "coem.report.read returns for these views"
        )
    return reading


def _heading(reading, settings):
    """Return the default title of the page; it begins with the file if the settings name one."""
    what = {"class": "classes", "topic": "topics", "state": "states"}.get(reading.noun, "groups")
    file = f"{settings['file']}: " if "file" in settings else ""
    n_groups = int((reading.sizes > 0).sum()) if what == "groups" else reading.n_whole
    return f"{file}{len(reading.groups):,} documents in {n_groups} {what}"


def _names(reading, words):
    """Return the names of the groups: classes by themselves, others made of their words."""
    if reading.noun == "class":
        return [clean(key) for key in reading.keys]
    return name_groups(words, lengths=lengths_of(reading.views))


def _groups(reading, names, words, teller, truth, agreement, stability, n_examples):
    """Return the record of each group."""
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


def _merged(groups, naming):
    """Return the groups with their parts; what other runs say is of parts, and is left out."""
    into = naming.into.tolist()
    found = []
    for g, group in enumerate(groups):
        parts = naming.parts(g) if into[g] == g else []
        changed = into[g] != g or len(parts) > 1
        unknown = group.stability and {**dict.fromkeys(group.stability), "n_others": 0}
        reset = {"stability": unknown} if changed else {}
        gone = None if into[g] == g else into[g]
        parts = parts if len(parts) > 1 else []
        found.append(replace(group, named=g in naming.given, parts=parts, gone=gone, **reset))
    return found


def _most_frequent(truth, group, n=3):
    """Return the most frequent classes of a group, with their numbers of labelled rows."""
    if truth is None:
        return []
    pairs = zip(truth.classes, truth.table[group], strict=True)
    return sorted(((c, m) for c, m in pairs if m), key=lambda pair: -pair[1])[:n]


def _assignments(reading, ids, names):
    """Return the groups of all rows, in columns."""
    rows, (first, second) = np.arange(len(reading.groups)), reading.order.T
    keys = np.array(reading.keys)
    nothing = np.full(len(rows), np.nan)
    chosen, next_best = nothing, nothing
    if reading.proba is not None:
        chosen = reading.proba[rows, first].astype(np.float64)
        if reading.n_whole > 1:
            next_best = reading.proba[rows, second].astype(np.float64)
    return Assignments(
        id=np.array([str(name) for name in ids], dtype=object),
        label=keys[first],
        name=np.array(names, dtype=object)[first],
        probability=chosen,
        second=keys[second] if reading.n_whole > 1 else np.full(len(rows), None),
        second_probability=next_best,
        disagreement=nothing if reading.disagreement is None else reading.disagreement,
        empty=reading.blank,
    )


def _facts(model, reading):
    """Return the field `model` of a story."""
    default = type(model)().get_params(deep=False)
    params = _of_any_machine(model).get_params(deep=False)
    changed = {k: v for k, v in params.items() if repr(v) != repr(default.get(k))}
    return {
        "kind": type(model).__name__,
        "noun": reading.noun,
        "rounds": getattr(model, "n_iter_", None),
        "converged": _converged(model),
        "objective": getattr(model, "objective_", None),
        "parameters": {name: excerpt(brief(value)) for name, value in changed.items()},
    }


def _of_any_machine(model):
    """Return an unfitted copy of a model as a model file has it: without `n_jobs` and its like."""
    params = clone(model)
    owners = {"": params} | {
        name: value for name, value in params.get_params().items() if hasattr(value, "get_params")
    }
    for owner in owners.values():
        default = type(owner)().get_params(deep=False)
        owner.set_params(**{name: value for name, value in default.items() if name in MACHINE})
    return params


def _converged(model):
    """Return whether a fit converged, or None if the number of rounds was fixed."""
    converged = getattr(model, "converged_", None)
    # An aspect model uses its patience only if it has held-out counts.
    waits = getattr(model, "patience", None) and getattr(model, "validation", True) is not None
    fixed = getattr(model, "tol", None) == 0 and not waits
    return None if fixed and not converged else converged


def _view(reading, name):
    """Return the shape of a view."""
    matrix = reading.views[name]
    filled = matrix.nnz if sp.issparse(matrix) else np.count_nonzero(matrix)
    cells = math.prod(matrix.shape)
    return ViewFacts(
        name=clean(name),
        family=reading.families.get(name),
        n_columns=int(matrix.shape[1]),
        density=float(filled / cells) if cells else 0.0,
        n_empty=int(reading.views[[name]].empty.sum()) if matrix.shape[1] else 0,
        silent=name in reading.silent,
    )


def _trace(model, reading):
    """Return the field `trace` of a story: one number per round."""
    history = getattr(model, "history_", [])
    trace = {"objective": [float(record["objective"]) for record in history]}
    if reading.views.n_views - len(reading.silent) > 1 and history:
        rates = [record.get("agreement_rate") for record in history]
        if None not in rates:
            trace["agreement"] = [float(rate) for rate in rates]
    return trace


def _single_values(record):
    """Return the fields of a record that are single values, without the time that it took."""
    fields = plain(record).items()
    return {k: v for k, v in fields if not isinstance(v, list | dict) and k != "seconds"}
