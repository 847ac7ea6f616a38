"""Public data sets, fetched and never shipped.

Each loader returns a :class:`sklearn.utils.Bunch` with ``views``, ``target``, ``target_names``,
``ids`` and ``DESCR``; that of a graph with ``adjacency``, ``ids`` and ``DESCR``. A file is looked
for in the directory that the environment variable ``COEM_DATA`` names, then in the user's cache,
and is then downloaded from the data set's public home (``pip install coem[datasets]``). Its content
is checked wherever it comes from. A few files have no public home and are read from ``COEM_DATA``
alone. ``load_stdlib`` and ``load_stdlib_modules`` need no file: they
read the standard library of the interpreter.
"""

from coem.datasets._cluto import fetch_cluto
from coem.datasets._cora_papers import fetch_cora_papers
from coem.datasets._files import cache_dir
from coem.datasets._graphs import fetch_as_graph, walk_steps
from coem.datasets._linqs import fetch_citeseer, fetch_cora
from coem.datasets._modules import load_stdlib_modules
from coem.datasets._news_pairs import fetch_news_pairs
from coem.datasets._newsgroups import fetch_20newsgroups
from coem.datasets._reuters import fetch_reuters
from coem.datasets._smart import fetch_cranfield, fetch_medline
from coem.datasets._stdlib import load_stdlib
from coem.datasets._webkb import fetch_webkb
from coem.datasets._webkb_course import fetch_webkb_course

__all__ = [
    "cache_dir",
    "fetch_20newsgroups",
    "fetch_as_graph",
    "fetch_citeseer",
    "fetch_cluto",
    "fetch_cora",
    "fetch_cora_papers",
    "fetch_cranfield",
    "fetch_medline",
    "fetch_news_pairs",
    "fetch_reuters",
    "fetch_webkb",
    "fetch_webkb_course",
    "load_stdlib",
    "load_stdlib_modules",
    "walk_steps",
]
