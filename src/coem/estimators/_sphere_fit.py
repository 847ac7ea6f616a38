"""How spherical k-means is fitted: parameters, data, runs, and the attributes that a fit sets."""

import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_dtype, check_folder, check_number, check_workers
from coem.em import Result
from coem.engine import LocalEngine
from coem.estimators._angles import nearest
from coem.estimators._concepts import arrays_of, consensus, drawer
from coem.estimators._keeping import checkpoint_of
from coem.estimators._restarts import Rows
from coem.estimators._sphere_task import SphereTask, StateT, StoredTask, WholeTask
from coem.estimators._types import Folder, Precision, Seed
from coem.families import VonMisesFisher
from coem.families.base import AnyFamily
from coem.input import read_rows
from coem.io.checkpoint import Checkpoint
from coem.io.model_file import Saves
from coem.io.packing import SpherePacking
from coem.kernels import threads
from coem.latent.block import Block, Partition, any_empty
from coem.latent.parted_sphere import PartedSphere
from coem.latent.sphere import Concepts, Sphere
from coem.latent.stored import SAMPLE, Encoding, StoredRows, survey
from coem.protocols import Engine
from coem.records import Records
from coem.row_store import RowStore
from coem.runs import (
    Phase,
    best_of,
    draw_seeds,
    drive,
    run_records,
    warn_no_convergence,
    warn_user,
)
from coem.schedules import Constant
from coem.typing import Array, Matrix, Rng
from coem.views import Views


class SphereFit(Saves, BaseEstimator):
    """The base of `SphericalKMeans`."""

    n_clusters: int
    init: Any  # a name, or concept vectors
    n_init: int
    max_iter: int
    patience: int | None
    dtype: Precision
    n_jobs: int | None
    random_state: Seed
    checkpoint: Folder | None
    verbose: int

    view_names_: tuple[str, ...]
    view_widths_: tuple[int, ...]
    labels_: Array
    view_labels_: Array
    cluster_centers_: dict[str, Array]
    consensus_centers_: dict[str, Array]
    objective_: float
    history_: Records
    runs_: Records
    best_run_: int
    n_iter_: int
    converged_: bool
    n_start_rows_: int

    _n_features_out: int  # for the names of the columns that `transform` returns
    _largest: int  # the cluster of rows that are empty in every view

    # -- parameters and data -----------------------------------------------------------------

    def _check_params(self) -> None:
        """Raise unless all parameters are valid."""
        check_number("n_clusters", self.n_clusters, Integral, 1)
        check_number("n_init", self.n_init, Integral, 1)
        check_number("max_iter", self.max_iter, Integral, 1)
        check_number("patience", self.patience, Integral, 1, optional=True)
        check_dtype(self.dtype)
        check_workers(self.n_jobs, self.verbose)
        check_folder("checkpoint", self.checkpoint)

    @property
    def _family(self) -> VonMisesFisher:
        """The family that computes cosines."""
        return VonMisesFisher(dtype=self.dtype)

    def _rows(self, views: Views | RowStore, weight: Array | None) -> Rows:
        """Return the rows of a fit as unit rows; those of a corpus stay there."""
        if isinstance(views, Views):
            return Partition(*self._encode(views), weight)
        with LocalEngine(self.n_jobs) as engine:
            families, empty = survey(views, [self._family] * len(views.names), self.dtype, engine)
        return StoredRows(views, _all_of(families), weight, None, empty)

    def _encode(self, views: Views) -> tuple[tuple[Matrix, ...], Array | None]:
        """Return the unit rows of every view, and which of them are empty."""
        family = self._family
        parts = [family.split(family.check(views[name], name)) for name in views.names]
        empty = any_empty([~(lengths > 0) for _, lengths in parts])
        return tuple(rows for rows, _ in parts), empty

    def _check_enough_rows(self, mass: Array) -> None:
        """Raise if there are more clusters than rows of the last view to start them."""
        n = np.count_nonzero(mass)
        if n >= self.n_clusters:
            return
        several = len(self.view_names_) > 1
        raise ValueError(
            f"n_samples={n} rows that are not empty and have a weight"
            + (f" in view {self.view_names_[-1]!r}" if several else "")
            + f" cannot fill n_clusters={self.n_clusters} clusters; ask for fewer"
            + (", or put another view last" if several else "")
        )

    def _check_sample(self, sample: Partition) -> None:
        """Raise if a start is to be drawn from a sample with fewer rows than there are clusters."""
        n = np.count_nonzero(_mass(sample))
        if isinstance(self.init, str) and n < self.n_clusters:
            raise ValueError(
                f"init={self.init!r} draws a start from a sample of {n:,} rows, too few for "
                f"n_clusters={self.n_clusters:,}; ask for fewer, or pass concept vectors as init"
            )

    # -- fit ---------------------------------------------------------------------------------

    def _fit(self, part: Rows) -> None:
        """Run all restarts, keep the best, label the rows, and warn if something went wrong."""
        mass = _mass(part)
        self._check_enough_rows(mass)
        sample = _sample(part, mass)
        self._check_sample(sample)
        self._say_sample(sample.n_rows, part.n_rows)
        draw = drawer(self.init, self.n_clusters, sample.views[-1], _mass(sample))
        saved = self._open_checkpoint(part, tuple(X.dtype for X in sample.views))
        with saved or nullcontext(), LocalEngine(self.n_jobs) as engine:
            plan = self._plan(draw, saved, part.n_views)
            if isinstance(part, StoredRows):
                parted = PartedSphere(part.n_views, self.n_clusters)
                fell = self._run(StoredTask(parted, part=part, **plan), part, engine)
            else:
                whole = Sphere(part.n_views, self.n_clusters)
                fell = self._run(WholeTask(whole, part=part, **plan), part, engine)
            sizes = self._set_labels(part, engine)
        self._warn(np.flatnonzero(sizes == 0).tolist(), fell)
        if saved:
            saved.clear()

    def _plan(
        self, draw: Callable[[Rng], Array], saved: Checkpoint[Concepts] | None, n_views: int
    ) -> dict[str, Any]:
        """Return what all tasks have in common."""
        seeds = draw_seeds(self.random_state, self.n_init if isinstance(self.init, str) else 1)
        if saved:
            seeds = saved.seeds(seeds, fixed=isinstance(self.random_state, Integral))
        patience = 1 if self.patience and n_views == 1 else self.patience
        return {
            "n_runs": len(seeds),
            "eta": Constant(1.0),
            "beta": Constant(1.0),
            "phases": [Phase(self.max_iter, 0.0, patience)],
            "label": type(self).__name__,
            "verbose": self.verbose,
            "draw": draw,
            "seeds": seeds,
            "names": self.view_names_,
            "saved": saved,
        }

    def _open_checkpoint(self, part: Rows, dtypes: tuple[Any, ...]) -> Checkpoint[Concepts] | None:
        """Return the checkpoint of this fit, or None if the user asked for none."""
        if self.checkpoint is None:
            return None
        n_rows = None if isinstance(part, StoredRows) else part.n_rows
        packing = SpherePacking(self.n_clusters, self.view_widths_, dtypes, n_rows)
        init = self.init if sp.issparse(self.init) else np.asarray(self.init)
        params, data = self.get_params(), [*part.content(), init]
        return checkpoint_of(self.checkpoint, packing, params, data)

    def _run(self, task: SphereTask[StateT], part: Rows, engine: Engine) -> float:
        """Run all restarts and keep the best; return by how much its objective fell."""
        results = [run.end for run in drive(task, engine)]
        self._keep_best(task, results)
        concepts = arrays_of(results[self.best_run_].theta)
        self.cluster_centers_ = self._by_view(concepts)
        agreed = consensus(part, concepts, self.view_labels_, engine)
        self.consensus_centers_ = self._by_view(agreed)
        return results[self.best_run_].fell

    def _say_sample(self, n_sample: int, n_rows: int) -> None:
        """Set how many rows the starts are drawn from, and say so if they are a sample."""
        self.n_start_rows_ = n_sample if isinstance(self.init, str) else n_rows
        if self.verbose and self.n_start_rows_ < n_rows:
            warn = f"starts are drawn from {n_sample:,} of {n_rows:,} rows, chosen by their content"
            sys.stderr.write(f"{type(self).__name__}: {warn}\n")

    def _keep_best(self, task: SphereTask[Any], results: Sequence[Result[Concepts]]) -> None:
        """Set the fitted attributes from the best run."""
        self.runs_ = run_records(results, task.seeds)
        self.best_run_ = best_of([result.objective for result in results])
        best = results[self.best_run_]
        self.history_ = task.rounds[self.best_run_]
        self.view_labels_ = task.labels[self.best_run_]
        self.objective_, self.n_iter_ = best.objective, len(self.history_)
        self.converged_ = best.converged
        self._n_features_out = self.n_clusters

    def _by_view(self, values: Sequence[Array]) -> dict[str, Array]:
        return dict(zip(self.view_names_, values, strict=True))

    def _set_labels(self, part: Rows, engine: Engine) -> Array:
        """Assign the rows, and return the weights of the clusters."""
        if len(self.view_names_) > 1:
            labels = np.concatenate(_each_block(self._nearest, part, engine))
        else:  # the smallest angle is the largest cosine, by which the view was partitioned
            labels = self.view_labels_[:, 0].astype(np.intp)
        weight = np.ones(part.n_rows) if part.weight is None else part.weight
        present = labels >= 0
        sizes = np.bincount(labels[present], weight[present], minlength=self.n_clusters)
        self._largest = int(sizes.argmax())
        self.labels_ = np.where(present, labels, self._largest)
        return sizes

    def _warn(self, dead: list[int], fell: float) -> None:
        """Warn of a run that did not converge, of empty clusters, and of a falling objective."""
        if self.patience and not self.converged_:
            advice = "raise max_iter, or pass patience=None to run a fixed number of rounds"
            warn_no_convergence(self.n_iter_, advice)
        if dead:
            warn_user(
                f"clusters {dead} of {self.n_clusters} have no rows: the rows have too few "
                "different directions; use fewer clusters or more restarts (n_init)"
            )
        if fell > 1e-5:
            warn_user(f"the objective fell by {fell:.2g}, relative, where it cannot")

    # -- new rows ----------------------------------------------------------------------------

    def _map_blocks(self, X: Any, work: Callable[[Block], Array]) -> Array:
        """Return the results of `work` on every block of `X`, joined in the order of the rows."""
        check_is_fitted(self)
        views = read_rows(self, X, reset=False)
        rows: Rows
        if isinstance(views, RowStore):
            family = self._family.bind_pieces([], self.dtype)
            rows = StoredRows(views, _all_of([family] * len(views.names)))
        else:
            rows = Partition(*self._encode(views))
        with LocalEngine(self.n_jobs) as engine:
            return np.concatenate(_each_block(work, rows, engine))

    def _nearest(self, block: Block) -> Array:
        """Return the nearest cluster of every row of a block; -1 for rows that are empty."""
        return nearest(block, self.consensus_centers_, self._family)


def _mass(part: Rows) -> Array:
    """Return the weights of the rows in the last view, zero where it is empty."""
    mass = np.ones(part.n_rows) if part.weight is None else part.weight
    return mass if part.empty is None else mass * ~part.empty[:, -1]


def _sample(part: Rows, mass: Array) -> Partition:
    """Return the rows that starts are drawn from: all of them, or some that a corpus draws."""
    if not isinstance(part, StoredRows) or part.n_rows <= SAMPLE:
        return part.sample
    return part.take(part.corpus.sample(SAMPLE, among=np.flatnonzero(mass)))


def _all_of(families: Sequence[AnyFamily]) -> Encoding:
    """Return the encoding of views of which none is left out."""
    return Encoding(tuple(families), np.zeros(len(families), dtype=bool))


def _each_block(work: Callable[[Block], Array], rows: Rows, engine: Engine) -> list[Array]:
    """Return the results of `work` on every block of the rows, in their order."""

    def each(part: Partition) -> list[Array]:
        return threads.spread(work, part.blocks)

    return [found for part in engine.each_part(each, rows.parts()) for found in part]
