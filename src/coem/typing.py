"""Names for the types that travel between the layers."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""A dense array."""

Matrix: TypeAlias = Any
"""One view: a dense two-dimensional array, or a scipy CSR matrix or array."""

Theta: TypeAlias = Any
"""Parameters of a family: an array, or a NamedTuple of arrays, components on the first axis."""

Rng: TypeAlias = np.random.Generator
"""A source of random numbers."""
