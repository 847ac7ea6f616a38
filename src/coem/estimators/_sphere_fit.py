"""How spherical k-means is fitted: parameters, data, runs, and the attributes that a fit sets."""

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from coem.checks import check_dtype, check_number, check_workers
from coem.em import Result
from coem.engine import LocalEngine
from coem.estimators._angles import nearest
from coem.estimators._concepts import arrays_of, consensus, drawer
from coem.estimators._sphere_task import SphereTask
from coem.estimators._types import Precision, Seed
from coem.families import VonMisesFisher
from coem.input import read_views
from coem.io.model_file import Saves
from coem.latent.block import Block, Partition, any_empty
from coem.latent.sphere import Concepts, Sphere
from coem.protocols import Engine
from coem.records import Records
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
from coem.typing import Array, Matrix
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
    verbose: int

    view_names_: tuple[str, ...]
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

    @property
    def _family(self) -> VonMisesFisher:
        """The family that computes cosines."""
        return VonMisesFisher(dtype=self.dtype)

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

    # -- fit ---------------------------------------------------------------------------------

    def _fit(self, part: Partition) -> None:
        """Run all restarts, keep the best, label the rows, and warn if something went wrong."""
        mass = _mass(part)
        self._check_enough_rows(mass)
        draw = drawer(self.init, self.n_clusters, part.views[-1], mass)
        seeds = draw_seeds(self.random_state, self.n_init if isinstance(self.init, str) else 1)
        patience = 1 if self.patience and len(part.views) == 1 else self.patience
        task = SphereTask(
            latent=Sphere(len(part.views), self.n_clusters),
            n_runs=len(seeds),
            eta=Constant(1.0),
            beta=Constant(1.0),
            phases=[Phase(self.max_iter, 0.0, patience)],
            label=type(self).__name__,
            verbose=self.verbose,
            part=part,
            draw=draw,
            seeds=seeds,
            names=self.view_names_,
        )
        with LocalEngine(self.n_jobs) as engine:
            results = [run.end for run in drive(task, engine)]
            self._keep_best(task, results)
            sizes = self._set_labels(part, engine)
        self._warn(np.flatnonzero(sizes == 0).tolist(), results[self.best_run_].fell)

    def _keep_best(self, task: SphereTask, results: Sequence[Result[Concepts]]) -> None:
        """Set the fitted attributes from the best run."""
        self.runs_ = run_records(results, task.seeds)
        self.best_run_ = best_of([result.objective for result in results])
        best = results[self.best_run_]
        self.history_ = task.rounds[self.best_run_]
        self.view_labels_ = task.labels[self.best_run_]
        self.objective_, self.n_iter_ = best.objective, len(self.history_)
        self.converged_ = best.converged
        concepts = arrays_of(best.theta)
        self.cluster_centers_ = self._by_view(concepts)
        self.consensus_centers_ = self._by_view(consensus(task.part, concepts, self.view_labels_))
        self._n_features_out = self.n_clusters

    def _by_view(self, values: Sequence[Array]) -> dict[str, Array]:
        return dict(zip(self.view_names_, values, strict=True))

    def _set_labels(self, part: Partition, engine: Engine) -> Array:
        """Assign the rows, and return the weights of the clusters."""
        if len(self.view_names_) > 1:
            labels = np.concatenate(engine.map(self._nearest, part.blocks))
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
        views = read_views(self, X, reset=False)
        matrices, empty = self._encode(views)
        with LocalEngine(self.n_jobs) as engine:
            return np.concatenate(engine.map(work, Partition(matrices, empty).blocks))

    def _nearest(self, block: Block) -> Array:
        """Return the nearest cluster of every row of a block; -1 for rows that are empty."""
        return nearest(block, self.consensus_centers_, self._family)


def _mass(part: Partition) -> Array:
    """Return the weights of the rows in the last view, zero where it is empty."""
    mass = np.ones(part.n_rows) if part.weight is None else part.weight
    return mass if part.empty is None else mass * ~part.empty[:, -1]
