"""The parameters of a recipe: checked before any work, and written in one way.

They are the ``arguments`` of run.json, from which ``coem rerun`` calls the recipe again.
"""

import os
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

from coem.checks import check_flag, check_number
from coem.recipes.encoders import check_encoder
from coem.text import NamedEncoder
from coem.text.specs import embedded
from coem.text.stop_words import NONE, check_stop_words, parts_of, written

# The kind and the smallest value of every parameter that is a number, and whether None is one.
NUMBERS = {
    "k": (Integral, 1, True),
    "restarts": (Integral, 1, False),
    "folds": (Integral, 2, False),
    "max_iter": (Integral, 1, False),
    "seed": (Integral, 0, False),
    "threads": (Integral, 1, True),
    "ngrams": (Integral, 1, False),
    "max_length": (Real, 0, True),
    "words": (Integral, 1, False),
}
MOST_RESTARTS = 10_000
FLAGS = ("doctor", "multi", "skip_bad", "plain")
READING = ("encoding", "delimiter", "sheet", "skip_bad", "plain")


def normal(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return checked parameters, with one form for those that can be given in two."""
    settings = dict(given)
    for name in settings.keys() & NUMBERS.keys():
        kind, least, optional = NUMBERS[name]
        check_number(name, settings[name], kind, least, optional=optional)
    restarts = settings.get("restarts", 0)
    if restarts > MOST_RESTARTS:  # each is kept until all are compared
        raise ValueError(f"restarts must be at most {MOST_RESTARTS:,}, got {restarts:,}")
    for name in settings.keys() & set(FLAGS):
        check_flag(name, settings[name])
    settings["text"] = _texts(settings["text"])
    if "views" in settings:
        settings["views"] = _views(settings["views"], settings["text"])
        found = check_encoder(settings)
        settings |= {"encoder": found} if "encoder" in settings else {}
    if isinstance(settings.get("labels"), str | os.PathLike):
        settings["labels"] = os.path.abspath(settings["labels"])
    settings["stop_words"] = _stop_words(settings["stop_words"])
    if "latent" in settings:
        settings["latent"] = _latent(settings["latent"])
    if "max_length" in settings:
        settings["max_length"] = float(settings["max_length"] or 0)
    return settings


def _stop_words(words: Any) -> str | list[str]:
    """Return stop words: names with + between them, "none" or a sorted list of words."""
    check_stop_words(words)
    if words is None or isinstance(words, str):
        return written(parts_of(words or NONE))
    return sorted(words)


def _texts(text: Any) -> list[str]:
    """Return the columns of the text as a list."""
    names = [text] if isinstance(text, str) else list(text or ())
    if not all(isinstance(name, str) for name in names):
        raise TypeError(f"text must be the name of a column or a list of names, got {text!r:.80}")
    return names


def _latent(latent: Any) -> int | str:
    """Return how many latent directions there are: a number, "auto" or "none"."""
    if latent is None or isinstance(latent, str):
        if latent not in (None, "none", "auto"):
            raise ValueError(
                f"latent must be a number of directions, 'auto' or None, got {latent!r}"
            )
        return latent or "none"
    check_number("latent", latent, Integral, 1)
    return int(latent)


def _views(views: Any, text: list[str]) -> dict[str, Any]:
    """Return the views by name; files have full names, since a model may be used elsewhere."""
    if views is not None and not isinstance(views, Mapping):
        raise TypeError(
            f"views must be a dict such as {{'title': 'title', 'links': 'refs:list'}}, got "
            f"{views!r:.80}"
        )
    if text and "text" in (views or {}):
        raise ValueError("there are two views 'text': text= makes one, and views= names another")
    return {name: _full_name(spec) for name, spec in (views or {}).items()}


def _full_name(spec: Any) -> Any:
    """Return the full name of a file of vectors, and anything else as it is."""
    named = isinstance(spec, str | os.PathLike) and os.fspath(spec).endswith(".npy")
    return os.path.abspath(spec) if named else spec


def recorded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings for JSON; a view that is not given by columns or a file is None."""
    found = dict(settings)
    if isinstance(found.get("encoder"), NamedEncoder):
        found["encoder"] = found["encoder"].name
    named = isinstance(found.get("encoder"), str)
    if "views" in found:
        views = found["views"].items()
        found["views"] = {n: s if _is_plain(s, named) else None for n, s in views}
    if "encoder" in found and not named:
        found["encoder"] = None  # none, or an object in Python
    if not isinstance(found.get("labels"), str | None):
        found["labels"] = None  # a table in Python
    return found


def _is_plain(spec: Any, named: bool) -> bool:
    """Return whether names say all of a view; `named` says whether the encoder has one."""
    return isinstance(spec, str | list | tuple) and (named or embedded(spec) is None)


def on_page(settings: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return what the page tells of how a run was made; of its documents the name.

    Parameters that were not used are left out.
    """
    shown = recorded(settings)
    if shown.get("views"):
        views = shown["views"].items()
        shown["views"] = {n: "given in Python" if s is None else s for n, s in views}
    if shown.get("encoder"):
        library, _, model = shown["encoder"].partition(":")
        shown["encoder"] = f"{library}:{os.path.basename(model) if os.path.isabs(model) else model}"
    if shown.get("labels"):
        shown["labels"] = os.path.basename(shown["labels"])
    used = {
        option: value
        for option, value in shown.items()
        if value not in (None, [], {}) and value is not False
    }
    return {"file": name, **used}
