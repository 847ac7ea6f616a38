"""What the regression of a pool says of labelled rows that were held out."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from coem.estimators._held_out import Split
from coem.estimators._linear import LinearModel
from coem.estimators._pool import Ballot
from coem.estimators._pool_checks import check_exact
from coem.io.kept import Content, Kept, Part, once
from coem.typing import Array


def fold_answers(
    fit: Callable[[Array], LinearModel],
    features: Mapping[str, Any],
    ballot: Ballot,
    splits: Sequence[Split],
    kept: Kept | None,
) -> list[Array]:
    """Return log P(class | row) of the rows of each fold, by a regression on the other rows.

    `fit` takes the rows to train on. `kept` keeps the answers.
    """
    answers = []
    for fold, (train, test) in enumerate(splits):
        rows = np.setdiff1d(np.intersect1d(ballot.labelled, train), test)
        check_exact(ballot.knowledge, rows, f"cv, fold {fold}: ")

        def answer(part: Part | None, rows: Array = rows, test: Array = test) -> Content:
            some = {name: X[test] for name, X in features.items()}
            return {}, {"log_proba": fit(rows).log_proba(some)}

        answers.append(once(kept, f"linear-{fold}", answer)[1]["log_proba"])
    return answers
