"""Mixture models over several views: one EM engine, with scikit-learn's manners."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from coem.agglomerative import MultiViewAgglomerative
    from coem.corpus import Corpus, open_corpus
    from coem.estimators import (
        AspectModel,
        HiddenMarkovModel,
        MixtureClassifier,
        MixtureClusterer,
        PooledClassifier,
        SphericalKMeans,
        TrafficModel,
        couple,
    )
    from coem.labels import Not
    from coem.models import ModelFileError, load, read_info, save
    from coem.recipes import classify, cluster, ingest, segment, stream, topics
    from coem.run_coupling import RowCoupling, RunCoupling
    from coem.views import Views

    __version__: str

__all__ = [
    "AspectModel",
    "Corpus",
    "HiddenMarkovModel",
    "MixtureClassifier",
    "MixtureClusterer",
    "ModelFileError",
    "MultiViewAgglomerative",
    "Not",
    "PooledClassifier",
    "RowCoupling",
    "RunCoupling",
    "SphericalKMeans",
    "TrafficModel",
    "Views",
    "__version__",
    "classify",
    "cluster",
    "couple",
    "ingest",
    "load",
    "open_corpus",
    "read_info",
    "save",
    "segment",
    "stream",
    "topics",
]

# Where the names are. They are imported when first asked for: `coem --help` needs none of them,
# and scikit-learn alone takes longer to import than the program may take to answer.
_HOMES = {
    "MultiViewAgglomerative": "coem.agglomerative",
    "Corpus": "coem.corpus",
    "Not": "coem.labels",
    "open_corpus": "coem.corpus",
    "RowCoupling": "coem.run_coupling",
    "RunCoupling": "coem.run_coupling",
    "Views": "coem.views",
    **dict.fromkeys(("ModelFileError", "load", "read_info", "save"), "coem.models"),
    **dict.fromkeys(
        ("classify", "cluster", "ingest", "segment", "stream", "topics"), "coem.recipes"
    ),
}


def __getattr__(name: str) -> Any:
    """Return a public name, importing what it needs."""
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("coem")
    elif name in __all__:
        value = getattr(import_module(_HOMES.get(name, "coem.estimators")), name)
    else:
        raise AttributeError(f"module 'coem' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, imported or not."""
    return sorted({*globals(), *__all__})
