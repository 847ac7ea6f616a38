"""What happens during a fit, seen by somebody who knows the classes."""

from collections import defaultdict
from copy import copy
from functools import partial

import numpy as np
from sklearn.utils import Bunch

from coem.estimators import MixtureClusterer
from coem.metrics import cluster_entropy
from coem.records import Records
from coem.views import as_views

__all__ = ["entropy_trace"]


def entropy_trace(estimator, X, y):
    """Fit a clusterer and return the entropy of its clusters after every round.

    Beside the agreement of the views, which every fit records, it shows if views that come to
    agree come to agree on the truth (Bickel & Scheffer 2004, Fig. 5).

    Parameters
    ----------
    estimator : MixtureClusterer
        What is to be fitted; it is not changed. Restarts are all run, and the best is returned. A
        `checkpoint` is not used, because the rounds before it would be missing.
    X : matrix, list, dict or Views
        Rows seen through one or several views.
    y : array of shape (n_rows,)
        The true class of each row; numbers or strings. The fit does not see it.

    Returns
    -------
    trace : list of records
        Those of `history_`, one a round, with one more field: `entropy`, the cluster entropy in
        bits of the labels that the parameters of that round give, by the rule that `assign` names.
        ``trace.to_frame()`` gives a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MixtureClusterer
    >>> from coem.analysis import entropy_trace
    >>> words = np.array([[3, 1, 0], [4, 2, 0], [0, 2, 3], [0, 1, 5]])
    >>> links = np.array([[1, 0], [2, 0], [0, 3], [0, 1]])
    >>> model = MixtureClusterer(2, init="k-means++", random_state=0)
    >>> trace = entropy_trace(model, {"words": words, "links": links}, ["a", "a", "b", "b"])
    >>> trace[-1].entropy, trace[-1].agreement_rate
    (0.0, 1.0)
    """
    if not isinstance(estimator, MixtureClusterer):
        raise TypeError(
            f"estimator must be a MixtureClusterer, got {type(estimator).__name__}; of a pipeline "
            "give the last step, and the rows as the other steps transform them"
        )
    views = as_views(X)
    cluster_entropy(y, np.zeros(len(views)))  # refuses labels that do not fit before any work
    onlooker = _Onlooker(**estimator.get_params(deep=False) | {"checkpoint": None})
    onlooker.rows, onlooker.seen = views, defaultdict(list)
    onlooker.fit(views)
    labels = onlooker.seen[onlooker.best_run_]
    pairs = zip(onlooker.history_, labels, strict=True)
    return Records(Bunch(**record, entropy=cluster_entropy(y, now)) for record, now in pairs)


class _Onlooker(MixtureClusterer):
    """A clusterer that labels `rows` after every round, and lists in `seen` what each run said."""

    def _look_on(self, mixture):
        def note(index, theta, past, over):
            # A copy, because runs may share the estimator; the engine is taken by the run itself.
            now = copy(self).set_params(engine=None, n_jobs=1)
            now._set_theta(mixture, theta)
            now.beta_ = past.history[-1].beta
            self.seen[index].append(now.predict(self.rows))

        return lambda index: partial(note, index)
