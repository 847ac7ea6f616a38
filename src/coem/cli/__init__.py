"""The program `coem`: one file a verb, imported when it is asked for."""

from coem.cli._program import main

__all__ = ["main"]
