"""All places where a matrix of a user comes in, and a program that shows them damaged matrices.

``python -m tests.borders 7300`` shows each border 7,300 of them. It says what was wrong, and the
last line that it printed names the case if the process dies.
"""

import sys
import warnings
from functools import cache

import numpy as np
import scipy.sparse as sp

from coem import (
    AspectModel,
    HiddenMarkovModel,
    MixtureClassifier,
    MixtureClusterer,
    MultiViewAgglomerative,
    PooledClassifier,
    SphericalKMeans,
    TrafficModel,
    Views,
    couple,
)
from coem.analysis import entropy_trace
from coem.row_map import RowMap
from coem.selection import LabeledKFold, choose_k, doctor, held_out, stability
from coem.text import LatentDirections, ScaleLength, SelectWords, TextViews, scale_length
from tests.damage import DAMAGE, damaged, plain

WIDTH = 6
FAMILIES = ("multinomial", "bernoulli", "gaussian", "von_mises_fisher", "categorical", "auto")


def labels(X, hidden=True):
    y = np.arange(max(X.shape[0], 4)) % 2
    return np.where(np.arange(len(y)) % 3 == 2, -1, y) if hidden else y


def parts(X):
    """Return the arrays of a result, for a comparison."""
    if isinstance(X, Views):
        return [part for _, matrix in X.items() for part in parts(matrix)]
    return [X.toarray() if sp.issparse(X) else np.asarray(X)]


def quick(model, **options):
    known = model.get_params()
    wish = {"random_state": 0, "max_iter": 3, "n_init": 1, "n_runs": 1} | options
    return model.set_params(**{name: value for name, value in wish.items() if name in known})


def clusterer(family="multinomial"):
    return quick(MixtureClusterer(2, family=family))


@cache
def fitted(name):
    """Return a fitted model that the methods of the borders are asked of."""
    X = plain(np.random.default_rng(0), 12, WIDTH).astype(np.float64)
    y = labels(X, hidden=False)
    models = {
        "clusterer": clusterer,
        "classifier": lambda: quick(MixtureClassifier()),
        "pooled": lambda: quick(PooledClassifier()),
        "k-means": lambda: quick(SphericalKMeans(2)),
        "aspect": lambda: quick(AspectModel(2)),
        "chain": lambda: quick(HiddenMarkovModel(2, family="multinomial")),
        "select": lambda: SelectWords(3),
        "scale": lambda: ScaleLength(9),
        "latent": lambda: LatentDirections(2, min_df=1, random_state=0),
    }
    return models[name]().fit(X, y)


def asked(name, *methods):
    """Return borders: methods of a fitted model."""
    return {f"{name}.{method}": lambda X, m=method: call(fitted(name), m, X) for method in methods}


def call(model, method, X):
    found = getattr(model, method)(X)
    return parts(found[0] if method == "decode" else found)


def views_of(X):
    views = Views({"words": X})
    both = Views({"words": X, "again": X})
    found = [views.empty, both.concat(), both.merge({"all": ["words", "again"]})["all"]]
    found += [views[::2]["words"], views[[0]]["words"], Views.split(X, 2, 0), both[["again"]]]
    return [part for result in found for part in parts(result)]


def several(X):
    """Fit a model on a matrix beside a sound one; an error must name the view."""
    other = np.arange(2.0 * max(X.shape[0], 1)).reshape(-1, 2)
    return parts(clusterer().fit({"words": X, "more": other}).predict({"words": X, "more": other}))


def table_of(X):
    n = max(X.shape[0], 1)
    table = {"text": [f"some words {i % 3}" for i in range(n)]}
    return parts(TextViews({"text": "text", "given": X}, n_jobs=1).fit_transform(table))


def as_start(X):
    """Give concept vectors that are sparse."""
    rows = plain(np.random.default_rng(1), 24, X.shape[1] if X.shape[1] > 0 else 1)
    return parts(quick(SphericalKMeans(X.shape[0], init=X)).fit(rows).labels_)


def coupled(X):
    models = [quick(AspectModel(2), random_state=seed).fit(X) for seed in (0, 1)]
    return parts(couple(*models, "xy", X)[0].x_given_h)


def sequences(X):
    rows = plain(np.random.default_rng(2), 5, X.shape[1] if X.shape[1] > 0 else 1)
    return parts(quick(HiddenMarkovModel(2, family="multinomial")).fit([rows, X]).startprob_)


def streamed(X):
    return parts(clusterer().partial_fit(X).predict_proba(X))


def held_back(X):
    model = quick(AspectModel(2, validation=X))
    return parts(model.fit(plain(np.random.default_rng(3), *X.shape)).transform(X))


def chosen(X):
    found = choose_k(clusterer(), X, [2, 3], n_splits=2, random_state=0)
    return [np.array([row.shared for row in found.table])]


def unseen(X):
    folds = LabeledKFold(2, random_state=0)
    return parts(held_out(quick(MixtureClassifier()), X, labels(X, False), cv=folds).proba)


def examined(X):
    model, few = quick(MixtureClassifier()), {"n_repeats": 1, "n_restarts": 0, "n_splits": 2}
    table = doctor(model, X, labels(X), random_state=0, **few).table
    return [np.array([row.accuracy for row in table])]


BORDERS = {
    "Views": views_of,
    **{
        f"fit {family}": lambda X, f=family: parts(clusterer(f).fit(X).predict_proba(X))
        for family in FAMILIES
    },
    "fit several": several,
    "fit classifier": lambda X: parts(
        quick(MixtureClassifier()).fit(X, labels(X)).predict_proba(X)
    ),
    "fit pooled": lambda X: parts(quick(PooledClassifier()).fit(X, labels(X)).predict_proba(X)),
    "fit k-means": lambda X: parts(quick(SphericalKMeans(2)).fit(X).transform(X)),
    "fit k-means, init": as_start,
    "fit aspect": lambda X: parts(quick(AspectModel(2)).fit(X).transform(X)),
    "fit aspect, validation": held_back,
    "fit traffic": lambda X: parts(quick(TrafficModel(2)).fit(X).alpha_),
    "fit chain": lambda X: parts(
        quick(HiddenMarkovModel(2, family="multinomial")).fit(X).predict_proba(X)
    ),
    "fit sequences": sequences,
    "partial_fit": streamed,
    "agglomerate": lambda X: parts(MultiViewAgglomerative(2).fit(X).distances_),
    "agglomerate, euclidean": lambda X: parts(
        MultiViewAgglomerative(2, metric="euclidean").fit(X).distances_
    ),
    "select": lambda X: parts(SelectWords(2).fit(X, labels(X)).transform(X)),
    "select, document": lambda X: parts(SelectWords(2, by="document").fit(X, labels(X)).scores_),
    "scale": lambda X: parts(scale_length(X, 5)),
    "latent": lambda X: parts(LatentDirections(2, min_df=1, random_state=0).fit_transform(X)),
    "text": table_of,
    "couple": coupled,
    "stability": lambda X: parts(stability(clusterer(), X, n_runs=2, random_state=0).labels),
    "choose_k": chosen,
    "held_out": unseen,
    "doctor": examined,
    "entropy_trace": lambda X: [
        np.array([row.entropy for row in entropy_trace(clusterer(), X, labels(X, False))])
    ],
    "map": lambda X: parts(RowMap().fit_transform(X)),
    "weights": lambda X: parts(clusterer().fit(np.eye(4), sample_weight=X).weights_),
    "labels": lambda X: parts(quick(MixtureClassifier()).fit(np.eye(4), X).classes_),
    "start": lambda X: parts(quick(MixtureClusterer(2, init=X)).fit(np.eye(4)).weights_),
    **asked("clusterer", "predict", "predict_proba", "score", "score_samples", "view_proba"),
    **asked("classifier", "predict", "predict_log_proba", "component_proba"),
    **asked("pooled", "predict", "predict_proba"),
    **asked("k-means", "predict", "transform"),
    **asked("aspect", "transform", "score"),
    **asked("chain", "predict", "predict_proba", "decode", "score"),
    **asked("select", "transform"),
    **asked("scale", "transform"),
    **asked("latent", "transform"),
}
# What takes no sparse matrix at all says so, and need not say more.
DENSE_ONLY = {"map", "weights", "labels", "start"}


def show(X, name):
    """Return what is wrong about a border that is shown a damaged matrix, or None."""
    try:
        BORDERS[name](X)
    except (TypeError, ValueError) as error:
        told = "damaged" in str(error) or "holds" in str(error)
        return None if told or name in DENSE_ONLY else f"raises {type(error).__name__}: {error}"
    except Exception as error:
        return f"raises {type(error).__name__}: {error}"
    return "says nothing"


def main(n, seed=0):
    """Show `n` damaged matrices to all borders; return how many of them went wrong."""
    warnings.simplefilter("ignore")
    wrong, say = 0, sys.stdout.write
    for case in range(n):
        kind = DAMAGE[case % len(DAMAGE)]
        X = damaged(np.random.default_rng([seed, case]), kind)
        for name in BORDERS:
            say(f"\nmatrix {case}, {kind}, to {name}: ")
            sys.stdout.flush()  # it is the last word if the process dies
            fault = show(X, name)
            say(fault or "refused")
            wrong += fault is not None
    say(f"\n{n} matrices to {len(BORDERS)} borders each, {wrong} went wrong\n")
    return wrong


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])) > 0)
