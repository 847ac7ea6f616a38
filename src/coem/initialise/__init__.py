"""Starts: parameters or responsibilities for the first round.

What all restarts share (scaled rows, distances, the order of rows) is prepared once, by `starter`;
what it returns draws one start after the other.
"""

from coem.initialise.labelled import prime, prime_apart
from coem.initialise.seeds import seeder
from coem.initialise.starts import INITS, Init, Start, starter, stored_starter

__all__ = [
    "INITS",
    "Init",
    "Start",
    "prime",
    "prime_apart",
    "seeder",
    "starter",
    "stored_starter",
]
