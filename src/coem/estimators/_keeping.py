"""What estimators keep of a fit, so that one that was stopped can go on."""

from collections.abc import Collection, Sequence
from typing import Any

from coem.io.checkpoint import Checkpoint
from coem.io.fingerprint import described, fingerprint
from coem.io.kept import MACHINE, Kept, Place, kept_fits
from coem.io.packing import Packing
from coem.labels import Knowledge
from coem.protocols import Theta
from coem.row_store import RowStore
from coem.typing import Array, Matrix
from coem.views import Views

# Parameters that are compared in another way, or that may differ if there is one fit only: `init`
# is part of the data, the seeds are in the plan, and a run may go on for longer.
OF_ONE_FIT = ("random_state", "max_iter", "init")


def checkpoint_of(
    place: Place,
    packing: Packing[Theta],
    params: dict[str, Any],
    data: Sequence[Matrix | None],
    *,
    without: Collection[str] = OF_ONE_FIT,
) -> Checkpoint[Theta]:
    """Return the checkpoint of one fit; `data` is all that it depends on beside its parameters."""
    own = {name: value for name, value in params.items() if name not in {*MACHINE, *without}}
    return Checkpoint(place, packing, fingerprint(own, data), described(own))


def kept_folds(
    place: Place | None,
    params: dict[str, Any],
    views: Views | RowStore,
    knowledge: Knowledge,
    weight: Array | None,
) -> Kept | None:
    """Return the folder of fits to folds of labelled rows, or None if the user asked for none."""
    if isinstance(views, RowStore):
        rows: list[Any] = [views.digest, views.names]
    else:
        rows = [views[name] for name in views.names]
    known = knowledge.allowed, knowledge.codes, knowledge.classes
    return kept_fits(place, params, [*rows, *known, weight])
