"""Register `TextViews` and `Embed` with model files, and check those that are loaded."""

from coem.io.loaded import is_dict_of, is_text, need
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
    kinds = _check_views(model)
    need(is_dict_of(model.vocabulary_, kinds), "vocabulary_")
    for view, words in model.vocabulary_.items():
        need(is_text(words), f"the vocabulary of view {view!r}")
    need(is_text(model.feature_names_in_), "feature_names_in_")
    need(model.n_features_in_ == len(model.feature_names_in_), "n_features_in_")
    _check_latent(model, kinds)
    _check_links(model, [view for view, kind in kinds.items() if kind == "inbound"])
    limits = model._limits()
    need(is_dict_of(model.kept_, limits), "kept_")
    need(all(isinstance(v, float) and 0 <= v <= 1 for v in model.kept_.values()), "kept_")
    _check_stop_words(model, [view for view, kind in kinds.items() if kind == "text"])
    model._options(fitted=True)
    model._lengths("scale_length")
    model._check_hashing()
    for view in filter(model._hashed, kinds):
        need(len(model.vocabulary_[view]) == model.hash_features, "hash_features")


def _check_views(model):
    """Return the kinds of the views; raise unless each has a kind and the names of its columns."""
    need(isinstance(model.views_, dict) and len(model.views_) > 0, "views_")
    need(model.id is None or isinstance(model.id, str), "id")
    for view, spec in model.views_.items():
        need(isinstance(view, str) and isinstance(spec, dict), "views_")
        need(set(spec) - {"between"} == {"kind", "columns"}, "views_")
        kind, columns = spec["kind"], spec["columns"]
        need(isinstance(kind, str) and kind in {*KINDS, "array", "latent"}, "the kind of a view")
        need(isinstance(columns, list) and all(type(c) is str for c in columns), "views_")
        need(kind in ("array", "latent") or len(columns) > 0, "views_")
        need(spec.get("between", USUAL) in BETWEEN, "what is between the items of a list")
    kinds = {view: spec["kind"] for view, spec in model.views_.items()}
    given = [view for view, kind in kinds.items() if kind in ("array", "embed")]
    need(not given or (isinstance(model.views, dict) and set(given) <= set(model.views)), "views")
    embeds = [model.views[view] for view in given if kinds[view] == "embed"]
    need(all(isinstance(embed, Embed) for embed in embeds), "views")
    return kinds


def _check_links(model, inbound):
    """Raise unless the views of inbound links, and no others, have links."""
    need(is_dict_of(model.links_, inbound), "links_")
    need(not inbound or model.id is not None, "id")
    for view, links in model.links_.items():
        need(is_dict_of(links, ("sources", "targets")), f"links of view {view!r}")
        ends = list(links.values())
        need(all(map(is_text, ends)) and len(ends[0]) == len(ends[1]), f"links of view {view!r}")


def _check_stop_words(model, texts):
    """Raise unless the views of text, and no others, have stop words."""
    need(is_dict_of(model.stop_words_, texts), "stop_words_")
    need(all(map(is_text, model.stop_words_.values())), "stop_words_")
    for name, kind in (("stop_lists_", str), ("languages_", float)):
        found = getattr(model, name)
        need(isinstance(found, dict) and all(isinstance(v, kind) for v in found.values()), name)
    need(set(model.stop_lists_) <= set(texts), "stop_lists_")


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


register(TextViews, patterns=("token_pattern",), spans=("ngram_range",), check=check_text_views)
# A file cannot hold the encoder, which is a function, and must not name one that is then loaded.
# The cache belongs to the machine.
register(Embed, absent=("encoder",), skip=("cache",), check=check_embed)
