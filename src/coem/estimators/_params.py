"""Parameters of models with families: their types, their checks, and those of the families."""

from copy import deepcopy
from dataclasses import fields
from numbers import Integral, Real
from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from coem.checks import check_choice, check_dtype, check_folder, check_number, check_workers
from coem.coupling import Coupling, as_coupling
from coem.engine import as_engine
from coem.estimators._types import EngineLike, Folder, Precision, Seed
from coem.families.named import Named, family_parts, is_auto, with_field
from coem.latent.weights import WEIGHTS
from coem.posterior import Rule, as_rule
from coem.run_coupling import ROW_VIAS, RunCoupling, read_coupling
from coem.schedules import Schedule, StepSize, as_schedule, as_step

ASSIGNS = ("joint", "average")
EVIDENCE = ("auto", "fixed")


class FamilyParams(BaseEstimator):
    """The parameters that all models with families over views have in common."""

    family: Named | dict[str, Named]
    beta: float | Schedule
    init: Any  # a name, responsibilities, or a fitted model
    n_init: int
    max_iter: int | None
    tol: float
    patience: int | None
    step: str | StepSize
    dtype: Precision
    n_jobs: int | None
    random_state: Seed
    engine: EngineLike
    checkpoint: Folder | None
    verbose: int

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with `deep`, those of the families as ``family__alpha`` too."""
        params: dict[str, Any] = super().get_params(deep=deep)
        if deep:
            for prefix, family in family_parts(self.family):
                params |= {f"{prefix}__{f.name}": getattr(family, f.name) for f in fields(family)}
        return params

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted estimator with the same parameters; engines are shared, not copied."""
        params = self.get_params(deep=False)
        engine = params.pop("engine")
        other = type(self)(**{name: clone(p, safe=False) for name, p in params.items()})
        other.engine = engine
        for name in ("_metadata_request", "_sklearn_output_config"):  # as scikit-learn does it
            if name in vars(self):
                setattr(other, name, deepcopy(vars(self)[name]))
        return other

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``family__alpha=0.1`` replaces the family by one with that value."""
        nested = {key: params.pop(key) for key in list(params) if key.startswith("family__")}
        super().set_params(**params)
        for key, value in nested.items():
            self.family = with_field(self.family, key.split("__")[1:], value)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return the tags of scikit-learn, which follow from the families; "auto" takes any."""
        tags = super().__sklearn_tags__()
        parts = self.family.values() if isinstance(self.family, dict) else [self.family]
        families = [
            family for part in parts if not is_auto(part) for _, family in family_parts(part)
        ]
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = any(family.nonnegative for family in families)
        tags.input_tags.allow_nan = any(map(is_auto, parts)) or any(f.allows_nan for f in families)
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Return True if there are fitted parameters."""
        return hasattr(self, "theta_")

    def _check_params(self) -> None:
        """Raise unless all parameters are valid."""
        for name in ("n_init", "max_iter", "patience"):
            check_number(name, getattr(self, name), Integral, 1, optional=name != "n_init")
        check_number("tol", self.tol, Real, 0)
        check_dtype(self.dtype)
        check_workers(self.n_jobs, self.verbose)
        as_engine(self.engine, self.n_jobs)
        check_folder("checkpoint", self.checkpoint)
        as_schedule(self.beta, "beta")
        as_step(self.step)


class MixtureParams(FamilyParams):
    """The parameters that `MixtureClusterer` and `MixtureClassifier` have in common."""

    coupling: str | Coupling
    eta: float | Schedule
    posterior: str | Rule
    weights: str
    assign: str
    evidence: str

    def _check_params(self) -> None:
        """Raise unless all parameters are valid."""
        check_choice("evidence", self.evidence, EVIDENCE)
        as_coupling(self.coupling)
        as_rule(self.posterior)
        check_choice("weights", self.weights, WEIGHTS)
        check_choice("assign", self.assign, ASSIGNS)
        super()._check_params()
        self._schedules()

    def _schedules(self) -> tuple[Schedule, Schedule]:
        """Return the schedules of eta and beta."""
        return as_schedule(self.eta, "eta"), as_schedule(self.beta, "beta")


def read_coupling_of_runs(value: Any, init: Any, n_init: int) -> RunCoupling | None:
    """Return the coupling of the runs of a mixture, or None; raise if they cannot be coupled."""
    coupling = read_coupling(value, ROW_VIAS, "coupling_of_runs")
    if coupling is None:
        return None
    if not isinstance(init, str) or n_init < 2:
        raise ValueError(
            "coupling_of_runs needs at least two runs: set n_init to 4, for example, and set init "
            "to a name"
        )
    return coupling
