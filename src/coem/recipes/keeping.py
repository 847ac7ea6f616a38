"""What recipes keep of their fits, so that one that was stopped can go on."""

import os
from typing import Any

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


def kept_recipe(
    verb: str, place: Place | None, settings: dict[str, Any], documents: Documents
) -> Kept | None:
    """Return the folder that keeps the fits of a recipe, or None if there is none.

    Results depend on the versions of the libraries and on the instructions of the processor, so
    that these have to be the same.
    """
    about = recorded(settings)
    about.pop("threads", None)
    about |= {"verb": verb, **versions(about), "the instruction set": instruction_set()}
    return kept_fits(place, about | {"documents": Digest(documents.fingerprint)}, [])
