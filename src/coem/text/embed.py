"""Sentence vectors of a text column as a view, and a store of them on disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from coem.io.loaded import need
from coem.text._store import Store, digest
from coem.text.encoders import PROBES

BATCH = 512  # texts that are encoded, and kept, together

_watchers: list[Callable[[int, int], None]] = []


@contextmanager
def watch_encoding(look: Callable[[int, int], None]) -> Iterator[None]:
    """Call `look` with every batch that is encoded inside the context: texts done, and texts."""
    _watchers.append(look)
    try:
        yield
    finally:
        _watchers.remove(look)


@dataclass(frozen=True, eq=False)
class Embed:
    """A view of vectors that an encoder makes of a text column.

    Parameters
    ----------
    column : str or list of str
        The column of text; several are joined by line breaks.
    encoder : object
        A `NamedEncoder`, anything else with ``encode(list of str)``, such as a model of
        sentence-transformers, or a function of a list of str. It returns one vector a text.
    cache : path, optional
        A folder that keeps the vectors, by the content of the texts: only texts that are not there
        are encoded. A folder is for one encoder; one that holds another's vectors is refused.
    probe : ndarray, optional
        What the encoder says of known texts (`NamedEncoder.probe`). It is saved with a model, so
        that another encoder is refused when the model is used.
    files : str, optional
        The digest of the encoder's files (`NamedEncoder.files`), which is saved with a model for
        the same reason: a small model may know no word of the known texts.

    Notes
    -----
    A row without text has no vector: it is NaN as a whole, and empty for the families. Texts are
    encoded in batches, and every text once.

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
    probe: Any = None
    files: str | None = None

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
        self.check(view)
        known = [texts[i] for i in there]
        vectors = self._encode_all(known, view) if self.cache is None else self._recall(known, view)
        X = np.full((len(texts), vectors.shape[1]), np.nan, vectors.dtype)
        X[there] = vectors
        return X

    def _encode_all(self, texts, view):
        """Return the vectors of texts, of which each is encoded once."""
        places = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        parts = [vectors for _, vectors in self._batches(list(places), view)]
        return np.concatenate(parts)[[places[text] for text in texts]]

    def _batches(self, texts, view):
        """Yield some texts and their vectors, until all are encoded."""
        width = None
        for start in range(0, len(texts), BATCH):
            part = texts[start : start + BATCH]
            vectors = self._encode(part, view)
            width = vectors.shape[1] if width is None else width
            if vectors.shape[1] != width:
                raise ValueError(
                    f"view {view!r}: the encoder returned vectors of {width} numbers, and then of "
                    f"{vectors.shape[1]}"
                )
            yield part, vectors
            for look in tuple(_watchers):
                look(start + len(part), len(texts))

    def _encode(self, texts, view):
        """Return what the encoder says, once it is sure that it is one finite vector a text."""
        encode = getattr(self.encoder, "encode", self.encoder)
        if not callable(encode) or isinstance(self.encoder, str):  # str has an encode of its own
            raise ValueError(
                f"view {view!r}: the encoder must have a method encode or be a function of a list "
                f"of str, such as NamedEncoder(name), and is {self.encoder!r:.80}"
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
        store = Store(self.cache, view)
        self._check_same(store, view)
        keys = [digest(text) for text in texts]
        new = {text: key for key, text in zip(keys, texts, strict=True) if key not in store}
        if new and not len(store):  # in the first file, so that a store always knows its encoder
            new = {**{text: digest(text) for text in PROBES}, **new}
        for part, vectors in self._batches(list(new), view):
            store.add([new[text] for text in part], vectors)
        if new:
            store.tidy()
        return store.take(keys)

    def _said(self, view):
        """Return what the encoder says of the known texts; one with a name remembers it."""
        said = getattr(self.encoder, "probe", None)
        return self._encode(list(PROBES), view) if said is None else said

    def _check_same(self, store, view):
        """Refuse a store of another encoder, which would say something else of the known texts."""
        keys = [digest(text) for text in PROBES]
        known = all(key in store for key in keys)
        if known and not _agree(self._said(view), store.take(keys)):
            raise ValueError(
                f"view {view!r}: {self.cache} holds vectors of another encoder; give each encoder "
                f"a folder of its own"
            )

    def check(self, view):
        """Raise if the encoder is another one than that of the fit, as far as it is known."""
        differs = self._differs(view)
        if differs is None:
            return
        name = getattr(self.encoder, "name", None)
        called = f"the encoder {name!r}" if isinstance(name, str) else "the encoder"
        raise ValueError(
            f"view {view!r}: {called} is not the one of the fit: it {differs}; hand in the model "
            "that it was then, or fit again"
        )

    def _differs(self, view):
        """Return how the encoder differs from that of the fit, or None."""
        if self.probe is not None:
            said = self._said(view)
            if said.shape != self.probe.shape:
                return f"has {said.shape[1]} numbers a text, and had {self.probe.shape[1]}"
            if not _agree(said, self.probe):
                return "gives a known sentence another vector"
        files = getattr(self.encoder, "files", None)
        known = isinstance(files, str) and self.files is not None
        return "has other files" if known and files != self.files else None


def _agree(said, known):
    """Return whether the vectors of the known texts are those of one encoder.

    A difference counts by the largest number of its row, for there are models of small numbers.
    """
    if said.shape != known.shape:
        return False
    least = 1e-3 * np.abs(known).max(axis=1, keepdims=True, initial=0.0)
    return bool((np.abs(said - known) <= 0.01 * np.abs(known) + least).all())


def check_embed(embed):
    """Raise unless the probe and the files of a loaded `Embed` can be such."""
    probe = embed.probe
    plain = isinstance(probe, np.ndarray) and probe.ndim == 2 and probe.dtype.kind == "f"
    need(probe is None or (plain and bool(np.isfinite(probe).all())), "the probe of an Embed")
    need(embed.files is None or isinstance(embed.files, str), "the files of an Embed")
