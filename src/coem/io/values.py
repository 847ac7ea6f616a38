"""What values model files know, how they say so, and what is wrong if they do not.

None, booleans, numbers, strings and lists are themselves in JSON. Anything else is an object of one
key, which says what it is: ``{"tuple": [...]}``, ``{"array": "3"}`` (the member ``3.npy``),
``{"object": ["Linear", {...}]}``.
"""

import inspect
from typing import Any

import numpy as np
import scipy.sparse as sp

SCALARS = {
    kind.__name__: kind
    for kind in (
        *(np.bool_, np.str_, np.float16, np.float32, np.float64),
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    )
}
TYPES: dict[str, type] = SCALARS | {kind.__name__: kind for kind in (bool, int, float, str)}
SPARSE = {
    kind.__name__: kind for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array)
}


class ModelFileError(ValueError):
    """A model cannot be saved, or a file cannot be loaded as a model."""


class Absent:
    """Stands for a part of a model that no file can hold, such as a function.

    Parameters
    ----------
    what : str
        What it was.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return f"Absent({self.what!r})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Say what is to be done, as this can do nothing."""
        raise ModelFileError(
            f"the model was saved without its {self.what}, which no file can hold; give it to "
            "coem.load, as in coem.load(path, fill={'encoder': encoder})"
        )

    encode = __call__


def parameters(cls: type) -> dict[str, Any]:
    """Return the parameters of an estimator by name, with their defaults."""
    signature = inspect.signature(cls)
    return {name: parameter.default for name, parameter in signature.parameters.items()}
