"""Choosing between models when only some rows have labels."""

from coem.selection.splitters import LabeledKFold, LabeledShuffleSplit, exactly_labelled

__all__ = ["LabeledKFold", "LabeledShuffleSplit", "exactly_labelled"]
