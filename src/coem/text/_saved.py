"""What a model file may hold of a reader of tables."""

from coem.estimators._saved import need
from coem.io import register
from coem.text.embed import Embed
from coem.text.views_of_tables import TextViews


def _check(reader):
    """Refuse a fitted reader whose parts do not fit together."""
    if not hasattr(reader, "vocabulary_"):
        return
    need(set(reader.vocabulary_) == set(reader.views_), "the views")
    for spec in reader.views_.values():
        need({"kind", "columns"} <= set(spec), "the columns of a view")


register(Embed, absent=("encoder",), skip=("cache",))
register(TextViews, check=_check)
