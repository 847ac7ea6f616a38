"""Models to files and back: every class that a model file may hold is known here."""

import itertools

from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline

from coem import agglomerative, estimators, text  # noqa: F401  (they register their classes)
from coem.io.loaded import need
from coem.io.model_file import ModelInfo, read_info, read_model, write_model
from coem.io.registry import register
from coem.io.values import Absent, ModelFileError

__all__ = ["Absent", "ModelFileError", "ModelInfo", "load", "read_info", "save"]


def save(model, path, *, extra=None, fingerprint=None):
    """Write a model to a file, whole or not at all, in place of what is there.

    Parameters
    ----------
    model : estimator
        An estimator or a transformer of coem, fitted or not, or a scikit-learn `Pipeline` of such
        steps, `CountVectorizer` and `TfidfTransformer`.
    path : path
        The file; its name usually ends in ``.coem``.
    extra : dict, optional
        Anything that JSON can hold, to be kept with the model; `read_info` returns it.
    fingerprint : str, optional
        What identifies the data of the fit, such as the `fingerprint` of a table.

    Raises
    ------
    ModelFileError
        If the model has a part that a file cannot hold.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import coem
    >>> X = np.array([[5, 1, 0], [4, 0, 0], [0, 1, 3], [0, 0, 6]])
    >>> model = coem.MixtureClusterer(2, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     coem.save(model, f"{folder}/model.coem", extra={"name": "toy"})
    ...     again = coem.load(f"{folder}/model.coem")
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    write_model(model, path, extra=extra, fingerprint=fingerprint)


def load(path, *, fill=None):
    """Return the model of a file. Nothing in the file is executed.

    Parameters
    ----------
    path : path
        A file that `save` has written.
    fill : dict, optional
        What no file can hold, by the name of its field: ``{"encoder": encoder}``.

    Returns
    -------
    model : estimator
        It predicts what the saved one did, to the last bit.

    Raises
    ------
    ModelFileError
        If the file is no model, damaged, or of a newer coem.
    FileNotFoundError, PermissionError
        If there is no such file, or it may not be read.
    """
    return read_model(path, fill=fill)


def _check_pipeline(pipeline):
    """Refuse steps that do not fit each other: as many columns out as the next one takes."""
    steps = [step for _, step in pipeline.steps if not isinstance(step, str | None)]
    need(all(hasattr(step, "fit") for step in steps), "a step")
    for first, second in itertools.pairwise(steps):
        if hasattr(second, "n_features_in_") and hasattr(first, "get_feature_names_out"):
            names = first.get_feature_names_out()
            parts = names.values() if isinstance(names, dict) else [names]
            width = sum(len(part) for part in parts)
            need(width == second.n_features_in_, f"the input of {type(second).__name__}")


register(Pipeline, skip=("memory",), check=_check_pipeline)
register(CountVectorizer, skip=("_stop_words_id",))
register(TfidfTransformer)
