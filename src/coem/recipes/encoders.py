"""Sentence vectors in recipes: which encoder makes them, and where they are kept."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from coem.recipes.listener import Listener
from coem.text import Embed, NamedEncoder
from coem.text.embed import BATCH, watch_encoding
from coem.text.encoders import fingerprint
from coem.text.specs import embedded

FOLDER = "vectors"  # of the cache


def check_encoder(settings: Mapping[str, Any]) -> Any:
    """Return the encoder of some settings, found by its name; raise if there is no use for it."""
    views = [view for view, spec in settings["views"].items() if _asks(spec)]
    if "encoder" not in settings:
        if views:
            raise ValueError(
                f"view {views[0]!r} is of kind 'embed', and topics are found in words or lists; "
                "name text columns with text=, or use coem.cluster"
            )
        return None
    encoder = settings["encoder"]
    if encoder is None and views:
        raise ValueError(
            f"view {views[0]!r}: sentence vectors need an encoder; name a model with encoder='NAME'"
        )
    if encoder is None:
        return None
    if not views:
        raise ValueError(
            "there is an encoder, and no view for it; add one with "
            "views={'meaning': 'COLUMN:embed'}"
        )
    if isinstance(encoder, str | os.PathLike):
        return NamedEncoder(os.fspath(encoder))
    if not callable(getattr(encoder, "encode", encoder)):
        raise TypeError(
            "encoder must be the name of a model, an object with a method encode, or a function of "
            f"a list of str, got {encoder!r:.80}"
        )
    return encoder


def _asks(spec: Any) -> bool:
    """Return whether a specification of columns asks for sentence vectors."""
    return embedded(spec.split("+")[-1] if isinstance(spec, str) else spec) is not None


def with_encoder(views: dict[str, Any], encoder: Any) -> dict[str, Any]:
    """Return views with an `Embed` in place of what says ``COLUMN:embed``."""
    found = {}
    for view, spec in views.items():
        columns = embedded(spec)
        if columns is not None and encoder is not None:
            spec = Embed(columns[0] if len(columns) == 1 else columns, encoder)
        found[view] = spec
    return found


def embeds_of(reader: Any) -> dict[str, Embed]:
    """Return the views of a `TextViews` that an encoder makes."""
    views = reader.views if isinstance(reader.views, Mapping) else {}
    return {view: spec for view, spec in views.items() if isinstance(spec, Embed)}


def prepare(reader: Any, listener: Listener) -> None:
    """Load encoders that have names, before any work, and give their vectors a place to stay."""
    found = {view: _ready(embed, listener) for view, embed in embeds_of(reader).items()}
    if found:
        reader.set_params(views={**reader.views, **found})


def _ready(embed: Embed, listener: Listener) -> Embed:
    """Return a view that knows its encoder again; vectors of a function have no name to go by."""
    encoder = embed.encoder
    if not isinstance(encoder, NamedEncoder):
        return embed
    known = {}
    if embed.probe is None:
        known = {"probe": encoder.probe, "files": encoder.files}
    return replace(embed, cache=embed.cache or _folder(encoder, listener), **known)


def _folder(encoder: NamedEncoder, listener: Listener) -> Path | None:
    """Return where the vectors of a model are kept, or None if nothing can be written there."""
    from coem.datasets import cache_dir

    if encoder.files is None and not encoder.probe.any():
        listener.note(
            "note: the vectors are not kept for another time: the encoder gives all known "
            "sentences a vector of zeros, so that coem cannot distinguish it from others"
        )
        return None
    model = Path(encoder.name.partition(":")[2]).name
    known = fingerprint(encoder.probe, encoder.files)
    folder = cache_dir() / FOLDER / f"{model[:60]}-{known[:16]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
        reason = "it must not be written"
    except OSError as error:
        reason = str(error.strerror).lower()
    listener.note(
        f"note: the vectors are not kept for another time: {folder}: {reason}; the variable "
        "COEM_CACHE can name another place"
    )
    return None


@contextmanager
def encoding(reader: Any, n_rows: int, listener: Listener) -> Iterator[None]:
    """Show how texts are encoded, if any are."""
    embeds = embeds_of(reader)
    if not embeds:
        yield
        return
    batches = len(embeds) * -(-n_rows // BATCH)
    with (
        listener.progress("batches of texts encoded", batches) as bar,
        watch_encoding(lambda done, total: bar.step(f"{done:,} of {total:,} new texts")),
    ):
        yield


def known_encoder(reader: Any) -> str | None:
    """Return what the encoder of a `TextViews` is known by, or None if it has no name."""
    embeds = [embed for embed in embeds_of(reader).values() if embed.probe is not None]
    return fingerprint(embeds[0].probe, embeds[0].files) if embeds else None
