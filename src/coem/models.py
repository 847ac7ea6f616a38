"""Models to files and back: every class that a model file may hold is known here."""

import itertools
import warnings
from numbers import Integral

from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.pipeline import Pipeline

from coem import agglomerative, estimators, text  # noqa: F401  (they register their classes)
from coem.io.loaded import is_count, is_table_of, need
from coem.io.model_file import ModelInfo, read_info, read_model, write_model
from coem.io.registry import register
from coem.io.values import Absent, ModelFileError

__all__ = ["Absent", "ModelFileError", "ModelInfo", "load", "read_info", "save"]


def save(model, path, *, extra=None, fingerprint=None):
    """Write a model to a file, and replace an existing file.

    The file is written completely or not at all.

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


def load(path, *, fill=None, trust_patterns=False):
    """Return the model of a file. Nothing in the file is executed.

    Parameters
    ----------
    path : path
        A file that `save` has written.
    fill : dict, optional
        What no file can hold, by the name of its field: ``{"encoder": encoder}``.
    trust_patterns : bool, default=False
        Load a `token_pattern` whatever it is. Otherwise only patterns are loaded that find words in
        a time proportional to the text: one kind of character after the other, the last of them
        repeated, such as ``[a-z]{3,}``. The same holds for an `ngram_range`, and n-grams of more
        than 10 words or characters. Set it for a file of your own, or of an author you trust.

    Returns
    -------
    model : estimator
        It predicts what the saved one did, to the last bit.

    Raises
    ------
    ModelFileError
        If the file is not a model, is damaged, was saved by a newer coem, or has a pattern that is
        not trusted.
    FileNotFoundError, PermissionError
        If there is no such file, or it may not be read.
    """
    return read_model(path, fill=fill, trust_patterns=trust_patterns)


def _check_pipeline(pipeline):
    """Refuse steps that do not fit each other: as many columns out as the next one takes."""
    pairs = pipeline.steps if isinstance(pipeline.steps, list | tuple) else [None]
    need(all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs), "steps")
    steps = [step for _, step in pairs if step is not None and not isinstance(step, str)]
    need(all(step == "passthrough" for _, step in pairs if isinstance(step, str)), "a step")
    need(all(hasattr(step, "fit") for step in steps), "a step")
    for first, second in itertools.pairwise(steps):
        if hasattr(second, "n_features_in_") and hasattr(first, "get_feature_names_out"):
            fits = _n_columns_out(first) == second.n_features_in_
            need(bool(fits), f"the input of {type(second).__name__}")


def _n_columns_out(step):
    """Return how many columns a step makes.

    A file can claim any number, so that their names are not made if there is another way.
    """
    if isinstance(step, CountVectorizer) and hasattr(step, "vocabulary_"):
        return len(step.vocabulary_)
    if isinstance(step, text.TextViews) and hasattr(step, "vocabulary_"):
        return sum(map(len, step.vocabulary_.values()))
    if isinstance(step, TfidfTransformer) and hasattr(step, "n_features_in_"):
        return step.n_features_in_
    if hasattr(step, "_n_features_out"):
        return step._n_features_out
    names = step.get_feature_names_out()
    return sum(map(len, names.values())) if isinstance(names, dict) else len(names)


def _check_vectorizer(vectorizer):
    """Refuse words that do not have the columns from 0 on, one each."""
    words = getattr(vectorizer, "vocabulary_", {})
    need(isinstance(words, dict) and all(isinstance(word, str) for word in words), "vocabulary_")
    need(all(isinstance(column, Integral) for column in words.values()), "vocabulary_")
    need(set(words.values()) == set(range(len(words))), "vocabulary_")
    span = vectorizer.ngram_range
    plain = isinstance(span, list | tuple) and len(span) == 2
    plain = plain and all(isinstance(n, Integral) for n in span)
    need(plain and 0 <= span[0] <= span[1], "ngram_range")  # scikit-learn goes on from any number
    if words and vectorizer.input == "content":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about stop words: it was said in `fit`
            vectorizer.transform(["a few words"])


def _check_weights_of_words(transformer):
    """Refuse weights that are not one for each word."""
    if hasattr(transformer, "n_features_in_"):
        need(is_count(transformer.n_features_in_), "n_features_in_")
    if hasattr(transformer, "idf_"):
        need(is_table_of(transformer.idf_, transformer.n_features_in_), "idf_")


register(Pipeline, check=_check_pipeline)
register(
    CountVectorizer,
    skip=("_stop_words_id",),
    patterns=("token_pattern",),
    spans=("ngram_range",),
    check=_check_vectorizer,
)
register(TfidfTransformer, check=_check_weights_of_words)
