"""Choose the number of components by the likelihood of held-out rows."""

from dataclasses import dataclass
from itertools import count
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import Bunch, _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from coem.checks import check_number
from coem.records import Records
from coem.selection._figures import one_panel
from coem.selection._fits import each_fit, fit_again, last_of
from coem.views import as_views, is_several

LARGEST = 64  # the largest number that is tried by default
EQUAL = 1e-6  # two likelihoods with a smaller relative difference count as equal
PATIENCE = 3  # stop after this many numbers in a row that are worse than the best


@dataclass(frozen=True, repr=False)
class Choice:
    """What `choose_k` found. Print it to see a table.

    Attributes
    ----------
    best : int
        The number with the largest held-out log likelihood; the smallest one if several are equal.
    table : list of records
        One per number that was tried: `k`, `held_out` (mean log likelihood of a held-out row), and
        `behind` (how far it is behind the best, in standard errors of the difference; 0 for the
        best and its equals, infinite if the difference is the same for every row).
        ``table.to_frame()`` returns a DataFrame.
    """

    best: int
    table: Records

    @property
    def reason(self):
        """The answer in one sentence."""
        equal = [row.k for row in self.table if row.behind == 0 and row.k != self.best]
        if len(equal) == len(self.table) - 1:
            return f"held-out rows are equally likely with any number; {self.best} is the smallest"
        near = [row.k for row in self.table if 0 < row.behind < 2]
        others = _listed(equal, "equally likely") + _listed(near, "hardly worse")
        if self.best == self.table[-1].k:
            others += "; it is the largest that was tried, and more may be better"
        return f"held-out rows are most likely with {self.best}{others}"

    def __repr__(self):
        lines = ["  k   held out  behind"]
        for row in self.table:
            mark = " <-" if row.k == self.best else ""
            lines.append(f"{row.k:3}  {row.held_out:9.2f}  {row.behind:6.1f}{mark}")
        return "\n".join([*lines, f"{self.best}: {self.reason}"])

    def plot(self):
        """Plot the held-out log likelihood against the number of components.

        Returns
        -------
        figure : matplotlib.figure.Figure
        """
        figure, axes = one_panel()
        axes.plot([row.k for row in self.table], [row.held_out for row in self.table], marker="o")
        axes.axvline(self.best, linestyle=":", color="grey")
        axes.set_xscale("log", base=2)
        axes.set_xlabel("components")
        axes.set_ylabel("log likelihood of a held-out row")
        return figure


def choose_k(model, X, sizes=None, *, n_splits=2, random_state=None, n_jobs=None, on_size=None):
    """Choose the number of components by the likelihood of held-out rows.

    The rows are divided into folds. For each number, the model is fitted without one fold and
    scores that fold. On Cora and on five of six document sets this came closer to the number of
    classes than BIC and ICL, which were far below it; on the sixth, BIC and ICL were closer
    (docs/choosing-k.md).

    Parameters
    ----------
    model : MixtureClusterer, or Pipeline that ends in one
        Any estimator with `n_components` and `score_samples`; it is not changed.
    X : matrix, list, dict or Views
        The rows.
    sizes : sequence of int, optional
        The numbers to try. By default 2, 3, 4, 6, 8, 11, ... up to 64 or a quarter of the rows of
        a fit; the search stops when three numbers in a row are worse than the best.
    n_splits : int, default=2
        Number of folds. With 2, each fit uses half of the rows, which is the fastest.
    random_state : int, RandomState or None, default=None
        Seed of the folds and of the fits.
    n_jobs : int, optional
        Number of fits that run at the same time, in threads.
    on_size : callable, optional
        Called with each number and its held-out log likelihood.

    Returns
    -------
    choice : Choice
        With `best`, `table`, `reason` and `plot()`.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MixtureClusterer
    >>> from coem.selection import choose_k
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.repeat(1 + 20 * np.eye(3, 9), 40, axis=0))
    >>> choose_k(MixtureClusterer(), X, random_state=0).best
    3
    """
    check_number("n_splits", n_splits, Integral, 2)
    _check_model(model)
    X = as_views(X) if is_several(X) else X
    n_rows = _num_samples(X)
    if n_rows < 4 * n_splits:
        raise ValueError(f"{n_rows} rows are too few to hold out some of them; choose k yourself")
    given = sizes is not None
    sizes = _checked(sizes, n_rows - n_rows // n_splits) if given else _default(n_rows, n_splits)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    folds = list(KFold(n_splits, shuffle=True, random_state=seed).split(np.empty(n_rows)))
    scores = {}
    for size in sizes:
        scores[size] = _held_out(model, X, size, folds, seed, n_jobs)
        if on_size is not None:
            on_size(size, float(scores[size].mean()))
        if not given and _got_worse(scores):
            break
    return _choice(scores)


def _checked(sizes, n_fitted):
    """Return the numbers to try in order; raise unless they can be fitted."""
    sizes = sorted(set(sizes))
    if len(sizes) < 2:
        raise ValueError("sizes must have at least two different numbers to choose from")
    for size in sizes:
        check_number("sizes", size, Integral, 1)
    if sizes[-1] > n_fitted:
        raise ValueError(f"sizes: {sizes[-1]} components cannot be fitted to {n_fitted} rows")
    return sizes


def _default(n_rows, n_splits):
    """Return numbers that grow by the square root of two."""
    most = min(LARGEST, max(3, (n_rows - n_rows // n_splits) // 4))
    steps = (round(2 ** (1 + i / 2)) for i in count())
    sizes = []
    for size in steps:
        if size > most:
            return sizes
        sizes.append(size)


def _check_model(model):
    last = last_of(model)
    if "n_components" not in last.get_params() or not hasattr(last, "score_samples"):
        name = type(last).__name__
        raise ValueError(f"choose_k needs a model with n_components and score_samples, got {name}")


def _held_out(model, X, size, folds, seed, n_jobs):
    """Return the log likelihood of every row under a model that has not seen it."""

    def run(train, test):
        sized = clone(model)
        last_of(sized).set_params(n_components=size)
        fitted = fit_again(sized, X, train, None, seed)
        return np.asarray(fitted.score_samples(_safe_indexing(X, test)))

    found = list(each_fit(run, folds, n_jobs))
    out = np.empty(sum(map(len, found)))
    for (_, test), values in zip(folds, found, strict=True):
        out[test] = values
    return out


def _got_worse(scores):
    """Return True if the last `PATIENCE` numbers were all worse than the best."""
    means = [values.mean() for values in scores.values()]
    return len(means) - 1 - int(np.argmax(means)) >= PATIENCE


def _choice(scores):
    """Return the best number, and how far behind the others are."""
    means = {size: float(values.mean()) for size, values in scores.items()}
    top = max(means.values())
    equal = [size for size, mean in means.items() if top - mean <= EQUAL * abs(top)]
    best = min(equal)
    table = Records()
    for size, values in scores.items():
        less = scores[best] - values
        error = less.std() / np.sqrt(len(less))
        behind = 0.0 if size in equal else float(less.mean() / error) if error > 0 else np.inf
        table.append(Bunch(k=int(size), held_out=means[size], behind=behind))
    return Choice(int(best), table)


def _listed(sizes, what):
    """Return "; 2, 3 are ..." to be added to a sentence; empty without numbers."""
    names = ", ".join(map(str, sizes))
    return f"; {names} {'are' if len(sizes) > 1 else 'is'} {what}" if sizes else ""
