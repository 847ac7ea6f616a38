"""The estimators: scikit-learn's manners over the engine."""

from coem.estimators.classifier import MixtureClassifier
from coem.estimators.clusterer import MixtureClusterer

__all__ = ["MixtureClassifier", "MixtureClusterer"]
