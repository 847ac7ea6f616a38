"""The base of models with a family per view: how they read rows, and their fitted families."""

import sys
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from coem.engine import as_engine
from coem.engine.dask import DaskEngine, is_client
from coem.estimators._params import FamilyParams
from coem.estimators._starts import KeepsInit
from coem.families import Multinomial
from coem.families.auto import are_weights
from coem.families.base import AnyFamily
from coem.families.mixture_of import innermost
from coem.families.named import choices_for, named_families
from coem.io.model_file import Saves
from coem.io.packing import flat_theta
from coem.kernels.counts import again_a_table
from coem.latent.block import any_empty
from coem.latent.emissions import Emissions
from coem.latent.stored import SAMPLE, Encoding, StoredRows, survey
from coem.protocols import Engine
from coem.records import Records
from coem.row_store import RowStore
from coem.runs import warn_user
from coem.typing import Array, Matrix, Theta
from coem.views import Views

SHAPE_PARAMS = ("n_components", "components_per_class")


class ViewsModel(Saves, KeepsInit, FamilyParams, ABC):
    """A model over views, with a family for each of them."""

    view_names_: tuple[str, ...]
    view_widths_: tuple[int, ...]
    families_: dict[str, AnyFamily]
    family_reasons_: dict[str, str]
    theta_: dict[str, Theta]
    weights_: Array
    beta_: float
    labels_: Array
    objective_: float
    history_: Records
    runs_: Records
    best_run_: int
    n_iter_: int
    converged_: bool

    _made_with: dict[str, Any]  # what `_shape_params` were when the model was fitted

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle. A client cannot be pickled: "dask" takes its place.

        Where the model is loaded, it then works with the client that is current.
        """
        state: dict[str, Any] = dict(super().__getstate__())
        if is_client(self.engine) or isinstance(self.engine, DaskEngine):
            state["engine"] = "dask"
        return state

    def __copy__(self) -> Self:
        """Return a shallow copy, which keeps the engine."""
        other = type(self).__new__(type(self))
        other.__dict__.update(vars(self))
        return other

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take up a pickled state, with tables laid out for the kernels.

        A pickle and a deep copy keep the values of a table, and not the spare cells behind them.
        The kernels would pack such a table anew in every call.
        """
        super().__setstate__(state)
        if hasattr(self, "theta_"):
            views = self.theta_.items()
            self.theta_ = {view: laid_out(self.families_[view], theta) for view, theta in views}

    @abstractmethod
    def _n_components(self) -> int:
        """Return the number of components."""

    def _precision(self) -> Any:
        """Return the precision of the parameters, or None to leave the choice to the families."""
        return self.dtype

    def _encode(
        self, views: Views, *, reset: bool, weight: Array | None = None
    ) -> tuple[tuple[Matrix, ...], Array | None]:
        """Return encoded matrices, and which of their rows are empty.

        With `reset`, the families are those that the rows and their weights call for.
        """
        families = self._choose(views, weight) if reset else self.families_
        checked = {name: families[name].check(views[name], name) for name in views.names}
        if reset:
            families = {n: families[n].bind(X, self._precision()) for n, X in checked.items()}
            self.families_ = families
            self._made_with = self._shape_params()
        empty = any_empty([families[name].empty(X) for name, X in checked.items()])
        return tuple(families[name].encode(X) for name, X in checked.items()), empty

    def _survey(self, corpus: RowStore, weight: Array | None) -> StoredRows:
        """Return the rows of a corpus for a fit, after one pass that checks their values.

        The families are those that a sample of the rows calls for.
        """
        n_rows = len(corpus)
        rows = corpus.sample(min(SAMPLE, n_rows))
        mass = np.ones(len(rows)) if weight is None else weight[rows]
        total = n_rows if weight is None else float(weight.sum())
        chosen = self._choose(corpus.take(rows), mass * (total / max(float(mass.sum()), 1.0)))
        families = [chosen[name] for name in corpus.names]
        with self._engine() as engine:
            bound, empty = survey(corpus, families, self._precision(), engine)
        self.families_ = dict(zip(corpus.names, bound, strict=True))
        self._made_with = self._shape_params()
        encoding = Encoding(bound, np.zeros(len(bound), dtype=bool))
        return StoredRows(corpus, encoding, weight, None, empty)

    def _shape_params(self) -> dict[str, Any]:
        """Return the parameters that decide which parameters are fitted, and their shapes."""
        params = self.get_params(deep=False)
        own = {name: params[name] for name in SHAPE_PARAMS if name in params}
        return own | {"family": named_families(self.family)}

    def _check_made_with(self) -> None:
        """Raise if a parameter has changed that a fitted model cannot take up."""
        now, then = self._shape_params(), getattr(self, "_made_with", {})
        for name, value in then.items():
            if now[name] != value:
                raise ValueError(
                    f"{name} has changed since the model was fitted, from {value!r} to "
                    f"{now[name]!r}; partial_fit goes on with the fitted model: call fit to begin "
                    "a new one"
                )

    def _choose(self, views: Views, weight: Array | None) -> dict[str, AnyFamily]:
        """Return the family of each view, and say which ones "auto" took, and why."""
        choices = choices_for(self.family, views, weight)
        self.family_reasons_ = {
            name: f"View {name!r} has {type(family).__name__} components: {why}."
            for name, (family, why) in choices.items()
            if why
        }
        if self.verbose:
            for sentence in self.family_reasons_.values():
                sys.stderr.write(f"{type(self).__name__}: {sentence}\n")
        families = {name: choice.family for name, choice in choices.items()}
        for name, family in families.items():
            if isinstance(innermost(family), Multinomial) and are_weights(views[name]):
                warn_user(
                    f"view {name!r}: its rows have length 1 or a total of 1, as TF-IDF rows have, "
                    "so that the multinomial family takes each for a few words only, and nearly "
                    "all rows may end in one component. Pass counts; if you want directions, use "
                    "VonMisesFisher or LatentDirections",
                    UserWarning,
                )
        return families

    def _emissions(self) -> Emissions:
        """Return the fitted families, with the inverse temperatures of the views."""
        families = tuple(self.families_[name] for name in self.view_names_)
        betas: dict[str, float] = getattr(self, "view_betas_", {})  # older files have none
        if all(beta == 1 for beta in betas.values()):
            return Emissions(families)
        return Emissions(families, tuple(betas[name] for name in self.view_names_))

    def _is_double(self) -> bool:
        """Return True if all parameters and responsibilities are in double precision."""
        single = any(family.single_precision for family in self.families_.values())
        return self._precision() == np.float64 or (self._precision() is None and not single)

    def _opened(self, X: Any) -> Any:
        """Return `X`; a dask collection becomes rows that stay on the workers."""
        if not hasattr(X, "__dask_graph__") and not isinstance(X, list | tuple):
            return X
        from coem.engine.dask_rows import DaskRows, is_collection

        if not is_collection(X):
            return X
        engine = self._engine()
        if not isinstance(engine, DaskEngine):
            raise ValueError(
                'X is a dask collection, which engine="dask" works on; pass it, or rows in memory: '
                "X.compute()"
            )
        return DaskRows(X, engine.client)

    def _engine(self) -> Engine:
        """Return the engine that the user has chosen, or the default one."""
        return as_engine(self.engine, self.n_jobs)


def laid_out(family: AnyFamily, theta: Theta) -> Theta:
    """Return parameters with tables that the kernels read as they are."""
    if isinstance(theta, tuple) and family.theta_type is None:
        return theta  # of a family that no file can hold, and that keeps no tables of ours
    restored: Theta = family.restore([again_a_table(part) for part in flat_theta((theta,))])
    return restored
