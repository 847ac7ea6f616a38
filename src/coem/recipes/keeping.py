"""What recipes keep of their fits, so that one that was stopped can go on."""

import os
from typing import Any

from coem.io.fingerprint import fingerprint
from coem.io.kept import Kept, kept_fits
from coem.kernels import instruction_set
from coem.recipes.documents import Documents
from coem.recipes.record import versions
from coem.recipes.settings import recorded

Place = str | os.PathLike[str]


class Digest:
    """A digest, of which messages only say that it differs."""

    def __init__(self, value: str) -> None:
        self.value = value

    def __repr__(self) -> str:
        """Return the same text for all digests."""
        return "a digest"


def about_call(verb: str, settings: dict[str, Any], documents: Documents) -> dict[str, Any]:
    """Return what makes a call of a recipe: the same has the same results.

    They depend on the versions of the libraries and on the instructions of the processor, so that
    these have to be the same.
    """
    about = recorded(settings)
    about.pop("threads", None)
    about |= {"verb": verb, **versions(about), "the instruction set": instruction_set()}
    return about | {"documents": Digest(documents.fingerprint)}


def kept_recipe(place: Place | None, about: dict[str, Any]) -> Kept | None:
    """Return the folder that keeps the fits of a call, or None if there is none."""
    return kept_fits(place, about, [])


def digest_of_call(about: dict[str, Any], names_from: Place | None) -> str:
    """Return what run.json has of a call, before anything was chosen or names were taken over."""
    earlier = None if names_from is None else os.path.realpath(names_from)
    return fingerprint(about | {"names_from": earlier}, [])
