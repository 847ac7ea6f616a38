"""Register `TextViews` and `Embed` with model files, and check those that are loaded."""

import numpy as np

from coem.io.loaded import need
from coem.io.registry import register
from coem.text.directions import LatentDirections
from coem.text.embed import Embed, check_embed
from coem.text.lists import BETWEEN, USUAL
from coem.text.specs import KINDS
from coem.text.views_of_tables import TextViews


def check_text_views(model):
    """Raise unless the vocabularies and links of a `TextViews` fit its views."""
    if not hasattr(model, "vocabulary_"):
        return
    need(list(model.vocabulary_) == list(model.views_), "vocabulary_")
    for spec in model.views_.values():
        need(set(spec) - {"between"} == {"kind", "columns"}, "views_")
        need(spec.get("between", USUAL) in BETWEEN, "what is between the items of a list")
    for view, words in model.vocabulary_.items():
        need(_is_text(words), f"the vocabulary of view {view!r}")
    need(model.n_features_in_ == len(model.feature_names_in_), "n_features_in_")
    for view, links in model.links_.items():
        ends = [links["sources"], links["targets"]]
        need(all(map(_is_text, ends)) and len(ends[0]) == len(ends[1]), f"links of view {view!r}")
    kinds = {view: spec["kind"] for view, spec in model.views_.items()}
    need(set(kinds.values()) <= {*KINDS, "array", "latent"}, "the kind of a view")
    _check_latent(model, kinds)
    inbound = [view for view, kind in kinds.items() if kind == "inbound"]
    need(list(model.links_) == inbound, "links_")
    limits = model._limits()
    need(list(model.kept_) == list(limits), "kept_")
    need(all(isinstance(v, float) and 0 <= v <= 1 for v in model.kept_.values()), "kept_")
    _check_stop_words(model, [view for view, kind in kinds.items() if kind == "text"])
    model._options(fitted=True)
    model._lengths("scale_length")


def _check_stop_words(model, texts):
    """Raise unless the views of text, and no others, have stop words."""
    need(list(model.stop_words_) == texts, "stop_words_")
    need(all(map(_is_text, model.stop_words_.values())), "stop_words_")
    need(set(model.stop_lists_) <= set(texts), "stop_lists_")
    need(all(isinstance(named, str) for named in model.stop_lists_.values()), "stop_lists_")
    need(all(isinstance(share, float) for share in model.languages_.values()), "languages_")


def _check_latent(model, kinds):
    """Raise unless the latent directions are made of the views of text."""
    found, own = model.latent_, [view for view, kind in kinds.items() if kind == "latent"]
    if found is None:
        need(not own, "latent_")
        return
    need(isinstance(found, LatentDirections) and own == [found.name], "latent_")
    widths = {view: len(model.vocabulary_[view]) for view in kinds if kinds[view] == "text"}
    fits = (tuple(widths), tuple(widths.values())) == (found.view_names_, found.view_widths_)
    need(fits and found.n_directions_ == len(model.vocabulary_[found.name]), "latent_")


def _is_text(words):
    plain = isinstance(words, np.ndarray) and words.dtype == object and words.ndim == 1
    return plain and all(type(word) is str for word in words.tolist())


register(TextViews, check=check_text_views)
# A file cannot hold the encoder, which is a function, and must not name one that is then loaded.
# The cache belongs to the machine.
register(Embed, absent=("encoder",), skip=("cache",), check=check_embed)
