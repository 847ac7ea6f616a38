"""`how_many`: the number of groups."""

import os
from typing import Any

from coem import selection
from coem.estimators import MixtureClusterer
from coem.recipes.defaults import LENGTH, MAX_DF, MAX_ITER, MIN_DF, NGRAMS, STOP_WORDS, TOL
from coem.recipes.in_parts import few_of
from coem.recipes.listener import Listener
from coem.recipes.result import Job, begin
from coem.recipes.views import families, n_jobs, text_views, to_views


def how_many(
    table: Any,
    *,
    text: Any = None,
    views: Any = None,
    encoder: Any = None,
    id: str | None = None,
    stop_words: Any = STOP_WORDS,
    min_df: int = MIN_DF,
    max_df: float = MAX_DF,
    max_features: int | None = None,
    ngrams: int = NGRAMS,
    max_length: float | None = LENGTH,
    among: list[int] | None = None,
    max_iter: int = MAX_ITER,
    seed: int = 0,
    threads: int | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    sheet: str | None = None,
    skip_bad: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    listener: Listener | None = None,
) -> Any:
    """Return how many groups the documents have, as ``coem choose-k`` says it.

    The parameters are those of `cluster`; `among` are the numbers to try.

    Returns
    -------
    choice : object
        As of `coem.selection.choose_k`: `best`, `possible`, `reason` and `table`.
    """
    job = begin("choose-k", dict(locals()))
    with job.fits():
        reader = text_views(job.settings, job.documents)
        data = to_views(reader, job.documents, job.settings, job.listener)
        return choose(job, few_of(job, data).views, families(reader))


def choose(job: Job, views: Any, family: Any) -> Any:
    """Return the choice of the number of groups of some views."""
    settings, among = job.settings, job.settings.get("among")
    how = {"max_iter": settings["max_iter"], "tol": TOL, "checkpoint": job.part("sizes")}
    with job.listener.fitting("numbers of groups", len(among or ()) or None) as bar:
        return selection.choose_k(
            MixtureClusterer(family=family, **how),
            views,
            among,
            n_jobs=n_jobs(settings),
            random_state=settings["seed"],
            on_size=lambda size, shared: bar.step(f"k = {size}: {shared:.3f} bits shared"),
        )
