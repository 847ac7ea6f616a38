"""Public data sets, fetched and never shipped.

Each loader returns a :class:`sklearn.utils.Bunch` with ``views``, ``target``, ``target_names``,
``ids`` and ``DESCR``. A file is looked for in the directory that the environment variable
``COEM_DATA`` names, then in the user's cache, and is then downloaded from the data set's public
home (``pip install coem[datasets]``). Its content is checked wherever it comes from.
``load_stdlib`` needs no file: it reads the standard library of the interpreter.
"""

from coem.datasets._linqs import fetch_citeseer, fetch_cora
from coem.datasets._stdlib import load_stdlib

__all__ = ["fetch_citeseer", "fetch_cora", "load_stdlib"]
