"""Whether several texts need latent directions beside them to be grouped."""

import warnings
from typing import Any

import numpy as np
from scipy.stats import entropy

from coem.estimators import MixtureClusterer
from coem.evidence import sampled_rows
from coem.io.kept import Content, Kept, Part, once
from coem.recipes.defaults import TOL
from coem.recipes.listener import Listener
from coem.recipes.views import families, n_jobs
from coem.views import Views

ROUNDS = 60  # of the trial at most
LEAST = 0.5  # the least share of the groups that texts must keep to do without directions
SHARED = 0.25  # the least share of the rows that two texts must have for the trial to count


def keep_directions(
    settings: dict[str, Any],
    reader: Any,
    views: Any,
    k: int,
    listener: Listener,
    kept: Kept | None = None,
) -> Any:
    """Return the views, without latent directions if several texts can do without them.

    Directions are made of the same words as the texts, and of the longest text most of all. Where
    the texts find groups together, directions side with the longest one. Where they do not, most
    rows end in a few large groups, and directions help (docs/evidence.md has the measurements).
    """
    texts = [name for name, spec in reader.views_.items() if spec["kind"] == "text"]
    auto = settings["latent"] == settings["evidence"] == "auto" and settings["method"] == "em"
    if not auto or len(texts) < 2 or reader.latent_ is None:
        return views
    family = {name: found for name, found in families(reader).items() if name in texts}
    with listener.fitting("a trial without latent directions", None):
        own = Views({name: views[name] for name in texts})

        def trial(part: Part | None) -> Content:
            return {"share": kept_groups(own, family, k, n_jobs(settings), part)}, {}

        share = once(kept, "trial", trial)[0]["share"]
    if share < LEAST:
        return views
    name = reader.latent_.name
    reader.drop_latent().set_params(latent=None)  # so that a new fit of it is the same
    listener.note(
        "latent directions are left out: the views of text find groups together "
        "(--latent 100 uses them all the same)"
    )
    return Views({view: views[view] for view in views.names if view != name})


def kept_groups(
    views: Any, family: Any, k: int, threads: int | None = None, part: Part | None = None
) -> float:
    """Return the effective number of groups of a trial fit, as a share of k.

    It is the exponential of the entropy of the sizes: 1 if all groups are of one size, and 1 / k if
    one group has all rows. It is 0 if no two texts can teach each other, because all but one share
    nothing with the others, or are empty in most rows: one text alone gets directions as well. It
    is also 0 if there are more groups than rows in a trial. `part` keeps the state of the fit.
    """
    rows = sampled_rows([views[name] for name in views.names])
    if k > len(rows):
        return 0.0
    how = {"max_iter": ROUNDS, "tol": TOL, "n_jobs": threads, "checkpoint": part}
    model = MixtureClusterer(k, family=family, random_state=0, **how)
    with warnings.catch_warnings():
        # The trial may collapse or end early: that is what it finds out.
        warnings.simplefilter("ignore")
        labels = model.fit(views[rows]).labels_
    speaking = np.array([name not in model.silent_views_ for name in views.names])
    if ((~views.empty[rows] & speaking).sum(axis=1) > 1).mean() < SHARED:
        return 0.0
    return float(np.exp(entropy(np.bincount(labels)))) / k
