"""Engines: where blocks live, and who works on them."""

from coem.engine.base import Engine
from coem.engine.local import LocalEngine

__all__ = ["Engine", "LocalEngine"]
