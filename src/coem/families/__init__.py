"""Component families: densities with additive statistics and an M step."""

from collections.abc import Mapping

from coem.families.base import AnyFamily, Family
from coem.families.bernoulli import Bernoulli
from coem.families.categorical import Categorical
from coem.families.gaussian import Gaussian
from coem.families.laws import FamilyLawError, check_family
from coem.families.mixture_of import MixtureOf
from coem.families.multinomial import Multinomial
from coem.families.von_mises_fisher import VonMisesFisher

FAMILIES: Mapping[str, type[AnyFamily]] = {
    "multinomial": Multinomial,
    "bernoulli": Bernoulli,
    "categorical": Categorical,
    "gaussian": Gaussian,
    "von_mises_fisher": VonMisesFisher,
}

__all__ = [
    "FAMILIES",
    "Bernoulli",
    "Categorical",
    "Family",
    "FamilyLawError",
    "Gaussian",
    "MixtureOf",
    "Multinomial",
    "VonMisesFisher",
    "as_family",
    "check_family",
]


def as_family(value: object) -> AnyFamily:
    """Return the family that a name or an object stands for."""
    if isinstance(value, Family):
        return value
    if isinstance(value, str) and value in FAMILIES:
        return FAMILIES[value]()
    raise ValueError(
        f"unknown family {value!r}; use one of {', '.join(map(repr, FAMILIES))} "
        "or an object of coem.families"
    )
