"""The estimators: the models of coem with the interface of scikit-learn."""

from coem.estimators import _saved  # noqa: F401  (registers the estimators with model files)
from coem.estimators._couple import couple
from coem.estimators.aspect import AspectModel
from coem.estimators.classifier import MixtureClassifier
from coem.estimators.clusterer import MixtureClusterer
from coem.estimators.hmm import HiddenMarkovModel
from coem.estimators.pooled import PooledClassifier
from coem.estimators.spherical import SphericalKMeans
from coem.estimators.traffic import TrafficModel

__all__ = [
    "AspectModel",
    "HiddenMarkovModel",
    "MixtureClassifier",
    "MixtureClusterer",
    "PooledClassifier",
    "SphericalKMeans",
    "TrafficModel",
    "couple",
]
