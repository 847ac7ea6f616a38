"""Defaults of the program that differ from those of the library, because measurements say so.

docs/measurements.md, "Groups of the program", has the figures; benchmarks/groups.py repeats them.
"""

TOL = 1e-4  # a fit ends when the objective changes by less, relative; groups hardly change then
LENGTH = 150.0  # words that a text counts at most
