"""Engines: where partitions and their states live, and who works on them."""

from coem.engine.local import LocalEngine
from coem.protocols import Engine

__all__ = ["Engine", "LocalEngine"]
