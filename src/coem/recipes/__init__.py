"""Recipes: from a table of documents to groups, classes, topics or segments, in one call.

The program is a face of them: ``coem cluster FILE ...`` and ``coem.cluster(FILE, ...)`` give the
same bits. The names are imported when they are first asked for, because ``coem --help`` needs the
defaults and nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coem.recipes.classifying import classify
    from coem.recipes.clustering import cluster
    from coem.recipes.ingesting import ingest
    from coem.recipes.listener import Listener
    from coem.recipes.result import Result
    from coem.recipes.segmenting import segment
    from coem.recipes.sizes import how_many
    from coem.recipes.streaming import stream
    from coem.recipes.topics_of import topics

__all__ = [
    "cluster",
    "classify",
    "topics",
    "segment",
    "stream",
    "how_many",
    "ingest",
    "Result",
    "Listener",
]

_HOMES = {
    "cluster": "clustering",
    "classify": "classifying",
    "topics": "topics_of",
    "segment": "segmenting",
    "stream": "streaming",
    "how_many": "sizes",
    "ingest": "ingesting",
    "Result": "result",
    "Listener": "listener",
}


def __getattr__(name: str) -> Any:
    """Return a public name, importing what it needs."""
    if name not in _HOMES:
        raise AttributeError(f"module 'coem.recipes' has no attribute {name!r}")
    value = getattr(import_module(f"coem.recipes.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
