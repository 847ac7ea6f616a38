"""Mixture models over several views: one EM engine, with scikit-learn's manners."""

from importlib.metadata import version

from coem.agglomerative import MultiViewAgglomerative
from coem.estimators import MixtureClassifier, MixtureClusterer, SphericalKMeans
from coem.labels import Not
from coem.views import Views

__version__ = version("coem")

__all__ = [
    "MixtureClassifier",
    "MixtureClusterer",
    "MultiViewAgglomerative",
    "Not",
    "SphericalKMeans",
    "Views",
    "__version__",
]
