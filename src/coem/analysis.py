"""Compare a fit with known classes after every round."""

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

    Every fit records how far the views agree. Together with the entropy you see whether the views
    agree on the true classes (Bickel & Scheffer 2004, Fig. 5).

    Parameters
    ----------
    estimator : MixtureClusterer
        The clusterer to fit; it is not changed. If it has several restarts, the trace is that of
        the best one. Its `checkpoint` is not used, because the rounds before it would be missing.
    X : matrix, list, dict or Views
        Rows in one or several views.
    y : array of shape (n_rows,)
        The true class of each row; numbers or strings. The fit does not see it.

    Returns
    -------
    trace : list of records
        The records of `history_`, one per round, with one more field: `entropy`, the cluster
        entropy in bits. The clusters are those that the model of that round would predict.
        ``trace.to_frame()`` returns a DataFrame.

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
            f"estimator must be a MixtureClusterer, got {type(estimator).__name__}; of a pipeline, "
            "pass the last step and the rows that the other steps return"
        )
    views = as_views(X)
    cluster_entropy(y, np.zeros(len(views)))  # raise now if the labels do not fit
    tracer = _Tracer(**estimator.get_params(deep=False) | {"checkpoint": None})
    tracer.rows = views
    tracer.fit(views)
    labels = tracer.labels_of_run[tracer.best_run_]
    rounds = zip(tracer.history_, labels, strict=True)
    return Records(Bunch(**record, entropy=cluster_entropy(y, found)) for record, found in rounds)


class _Tracer(MixtureClusterer):
    """A clusterer that predicts `rows` after every round, and keeps the labels of each run."""

    def _fit(self, *args, **kwargs):
        self.labels_of_run = defaultdict(list)  # a fit may start again
        return super()._fit(*args, **kwargs)

    def _look_on(self, mixture):
        def predict(run, theta, past, over):
            # Copy, because runs may share the estimator. The run itself uses the engine.
            model = copy(self).set_params(engine=None, n_jobs=1)
            model._set_theta(mixture, theta)
            model.beta_ = past.history[-1].beta
            self.labels_of_run[run].append(model.predict(self.rows))

        return lambda run: partial(predict, run)
