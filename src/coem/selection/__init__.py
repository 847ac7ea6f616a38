"""Choosing between models when only some rows have labels."""

from coem.selection.doctor import Diagnosis, doctor
from coem.selection.splitters import LabeledKFold, LabeledShuffleSplit, exactly_labelled

__all__ = ["Diagnosis", "doctor", "LabeledKFold", "LabeledShuffleSplit", "exactly_labelled"]
