"""The base of models with a family per view: how they read rows, and their fitted families."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from coem.engine import LocalEngine
from coem.estimators._params import FamilyParams
from coem.estimators._starts import KeepsInit
from coem.families.base import AnyFamily
from coem.families.named import families_for, named_families
from coem.io.model_file import Saves
from coem.latent.block import any_empty
from coem.latent.emissions import Emissions
from coem.protocols import Engine
from coem.records import Records
from coem.typing import Array, Matrix, Theta
from coem.views import Views

SHAPE_PARAMS = ("n_components", "components_per_class")


class ViewsModel(Saves, KeepsInit, FamilyParams, ABC):
    """A model over views, with a family for each of them."""

    view_names_: tuple[str, ...]
    view_widths_: tuple[int, ...]
    families_: dict[str, AnyFamily]
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

    @abstractmethod
    def _n_components(self) -> int:
        """Return the number of components."""

    def _precision(self) -> Any:
        """Return the precision of the parameters, or None to leave the choice to the families."""
        return self.dtype

    def _encode(self, views: Views, *, reset: bool) -> tuple[tuple[Matrix, ...], Array | None]:
        """Return encoded matrices, and which of their rows are empty."""
        families = families_for(self.family, views) if reset else self.families_
        checked = {name: families[name].check(views[name], name) for name in views.names}
        if reset:
            families = {n: families[n].bind(X, self._precision()) for n, X in checked.items()}
            self.families_ = families
            self._made_with = self._shape_params()
        empty = any_empty([families[name].empty(X) for name, X in checked.items()])
        return tuple(families[name].encode(X) for name, X in checked.items()), empty

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

    def _emissions(self) -> Emissions:
        """Return the fitted families."""
        return Emissions(tuple(self.families_[name] for name in self.view_names_))

    def _is_double(self) -> bool:
        """Return True if all parameters and responsibilities are in double precision."""
        single = any(family.single_precision for family in self.families_.values())
        return self._precision() == np.float64 or (self._precision() is None and not single)

    def _engine(self) -> Engine:
        """Return the engine that the user has chosen, or the default one."""
        return LocalEngine(self.n_jobs) if self.engine is None else self.engine
