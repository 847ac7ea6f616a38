"""`cluster`: groups of documents."""

import os
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from coem import selection
from coem.checks import check_choice, check_number
from coem.estimators import MixtureClusterer, SphericalKMeans
from coem.io.kept import Part
from coem.metrics import cluster_entropy
from coem.recipes.defaults import (
    LENGTH,
    MAX_DF,
    MAX_ITER,
    METHODS,
    MIN_DF,
    NGRAMS,
    RESTARTS,
    STARTS,
    STOP_WORDS,
    TOL,
)
from coem.recipes.directions import keep_directions
from coem.recipes.in_parts import Few, assigned, check_few, counted, few_of, fit_all
from coem.recipes.labels import label_of, labels_of
from coem.recipes.listener import Listener
from coem.recipes.record import trust_of
from coem.recipes.result import Job, Result, begin
from coem.recipes.sizes import choose
from coem.recipes.taking_over import read_earlier, with_names
from coem.recipes.views import (
    check_directions,
    check_size,
    families,
    group_views,
    n_jobs,
    to_views,
)
from coem.views import Views


def cluster(
    table: Any,
    *,
    text: Any = None,
    views: Any = None,
    encoder: Any = None,
    id: str | None = None,
    date: str | None = "auto",
    stop_words: Any = STOP_WORDS,
    min_df: int = MIN_DF,
    max_df: float = MAX_DF,
    max_features: int | None = None,
    ngrams: int = NGRAMS,
    max_length: float | None = LENGTH,
    latent: int | str | None = "auto",
    method: str = "em",
    evidence: str = "auto",
    k: int | None = None,
    label: str | None = None,
    restarts: int = RESTARTS,
    max_iter: int = MAX_ITER,
    seed: int = 0,
    threads: int | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    skip_bad: bool = False,
    names_from: str | os.PathLike[str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
) -> Result:
    """Find groups of documents, and name them, as ``coem cluster`` does.

    Several views teach each other (co-EM). Latent directions of the texts are a further view where
    they help (see `latent`). Of several runs from
    different starts the one that agrees most with the others is kept.

    Parameters
    ----------
    table : table or path
        A pandas or polars DataFrame, a pyarrow Table, a list of dicts, a dict of lists, the name
        of a file or folder that `coem.io.tables.read_table` reads, or a corpus or its folder.
    text : str or list of str, optional
        The columns of the text; several make one view, "text".
    views : dict, optional
        More views by name, as `coem.text.TextViews` takes them: ``{"links": "refs:list"}``. Columns
        can also be joined as in the program: ``"title+body"``. Without `text` and `views` columns
        are guessed, and `notes` says how.
    encoder : str or callable, optional
        What makes the vectors of views such as ``{"meaning": "body:embed"}``: the name of a model
        or its folder, as `coem.text.NamedEncoder` takes it, or any encoder that `coem.text.Embed`
        takes. Vectors of a model with a name are kept in the user's cache.
    id : str, optional
        The column with the ids of the rows. Otherwise a column "id", or their numbers from 1;
        "none" takes the numbers in any case.
    date : str, "auto" or None, default="auto"
        The column with the dates of the rows, for the page: groups over time, and the words of a
        period. They have no part in finding groups. "auto" takes the first column that looks like
        dates, if there is one, and `notes` says which; None takes none. ``"when:dmy"`` and
        ``"when:mdy"`` say whether the day or the month comes first in 1/2/2025. See
        `coem.text.dates.read_dates` for the ways of writing that are known.
    stop_words : str, list of str or None, default="auto"
        Words that do not count: a list of them, or the names of lists, as `coem.text.TextViews`
        takes them. "auto" finds the languages of the texts. `settings` has what it found.
    min_df : int, default=2
        Rows that a word must be in.
    max_df : float, default=1.0
        The largest share of the rows that a word may be in.
    max_features : int, optional
        The number of most frequent words of a view that are kept.
    ngrams : int, default=1
        The longest run of words that counts as one.
    max_length : float, default=150
        Words that a text counts at most: longer ones are scaled down. None counts all.
    latent : int, "auto" or None, default="auto"
        The number of latent directions of the texts, which are a further view. None leaves them
        out. "auto" takes 100, unless there are views of links or lists, too few rows or words, or
        several texts that find groups together. The last needs a trial fit, which ``"fixed"``
        evidence and k-means do without.
    method : {"em", "k-means"}, default="em"
        "em" fits mixtures. "k-means" is `SphericalKMeans` on the same views: every row goes to the
        nearest centre by angles. It has no probabilities, so `coem explain` has nothing to explain,
        and `evidence` and `max_length` have no meaning. If k is not given, mixtures choose it.
    evidence : {"auto", "fixed"}, default="auto"
        "auto" leaves out views that share nothing with the others, finds how loudly each view
        speaks, and makes probabilities as sure as the other runs support
        (`MixtureClusterer.calibrate`). "fixed" uses all views as they are, and the posteriors of
        the kept run.
    k : int, optional
        The number of groups. If it is None it is chosen, and `notes` says why.
    label : str, optional
        The column of the true classes, to judge the groups by. They are not learned from.
    restarts : int, default=10
        The number of runs, at least 2.
    max_iter : int, default=200
        The most rounds of a run.
    seed : int, default=0
        The same seed gives the same bits.
    threads : int, optional
        The number of threads; None takes all processors. It never changes a bit of the result.
    encoding, delimiter, sheet, skip_bad : optional
        How a file is read, as in `read_table`.
    names_from : path, optional
        The folder of an earlier run. A group has the name that ``coem name`` or `Result.name` gave
        to a group there, if the two have most of each other's documents; these are matched by
        their ids. Groups that were merged there are merged again. `notes` says what was found.
    checkpoint : path, optional
        A folder that keeps the state of the fits while they run. If a call was stopped, the same
        call goes on from there and ends with the same bits; only `threads` may differ. At the end
        the folder is removed.
    listener : Listener, optional
        Receives progress and notes. By default notes are kept in `notes` of the result.

    Returns
    -------
    result : Result
        The groups, the model, the page, and `save`.

    Examples
    --------
    >>> import coem
    >>> ships, bread = "captain and crew sail the ship", "flour and butter for the bread"
    >>> found = coem.cluster({"text": [ships, bread] * 5}, text="text", k=2, restarts=2)
    >>> len(set(found.labels[::2].tolist())), bool(found.labels[0] == found.labels[1])
    (1, False)
    >>> sorted(group.name for group in found.groups)
    ['bread, butter, flour', 'captain, crew, sail']
    """
    given = dict(locals())
    check_number("restarts", restarts, Integral, 2)
    _check_method(given)
    earlier = read_earlier(names_from)
    job = begin("cluster", given)
    settings, documents, listener = job.settings, job.documents, job.listener
    settings["label"] = label_of(label, documents, listener)
    with job.fits():
        reader = group_views(settings, documents, settings["label"])
        data = to_views(reader, documents, settings, listener, label=settings["label"])
        if method == "k-means":
            check_directions(reader)
        few = few_of(job, data)
        k = settings["k"] or _choose(job, few.views, reader)
        check_size(k, data)
        check_few(k, few)
        views = keep_directions(settings, reader, few.views, k, listener, job.kept)
        few, data = replace(few, views=views), views if few.rows is None else data[[*views.names]]
        found = fit_all(few, data, fit_groups(job, views, k, families(reader)))
        with listener.noting_warnings():
            result = _result(job, reader, few, data, found)
            return with_names(result, earlier, listener)


def _check_method(given: dict[str, Any]) -> None:
    """Refuse, before any work, what spherical k-means would not use."""
    check_choice("method", given["method"], METHODS)
    if given["method"] == "em":
        return
    for name, default in {"evidence": "auto", "max_length": LENGTH}.items():
        if given[name] != default:
            why = "rows have length 1" if name == "max_length" else "there are no probabilities"
            raise ValueError(f"{name}={given[name]!r} is for method='em': with k-means {why}")


def _choose(job: Job, views: Any, reader: Any) -> int:
    """Return the number of groups that `choose_k` recommends for the columns of the table.

    Latent directions have no part in it: ``coem choose-k`` gives the same number.
    """
    own = {name: views[name] for name, spec in reader.views_.items() if spec["kind"] != "latent"}
    family = {name: found for name, found in families(reader).items() if name in own}
    choice = choose(job, Views(own), family)
    job.listener.note(f"k was not given: {choice.best} groups ({choice.reason})")
    return int(choice.best)


def fit_groups(job: Job, views: Any, k: int, family: Any) -> Any:
    """Fit several runs, and return the central one with the stability of its groups."""
    settings, listener = job.settings, job.listener
    model = _model(settings, k, family, job.part("runs"))
    with listener.fitting("runs", settings["restarts"]) as bar, listener.noting_warnings():
        return selection.stability(
            model,
            views,
            n_runs=settings["restarts"],
            keep="central",
            random_state=settings["seed"],
            n_jobs=n_jobs(settings),
            on_run=lambda fit: bar.step(),
        )


def _model(settings: dict[str, Any], k: int, family: Any, part: Part | None) -> Any:
    """Return the model that is fitted to the views."""
    if settings["method"] == "k-means":
        how = {"max_iter": settings["max_iter"], "checkpoint": part}
        return SphericalKMeans(k, n_init=STARTS, **how)
    evidence, max_iter = settings["evidence"], settings["max_iter"]
    how = {"evidence": evidence, "max_iter": max_iter, "tol": TOL, "checkpoint": part}
    return MixtureClusterer(k, family=family, **how)


def _result(job: Job, reader: Any, few: Few, data: Any, found: Any) -> Result:
    """Return what was found. The story reads the rows once; all figures use that reading."""
    column = job.settings["label"]
    labels = labels_of(job.documents, column) if column else None
    # With fixed evidence, probabilities are those of the fitted mixture; k-means has none.
    exact = job.settings["evidence"] == "fixed" or job.settings["method"] == "k-means"
    model = found.estimator if exact else found.calibrated(few.views)
    trust = found.row_trust.round(6)  # more digits would be noise
    if few.rows is not None:
        trust = np.full(len(data), np.nan)
        trust[few.rows] = found.row_trust.round(6)
    fields = _fields(few, data, reader, model, {"labels": labels, "stability": found})
    known = {"labels": labels, "stability": fields["story"].stability}
    retell = partial(_fields, few, data, reader, model, known)
    return job.result(model, data, reader, **fields, columns={"trust": trust}, retell=retell)


def _fields(
    few: Few, data: Any, reader: Any, model: Any, known: dict[str, Any], naming: Any = None
) -> dict[str, Any]:
    """Return the fields of a result that depend on the names of the groups."""
    labels = known["labels"]
    more = {"labels": few.of(labels), "stability": known["stability"], "naming": naming}
    story = few.job.tell(model, few.views, reader, **more)
    rows = assigned(few, data, model, story, naming)
    story = counted(story, rows)
    figures = _figures(story, model, rows or story.assignments, labels)
    return {"story": story, "figures": figures, "rows": rows}


def _figures(story: Any, model: Any, assignments: Any, labels: Any) -> dict[str, Any]:
    """Return the numbers of the result."""
    figures = {
        "k": len(story.groups),
        "objective": float(model.objective_),
        "rounds": int(model.n_iter_),
        "converged": bool(model.converged_),
        "agreement_of_runs": story.stability["mean_agreement"],
        "mean_probability": _mean(assignments.probability),
        "evidence_limit": model.calibration_.limit if hasattr(model, "calibration_") else None,
        "groups": [
            {"label": g.label, "name": g.name, "size": g.size, "trust": trust_of(g)}
            for g in story.whole
        ],
    }
    if labels is not None:
        figures |= _against_classes(labels, assignments.label)
    return figures


def _mean(probabilities: Any) -> float | None:
    """Return the mean, or None of a model without probabilities."""
    return None if np.isnan(probabilities).all() else float(probabilities.mean())


def _against_classes(labels: Any, groups: Any) -> dict[str, float]:
    """Return how well the groups match the known classes."""
    known = labels != ""
    if not known.any():
        return {}
    truth, groups = labels[known].astype(str), groups[known]
    return {
        "entropy_bits": cluster_entropy(truth, groups),
        "nmi": float(normalized_mutual_info_score(truth, groups)),
    }
