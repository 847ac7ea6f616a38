"""Sentence vectors of a text column as a view, and a store of them on disk."""

import hashlib
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PROBE = "What is it that co-EM makes of two views?"


@dataclass(frozen=True, eq=False)
class Embed:
    """A view of vectors that an encoder makes of a text column.

    Parameters
    ----------
    column : str or list of str
        The column of text; several are joined by line breaks.
    encoder : object
        Anything with ``encode(list of str)``, such as a model of sentence-transformers, or a
        function of a list of str. It returns one vector a text.
    cache : path, optional
        A folder that keeps the vectors, by the content of the texts: only texts that are not there
        are encoded. A folder is for one encoder; one that holds another's vectors is refused.

    Notes
    -----
    A row without text has no vector: it is NaN as a whole, and empty for the families.

    Examples
    --------
    >>> from coem.text import Embed, TextViews
    >>> def shape(texts):
    ...     return [[len(text), text.count(" ")] for text in texts]
    >>> views = TextViews({"words": "text", "shape": Embed("text", shape)})
    >>> views.fit_transform({"text": ["two words", "and three words"]})["shape"].tolist()
    [[9.0, 1.0], [15.0, 2.0]]
    """

    column: str | list[str]
    encoder: Any
    cache: str | os.PathLike[str] | None = None

    def __deepcopy__(self, memo):
        """Return itself: nothing changes it, and encoders are large."""
        return self

    def __call__(self, texts, view):
        """Return the vectors of texts as rows of a matrix; NaN for None and for blank text.

        Where no text is there the matrix has no columns.
        """
        there = [i for i, text in enumerate(texts) if text and not text.isspace()]
        if not there:
            return np.empty((len(texts), 0))
        known = [texts[i] for i in there]
        vectors = self._encode(known, view) if self.cache is None else self._recall(known, view)
        X = np.full((len(texts), vectors.shape[1]), np.nan, vectors.dtype)
        X[there] = vectors
        return X

    def _encode(self, texts, view):
        """Return what the encoder says, once it is sure that it is one finite vector a text."""
        encode = getattr(self.encoder, "encode", self.encoder)
        if not callable(encode):
            raise ValueError(
                f"view {view!r}: the encoder must have a method encode or be a function of a list "
                f"of str, and is {self.encoder!r:.80}"
            )
        vectors = np.asarray(encode(list(texts)))
        if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.dtype.kind not in "iuf":
            raise ValueError(
                f"view {view!r}: the encoder must return one vector of numbers for each of "
                f"{len(texts)} texts, and returned shape {vectors.shape}, dtype {vectors.dtype}"
            )
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            text = texts[int(finite.argmin())]
            raise ValueError(f"view {view!r}: the encoder's vector of {text!r:.60} is not finite")
        small = vectors.dtype in (np.float16, np.float32)
        return vectors.astype(np.float32 if small else np.float64)

    def _recall(self, texts, view):
        """Return the vectors from the store, after those that it does not have were added to it."""
        folder = Path(self.cache)
        folder.mkdir(parents=True, exist_ok=True)
        keys = [_digest(text) for text in texts]
        store = _read(folder, view)
        self._check_same(store, view)
        new = {key: text for key, text in zip(keys, texts, strict=True) if key not in store}
        if new:
            if not store:
                new[_digest(PROBE)] = PROBE
            vectors = self._encode(list(new.values()), view)
            _write(folder, list(new), vectors)
            store |= zip(new, vectors, strict=True)
        rows = [store[key] for key in keys]
        if len({row.shape for row in rows}) > 1:
            raise ValueError(
                f"view {view!r}: {folder} holds vectors of different lengths; empty it"
            )
        return np.stack(rows)

    def _check_same(self, store, view):
        """Refuse a store of another encoder, which would say something else of the probe."""
        kept = store.get(_digest(PROBE))
        if kept is None:
            return
        (said,) = self._encode([PROBE], view)
        if said.shape != kept.shape or not np.allclose(said, kept, rtol=0.01, atol=1e-3):
            raise ValueError(
                f"view {view!r}: {self.cache} holds vectors of another encoder; give each encoder "
                f"a folder of its own"
            )


def _digest(text):
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _read(folder, view):
    """Return the vectors of a folder by the digests of their texts."""
    store = {}
    for path in sorted(folder.glob("*.npy")):
        try:
            rows = np.load(path, allow_pickle=False)
            keys = (key.tobytes() for key in rows["key"])
            store |= zip(keys, rows["vector"], strict=True)
        except (OSError, ValueError, EOFError, IndexError) as error:
            raise ValueError(
                f"view {view!r}: {path} holds no vectors ({error}); delete it"
            ) from error
    return store


def _write(folder, keys, vectors):
    """Add a file to the store; it gets its name only once it is complete."""
    dtype = [("key", np.uint8, 16), ("vector", vectors.dtype, (vectors.shape[1],))]
    rows = np.empty(len(keys), dtype)
    rows["key"] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)
    rows["vector"] = vectors
    handle, name = tempfile.mkstemp(dir=folder, prefix=".part.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, rows, allow_pickle=False)
        os.replace(name, folder / f"{hashlib.blake2b(b''.join(keys)).hexdigest()[:32]}.npy")
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
