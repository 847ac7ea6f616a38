"""Mixture models over several views: one EM engine, with scikit-learn's manners."""

from importlib.metadata import version

from coem.agglomerative import MultiViewAgglomerative
from coem.estimators import (
    AspectModel,
    MixtureClassifier,
    MixtureClusterer,
    SphericalKMeans,
    TrafficModel,
    couple,
)
from coem.labels import Not
from coem.latent.runs import RunCoupling
from coem.latent.shared_rows import RowCoupling
from coem.views import Views

__version__ = version("coem")

__all__ = [
    "AspectModel",
    "MixtureClassifier",
    "MixtureClusterer",
    "MultiViewAgglomerative",
    "Not",
    "RowCoupling",
    "RunCoupling",
    "SphericalKMeans",
    "TrafficModel",
    "Views",
    "__version__",
    "couple",
]
