"""Types of the parameters that users pass to several estimators."""

from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike

Seed: TypeAlias = int | np.random.RandomState | None
"""What scikit-learn calls `random_state`."""

Precision: TypeAlias = DTypeLike | None
"""float32, float64, or None for the choice of the estimator."""

Folder: TypeAlias = str | PathLike[str]
"""The path of a folder."""

EngineLike: TypeAlias = Any
"""None, an `Engine`, a `distributed.Client` or "dask": what `coem.engine.as_engine` takes."""
