"""A mixture without labels: each component is a cluster of its own."""

from collections.abc import Callable, Sequence
from copy import copy
from numbers import Integral
from typing import Any, Self, cast

import numpy as np
from sklearn.base import clone

from coem.checks import check_number, check_weight
from coem.engine import LocalEngine
from coem.estimators._explain import ExplainMixin
from coem.estimators._fit import Lesson, MixtureFit
from coem.estimators._params import read_coupling_of_runs
from coem.estimators._restarts import Rows, Starts
from coem.initialise import Init, starter, stored_starter
from coem.input import read_rows
from coem.io.checkpoint import Checkpoint
from coem.io.kept import Kept, Part, part_of
from coem.latent.mixture import MixtureTheta
from coem.latent.stored import StoredRows
from coem.protocols import Engine
from coem.row_store import RowStore
from coem.run_coupling import RunCoupling
from coem.runs import draw_seeds, warn_user
from coem.typing import Array
from coem.views import Views

GATHERED = 0.95  # share of the rows in one component that is taken as a failure
FEW_ROWS = 50  # fewer rows are not judged
MORE_STARTS = 3


class UnlabelledMixture(ExplainMixin, MixtureFit):
    """A mixture whose components are the labels; the hooks of `MixtureClusterer`."""

    n_components: int
    coupling_of_runs: str | RunCoupling | None

    def _n_components(self) -> int:
        return self.n_components

    def _pseudo_rows(self) -> float:
        return 0.0

    def _classes(self) -> None:
        return None

    def _label_of(self, component: int) -> int:
        return int(component)

    def _labels(self, proba: Array) -> Array:
        return np.asarray(proba.argmax(axis=1))

    def _knowledge(
        self, views: Views, y: Any, sample_weight: Any
    ) -> tuple[Array | None, Array | None]:
        return check_weight(sample_weight, views), None

    def _say(self, y: Any, weight: Array) -> Array:
        return weight

    def _start_again_if_collapsed(self, part: Rows, kept: Kept | None) -> None:
        """Fit from other starts if nearly all rows are in one component; warn if they stay there.

        The first fit without that is taken.
        """
        if self.evidence != "auto" or not isinstance(self.init, str) or not self._gathers(part):
            return
        own = self.random_state
        if kept is not None and not isinstance(own, Integral):
            own = self.runs_[0].seed  # which the plan keeps
        for seed in draw_seeds(own, 1 + MORE_STARTS)[1:].tolist():
            other = copy(self)
            other.random_state, other.checkpoint = seed, None
            other._fit(part, saved=other._saved(part, part_of(kept, f"seed-{seed}")))
            if not other._gathers(part):
                self.__dict__.update(vars(other) | self.get_params(deep=False))
                return
        warn_user(
            f"more than {GATHERED:.0%} of the rows are in one of {self.n_components} components, "
            f"also from {MORE_STARTS} other starts: there may be no groups, or the family does not "
            "suit the rows; look at family, at smaller pseudo-counts (alpha), and at fewer "
            "components"
        )

    def _gathers(self, part: Rows) -> bool:
        """Return True if nearly all rows are in one of several components."""
        if self.n_components < 3 or part.n_rows < FEW_ROWS or self.beta_ < 1:
            return False  # at a low inverse temperature all components may be alike
        mass = np.bincount(self.labels_, weights=part.row_weight())
        return bool(mass.max() > GATHERED * mass.sum())

    def _coupling_of_runs(self) -> RunCoupling | None:
        return read_coupling_of_runs(self.coupling_of_runs, self.init, self.n_init)

    def _starts(self, part: Rows, lesson: Lesson | None, engine: Engine) -> Starts[MixtureTheta]:
        """Return the given start, or starts that are drawn as `init` says."""
        given = self._given_start(part.n_rows)
        if given is not None:
            return Starts(given, 1)
        mixture, init = self._mixture(), cast(Init, self.init)
        early = self.init != "random"
        if isinstance(part, StoredRows):
            draw = stored_starter(mixture, part, init, engine, self._first_clock())
        else:
            draw = starter(mixture, part, init)
        n_rows = part.sample.n_rows if early else part.n_rows
        return Starts(draw, self.n_init, early, n_rows)

    def fitter(
        self,
        X: Any,
        seeds: Sequence[int],
        sample_weight: Any = None,
        n_jobs: int | None = None,
        parts: Sequence[Part] | None = None,
    ) -> Callable[[int], Self]:
        """Return a function that fits the model with one of some seeds.

        ``fitter(X, seeds)(seed)`` equals ``clone(model).set_params(random_state=seed).fit(X)``, to
        the bit. The rows are checked and encoded only once, and what starts are drawn from (scaled
        rows, distances, the order of the rows) is computed only once. `selection.stability` uses
        it.

        Parameters
        ----------
        X : matrix, list, dict, Views or Corpus
            Rows with one or several views.
        seeds : sequence of int
            The values of `random_state` that will be asked for.
        sample_weight : array of shape (n_rows,), optional
            A row with a weight of 2 counts like two equal rows.
        n_jobs : int, optional
            Number of threads that draw the starts.
        parts : sequence of coem.io.kept.Part, optional
            A folder per seed, which keeps the state of its fit. `checkpoint` has no part in it.

        Returns
        -------
        fit : callable
            From a seed to a fitted estimator. It may be called in several threads.
        """
        first: Self = clone(self).set_params(checkpoint=None)
        part = first._read_rows(X, sample_weight)
        fits = list(zip(seeds, first._saved_all(part, parts, len(seeds)), strict=True))
        with LocalEngine(n_jobs) as engine:
            starts = first._starts(part, None, engine)
            first._say_sample(starts, part.n_rows)
            drawn = dict(zip(seeds, first._draw_all(starts, fits, engine), strict=True))
        saved = dict(fits)
        del starts  # frees what early starts are drawn from

        def fit(seed: int) -> Any:
            model = copy(first)
            model.random_state = seed
            model._fit(part, drawn=drawn[seed], saved=saved[seed])
            return model

        return fit

    def _saved_all(
        self, rows: Rows, parts: Sequence[Part] | None, n_fits: int
    ) -> Sequence[Checkpoint[MixtureTheta] | None]:
        """Return the checkpoints of several fits to the same rows, which are digested once."""
        if parts is None:
            return [None] * n_fits
        first = self._saved(rows, parts[0])
        assert first is not None
        about = first.packing, first.fingerprint, first.settings
        return [Checkpoint(part, *about) for part in parts]

    def _read_rows(self, X: Any, sample_weight: Any) -> Rows:
        """Check the parameters and the rows, and return the rows encoded."""
        self._check_params()
        check_number("n_components", self.n_components, Integral, 1)
        self._coupling_of_runs()
        views = read_rows(self, self._opened(X), reset=True)
        if isinstance(views, RowStore) and self.coupling_of_runs is not None:
            raise ValueError(
                "coupling_of_runs keeps the posteriors of all rows and runs in memory, and so does "
                "not take a corpus; use n_init, or fit rows in memory: X = corpus.load()"
            )
        weight = check_weight(sample_weight, views)
        n_rows = len(views) if weight is None else np.count_nonzero(weight)
        if self.n_components > n_rows:
            raise ValueError(
                f"n_samples={n_rows} rows cannot fill n_components={self.n_components} components"
            )
        part = self._listened(self._rows_of_fit(views, weight), weight)
        self._find_betas(part)
        return part
