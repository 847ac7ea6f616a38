"""The views of a post: words, sentence vectors and latent directions, alone and together."""

from typing import Any

from coem import Views
from coem.experiments.beyond._setting import documents, words
from coem.text import LatentDirections

WORDS, VECTORS, DIRECTIONS = "words", "vectors", "directions"
ALONE = ((WORDS,), (VECTORS,), (DIRECTIONS,))
TOGETHER = ((WORDS, VECTORS), (WORDS, DIRECTIONS), (WORDS, VECTORS, DIRECTIONS))


def all_views(data: str, train: Any, *others: Any) -> list[dict[str, Any]]:
    """Return words, sentence vectors and latent directions, which are found in the first rows."""
    counts, vectors, _ = documents(data)
    latent = LatentDirections().fit(counts[train])
    return [
        {WORDS: X, VECTORS: vectors[rows], DIRECTIONS: latent.transform(counts[rows])}
        for X, rows in zip(words(data, train, *others), (train, *others), strict=True)
    ]


def chosen(views: dict[str, Any], used: tuple[str, ...]) -> tuple[Views, dict[str, Any]]:
    """Return some of the views, and their families."""
    families = {v: "multinomial" if v == WORDS else "von_mises_fisher" for v in used}
    return Views({v: views[v] for v in used}), families


def named(used: tuple[str, ...]) -> str:
    """Return the names of views in one."""
    return " + ".join(used)
