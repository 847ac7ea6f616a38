"""Choosing between models: with labels for some rows, or with none at all."""

from coem.selection.doctor import Diagnosis, doctor, doctor_cost
from coem.selection.held_out import HeldOut, held_out
from coem.selection.sizes import Choice, choose_k
from coem.selection.splitters import LabeledKFold, LabeledShuffleSplit, exactly_labelled
from coem.selection.stability import Stability, stability

__all__ = [
    "Choice",
    "choose_k",
    "Diagnosis",
    "doctor",
    "doctor_cost",
    "HeldOut",
    "held_out",
    "LabeledKFold",
    "LabeledShuffleSplit",
    "exactly_labelled",
    "Stability",
    "stability",
]
