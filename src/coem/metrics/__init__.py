"""How good a clustering or a segmentation is, how far views agree, and what chance explains."""

from coem.metrics.clusterings import (
    agreement_rate,
    aligned_accuracy,
    cluster_entropy,
    dissent,
    expected_calibration_error,
    reliability_curve,
)
from coem.metrics.partitions import join, meet
from coem.metrics.segmentations import pk, window_diff
from coem.metrics.significance import McNemar, PairedTTest, mcnemar, paired_t_test

__all__ = [
    "agreement_rate",
    "aligned_accuracy",
    "cluster_entropy",
    "dissent",
    "expected_calibration_error",
    "reliability_curve",
    "join",
    "meet",
    "pk",
    "window_diff",
    "McNemar",
    "PairedTTest",
    "mcnemar",
    "paired_t_test",
]
