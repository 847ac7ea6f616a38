"""Whether the arrays of a CSR matrix fit each other."""

from coem.kernels import _compiled
from coem.typing import Array

CANONICAL, LOOSE = -1, -2


def structure(indptr: Array, indices: Array, n_columns: int) -> int:
    """Look at every row and column of a CSR matrix, and read nothing outside its arrays.

    Parameters
    ----------
    indptr : array of shape (n_rows + 1,)
        It must begin with 0.
    indices : array
        Of the dtype of `indptr`, int32 or int64.
    n_columns : int

    Returns
    -------
    found : int
        The first row that points outside the arrays or the columns. If there is none: `CANONICAL`
        if the columns of each row are in order and none is there twice, else `LOOSE`.
    """
    return _compiled.structure(indptr, indices, n_columns)
