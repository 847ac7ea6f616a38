"""Engines: where partitions and their states live, and what computes on them."""

from typing import Any

from coem.engine.dask import DaskEngine, current_client, is_client
from coem.engine.local import LocalEngine
from coem.protocols import Engine

__all__ = ["Engine", "LocalEngine", "as_engine"]

PROTOCOL = ("map", "each_part", "open", "open_parts", "n_workers", "__enter__", "__exit__")


def as_engine(engine: Any, n_jobs: int | None = None) -> Engine:
    """Return the engine that a user means.

    Parameters
    ----------
    engine : None, "dask", distributed.Client or Engine
        None are the threads of this process. "dask" is the cluster of the current client.
    n_jobs : int, optional
        Number of threads of this process, unless an engine is given.
    """
    if engine is None:
        return LocalEngine(n_jobs)
    if is_client(engine):
        return DaskEngine(engine, n_jobs)
    if isinstance(engine, str) and engine == "dask":
        return DaskEngine(current_client(), n_jobs)
    if not all(hasattr(engine, name) for name in PROTOCOL):
        raise ValueError(
            f'engine must be None, "dask", a distributed.Client or an engine of coem.engine, got '
            f"{engine!r}"
        )
    found: Engine = engine
    return found
