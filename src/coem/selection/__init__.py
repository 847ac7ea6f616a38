"""Choosing between models: with labels for some rows, or with none at all."""

from coem.selection.doctor import Diagnosis, doctor
from coem.selection.splitters import LabeledKFold, LabeledShuffleSplit, exactly_labelled
from coem.selection.stability import Stability, stability

__all__ = [
    "Diagnosis",
    "doctor",
    "LabeledKFold",
    "LabeledShuffleSplit",
    "exactly_labelled",
    "Stability",
    "stability",
]
