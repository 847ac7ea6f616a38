"""How good a clustering or a segmentation is, and how far the views agree."""

from coem.metrics.clusterings import (
    agreement_rate,
    aligned_accuracy,
    cluster_entropy,
    dissent,
    expected_calibration_error,
    reliability_curve,
)
from coem.metrics.segmentations import pk, window_diff

__all__ = [
    "agreement_rate",
    "aligned_accuracy",
    "cluster_entropy",
    "dissent",
    "expected_calibration_error",
    "reliability_curve",
    "pk",
    "window_diff",
]
