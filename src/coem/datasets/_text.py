"""What the text collections share: counting words, and choosing the views."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from coem.text import TextViews
from coem.typing import Array, Matrix

Counts: TypeAlias = tuple[dict[str, Matrix], dict[str, Array]]


def choose(argument: str, value: object, allowed: Iterable[str]) -> None:
    """Refuse a value that is not among those allowed."""
    allowed = tuple(allowed)
    if value not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ValueError(f"{argument} must be one of {names}; got {value!r}")


def choose_views(views: str | Sequence[str], allowed: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the views to build, each once, a single one given as a string or not."""
    names, allowed = (views,) if isinstance(views, str) else tuple(views), tuple(allowed)
    for name in names:
        choose("views", name, allowed)
    if not names or len(set(names)) < len(names):
        raise ValueError(f"views must name at least one view and none twice; got {views!r}")
    return names


def count_words(
    texts: Mapping[str, Sequence[str]], stop_words: Any, min_df: float, **options: Any
) -> Counts:
    """Return the float32 word counts of each view and the words of their columns."""
    if not texts:
        return {}, {}
    columns = {view: list(documents) for view, documents in texts.items()}
    counter = TextViews(
        {view: view for view in columns}, stop_words=stop_words, min_df=min_df, **options
    )
    counts = {view: sp.csr_matrix(rows) for view, rows in counter.fit_transform(columns).items()}
    return counts, dict(counter.vocabulary_)


def to_dates(seconds: Iterable[int | None]) -> Array:
    """Return seconds since 1970 as datetime64[s], NaT where there are none."""
    missing = np.iinfo(np.int64).min  # NumPy's own code for NaT
    values = [missing if second is None else second for second in seconds]
    return np.array(values, dtype=np.int64).astype("datetime64[s]")
