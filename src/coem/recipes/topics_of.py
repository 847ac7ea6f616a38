"""`topics`: documents as mixtures of topics."""

import os
import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

from coem.checks import check_number
from coem.estimators import AspectModel
from coem.io.kept import Part
from coem.recipes.defaults import (
    COUPLING,
    MAX_DF,
    MIN_DF,
    NGRAMS,
    STOP_WORDS,
    TOPIC_ROUNDS,
    TOPICS,
)
from coem.recipes.documents import Documents
from coem.recipes.listener import Listener
from coem.recipes.result import Job, Result, begin
from coem.recipes.taking_over import read_earlier, with_names
from coem.recipes.views import check_size, n_jobs, text_views, to_views
from coem.report import read
from coem.text.guess import SAID, few_of, guess_views
from coem.text.specs import COUNTS


def topics(
    table: Any,
    *,
    text: Any = None,
    views: Any = None,
    id: str | None = None,
    date: str | None = "auto",
    stop_words: Any = STOP_WORDS,
    min_df: int = MIN_DF,
    max_df: float = MAX_DF,
    max_features: int | None = None,
    ngrams: int = NGRAMS,
    k: int = TOPICS,
    coupling: str | None = COUPLING,
    max_iter: int = TOPIC_ROUNDS,
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
    """Find topics, of which each document has shares, as ``coem topics`` does.

    All text columns together are one bag of words. The model is the aspect model (pLSA).

    Parameters
    ----------
    table, text, views, id, date : table or path, and what is in it
        As in `cluster`; there must be one view of words or lists, not of vectors.
    stop_words, min_df, max_df, max_features, ngrams : optional
        Which words count, as in `cluster`.
    k : int, default=50
        The number of topics.
    coupling : {"a", "b", "c", "d", "xy", None}, default="c"
        How two runs learn from each other (Lin 2006); None makes one run.
    max_iter : int, default=50
        Iterations before and after the coupling.
    seed, threads, encoding, delimiter, sheet, skip_bad, names_from, checkpoint, listener : optional
        As in `cluster`.

    Returns
    -------
    result : Result
        `labels` are the topics with the largest shares; ``columns["shares"]`` has all shares.

    Examples
    --------
    >>> import coem
    >>> ships, bread = "captain and crew sail the ship", "flour and butter for the bread"
    >>> found = coem.topics([{"text": ships}, {"text": bread}] * 5, text="text", k=2)
    >>> found.columns["shares"].shape
    (10, 2)
    """
    given = {**locals(), "coupling": coupling or "none"}
    check_number("k", k, Integral, 1)
    earlier = read_earlier(names_from)
    job = begin("topics", given)
    settings, listener = job.settings, job.listener
    with job.fits():
        reader = text_views(settings, job.documents)
        if job.documents.corpus is not None:
            _keep_words(reader, listener)
        elif reader.views is None:
            job = replace(job, documents=_only_words(job.documents, listener))
        data = to_views(reader, job.documents, settings, listener)
        data = _as_one(reader, data, job.documents)
        check_size(settings["k"], data)
        name = one_of_counts(reader, data, is_corpus=job.documents.corpus is not None)
        model = _model(settings, job.part("topics"))
        # Each run has as many rounds before the coupling as after it.
        total = model.n_runs * model.max_iter * (1 if model.coupling is None else 2)
        with listener.fitting("rounds", total, by_rounds=True), listener.noting_warnings():
            model.fit(data[name]).set_params(checkpoint=None)
        return with_names(_result(job, reader, data, model), earlier, listener)


def _model(settings: dict[str, Any], part: Part | None) -> AspectModel:
    """Return the model that the settings ask for."""
    alone = settings["coupling"] == "none"
    return AspectModel(
        settings["k"],
        coupling=None if alone else settings["coupling"],
        n_runs=1 if alone else 2,
        max_iter=settings["max_iter"],
        n_jobs=n_jobs(settings),
        random_state=settings["seed"],
        checkpoint=part,
    )


def _result(job: Job, reader: Any, views: Any, model: AspectModel) -> Result:
    """Return what was found.

    The rows are folded in once; the page, the assignments and the shares use that reading.
    """
    retell = partial(_retell, job, model, views, reader, read(model, views))
    return job.result(model, views, reader, **retell(None), retell=retell)


def _retell(
    job: Job, model: Any, views: Any, reader: Any, reading: Any, naming: Any
) -> dict[str, Any]:
    """Return the fields of a result that depend on the names of the groups."""
    story = job.tell(model, views, reader, reading=reading, naming=naming)
    topics = [{"label": g.label, "name": g.name, "share": g.share} for g in story.whole]
    figures = {"k": job.settings["k"], "kl": float(model.kl_), "topics": topics}
    return {"story": story, "figures": figures, "columns": shares_of(reading, naming)}


def shares_of(reading: Any, naming: Any = None) -> dict[str, Any]:
    """Return the column of the shares of all topics; one that was merged away has none."""
    proba = reading.proba if naming is None else naming.of(reading).proba
    # Six digits: more would be noise, and would fill disks.
    return {"shares": proba.astype(float).round(6)}


def _only_words(documents: Documents, listener: Listener) -> Documents:
    """Return the documents without the columns that would be guessed as views other than text.

    If there is no text at all, the columns stay: lists can have topics, too.
    """
    guessed, _ = guess_views(documents.table, documents.id_column)
    others = {name: spec["kind"] for name, spec in guessed.items() if spec["kind"] != "text"}
    if len(others) == len(guessed):
        return documents
    left = [
        f"Column {name!r} is left out: topics are found in text, and it is a {kind}."
        for name, kind in others.items()
    ]
    for sentence in few_of(left, SAID):
        listener.note(sentence)
    return replace(documents, table=documents.table.drop_columns(list(others)))


def _keep_words(reader: Any, listener: Listener) -> None:
    """Leave out the views of a corpus other than text, unless it has no text.

    No option can leave them out: a corpus has the views that it was made with.
    """
    kinds = {name: spec["kind"] for name, spec in reader.views_.items()}
    texts = [name for name, kind in kinds.items() if kind == "text"]
    if not texts:
        return
    for name, kind in kinds.items():
        if kind != "text":
            listener.note(
                f"View {name!r} is left out: topics are found in text, and it is a {kind}."
            )
    if reader.views is not None:
        reader.set_params(views={name: reader.views[name] for name in texts})
    reader.keep_views(texts)


def _as_one(reader: Any, views: Any, documents: Documents) -> Any:
    """Return the text columns of several views as one bag of words."""
    texts = [spec["columns"] for spec in reader.views_.values() if spec["kind"] == "text"]
    if len(texts) < 2 or len(texts) < len(reader.views_):
        return views
    columns = list(dict.fromkeys(name for names in texts for name in names))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same warnings came when the views were made
        return reader.set_params(views={"text": columns}).fit_transform(documents.table)


def one_of_counts(reader: Any, views: Any, *, is_corpus: bool) -> str:
    """Return the name of the only view; raise unless there is one view, and it has counts."""
    again = "ingest the documents again with text columns" if is_corpus else ""
    if len(views.names) > 1:
        raise ValueError(
            f"topics are found in one view, and there are {', '.join(views.names)}; "
            f"{again or 'name the text columns with text= and no other view'}, or use "
            "coem.cluster, which takes several"
        )
    name = str(views.names[0])
    kind = reader.views_[name]["kind"]
    if kind not in COUNTS:
        raise ValueError(
            f"view {name!r} is of kind {kind!r}, and topics are found in words or lists; "
            f"{again or 'name text columns with text='}, or use coem.cluster"
        )
    return name
