"""Choose the number of components by what fits to different rows and starts have in common."""

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count
from numbers import Integral

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch, check_random_state

from coem.checks import check_number
from coem.input import as_rows, n_rows_of, take_rows
from coem.io.kept import once
from coem.phrases import enumerated
from coem.records import Records
from coem.selection._figures import one_panel
from coem.selection._fits import each_fit, fit_again, kept_of, last_of
from coem.selection._shared import SharedInformation

LARGEST = 64  # the largest number that is tried by default
PATIENCE = 2  # stop after this many numbers in a row that are worse than the best
ENOUGH = 0.95  # the share of the largest information that is enough; docs/choosing-k.md
SURE = 2.0  # standard errors beyond which a difference is not put down to chance


@dataclass(frozen=True, repr=False)
class Choice:
    """What `choose_k` found. Print it to see a table.

    Attributes
    ----------
    best : int
        The smallest number whose shared information is at least 95 % of the largest.
    possible : tuple of int
        The chosen number, and those that other rows or starts could have led to. They are
        consecutive numbers of the table.
    table : list of records
        One per number that was tried: `k`, `shared` (information that two fits share, in bits:
        mean over all pairs of fits), `error` (its standard error, over the rows and the starts of
        the fits), `share` (what part of the largest `shared` it is), and `held_out` (mean log
        likelihood of a held-out row). ``table.to_frame()`` returns a DataFrame.
    """

    best: int
    possible: tuple[int, ...]
    table: Records

    @property
    def reason(self):
        """The answer and how sure it is, in one sentence."""
        if _by_chance(self.table):
            return "fits share no more than chance with any number; the rows may have no groups"
        others = [str(k) for k in self.possible if k != self.best]
        sure = (
            f"other rows or starts could also give {enumerated(others)}"
            if others
            else "no other number is in doubt"
        )
        text = f"the fewest that keep {ENOUGH:.0%} of what two fits can share; {sure}"
        if max(self.table, key=lambda row: row.shared) is self.table[-1]:
            text += f"; more than {self.table[-1].k} were not tried, and may share more"
        return text

    def __repr__(self):
        lines = ["  k  shared   error  held out"]
        for row in self.table:
            mark = " <-" if row.k == self.best else " ?" if row.k in self.possible else ""
            lines.append(
                f"{row.k:3}  {row.shared:6.3f}  {row.error:6.3f}  {row.held_out:8.2f}{mark}"
            )
        return "\n".join([*lines, f"{self.best}: {self.reason}"])

    def plot(self):
        """Plot the shared information against the number of components.

        Returns
        -------
        figure : matplotlib.figure.Figure

        See Also
        --------
        coem.plot.plot_sizes : The same on axes of your own.
        """
        figure, axes = one_panel()
        self.draw(axes)
        return figure

    def draw(self, ax):
        """Draw mean and error of every number on axes, with the chosen number marked."""
        sizes, shared = ([row[name] for row in self.table] for name in ("k", "shared"))
        error = [row.error for row in self.table]
        ax.axvspan(self.possible[0], self.possible[-1], color="C0", alpha=0.12, linewidth=0)
        ax.axhline(ENOUGH * max(shared), linestyle="--", linewidth=1, color="grey")
        ax.errorbar(sizes, shared, yerr=error, marker="o", capsize=3, color="C0")
        ax.axvline(self.best, linestyle=":", color="C1", label=f"chosen: {self.best}")
        ax.set_xscale("log", base=2)
        ax.set_xticks(sizes, [str(k) for k in sizes])
        ax.minorticks_off()
        ax.set(xlabel="components", ylabel="information that two fits share (bits)")
        ax.legend(frameon=False)


def choose_k(model, X, sizes=None, *, n_splits=3, random_state=None, n_jobs=None, on_size=None):
    """Choose the number of components by what fits to different rows and starts have in common.

    The rows are divided into halves several times. For each number, the model is fitted to every
    half from a start of its own, and groups all rows. Two fits share the mutual information of
    their groups, less what chance gives. It grows with the number of components while the fits
    find the same groups, and falls when they divide the rows at random. The answer is the
    smallest number that keeps 95 % of the largest. What was measured, and why it is not the
    likelihood of held-out rows: docs/choosing-k.md.

    Parameters
    ----------
    model : MixtureClusterer, or Pipeline that ends in one
        Any estimator with `n_components`, `predict` and `score_samples`; it is not changed. With a
        `checkpoint`, and a number as `random_state` of this call, what every finished fit found and
        the state of those under way are kept: the same call goes on.
    X : matrix, list, dict or Views
        The rows.
    sizes : sequence of int, optional
        The numbers to try. By default 2, 3, 4, 6, 8, 11, ... up to 64 or an eighth of the rows;
        the search stops when two numbers in a row are worse than the best.
    n_splits : int, default=3
        How often the rows are divided into halves: two fits each. All numbers have the same
        halves. More make the error smaller.
    random_state : int, RandomState or None, default=None
        Seed of the halves and of the fits.
    n_jobs : int, optional
        Number of fits that run at the same time, in threads.
    on_size : callable, optional
        Called with each number and the information that its fits share.

    Returns
    -------
    choice : Choice
        With `best`, `possible`, `table`, `reason` and `plot()`.

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
    X = as_rows(X)
    n_rows = n_rows_of(X)
    if n_rows < 8:
        raise ValueError(f"{n_rows} rows are too few to choose k by halves of them; give k")
    given = sizes is not None
    sizes = _checked(sizes, n_rows // 2) if given else _default(n_rows)
    plans = _halves(n_rows, n_splits, check_random_state(random_state))
    found = {}
    kept = kept_of(model, X, None, random_state, n_splits=n_splits, sizes=list(sizes))
    with kept or nullcontext():
        for size in sizes:
            found[size] = _compare(model, X, size, plans, n_jobs, kept)
            if on_size is not None:
                on_size(size, found[size][0].mean)
            if not given and _got_worse(found):
                break
    if kept:
        kept.clear()
    return _choice(found)


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


def _default(n_rows):
    """Return numbers that grow by the square root of two."""
    most = min(LARGEST, max(3, n_rows // 8))
    steps = (round(2 ** (1 + i / 2)) for i in count())
    sizes = []
    for size in steps:
        if size > most:
            return sizes
        sizes.append(size)


def _check_model(model):
    last = last_of(model)
    needed = hasattr(last, "predict") and hasattr(last, "score_samples")
    if "n_components" not in last.get_params() or not needed:
        raise ValueError(
            "choose_k needs a model with n_components, predict and score_samples, "
            f"got {type(last).__name__}"
        )


def _halves(n_rows, n_splits, rng):
    """Return the rows of every fit, the rows that it does not see, and the seed of its start."""
    plans = []
    for _ in range(n_splits):
        order = rng.permutation(n_rows)
        first, second = np.sort(order[: n_rows // 2]), np.sort(order[n_rows // 2 :])
        for seen, unseen in ((first, second), (second, first)):
            plans.append((seen, unseen, int(rng.randint(np.iinfo(np.int32).max))))
    return plans


def _compare(model, X, size, plans, n_jobs, kept):
    """Return what the fits of one number share, and the mean log likelihood of unseen rows."""
    sized = clone(model)
    last_of(sized).set_params(n_components=size)

    def run(number, seen, unseen, seed):
        def work(part):
            fitted = fit_again(sized, X, seen, None, seed, part)
            scores = fitted.score_samples(take_rows(X, unseen))
            labels = np.asarray(fitted.predict(X))
            return {"score": float(np.mean(scores))}, {"labels": labels}

        record, arrays = once(kept, f"size-{size}-{number}", work)
        return arrays["labels"], record["score"]

    numbered = [(number, *plan) for number, plan in enumerate(plans)]
    labels, scores = zip(*each_fit(run, numbered, n_jobs), strict=True)
    return SharedInformation(labels), float(np.mean(scores))


def _got_worse(found):
    """Return True if the last `PATIENCE` numbers were all worse than the best."""
    means = [shared.mean for shared, _ in found.values()]
    return len(means) - 1 - int(np.argmax(means)) >= PATIENCE


def _choice(found):
    """Return the smallest number that shares enough, and those that might be it."""
    sizes, (shared, held_out) = list(found), zip(*found.values(), strict=True)
    top = max(shared, key=lambda one: one.mean)
    columns = zip(sizes, shared, held_out, strict=True)
    table = Records(_record(size, one, top, score) for size, one, score in columns)
    if _by_chance(table):
        return Choice(int(sizes[0]), tuple(map(int, sizes)), table)
    above, error = np.transpose([one.above(top, ENOUGH) for one in shared])
    # A number is possible unless it surely shares too little, or a smaller one surely enough.
    # The number of the largest share is surely enough, whatever the error.
    first, chosen = np.argmax(above + SURE * error >= 0), np.argmax(above >= 0)
    last = min(shared.index(top), np.argmax(np.append(above - SURE * error, 0) >= 0))
    return Choice(int(sizes[chosen]), tuple(map(int, sizes[first : last + 1])), table)


def _record(size, shared, top, held_out):
    """Return a line of the table."""
    share = shared.mean / top.mean if top.mean > 0 else 1.0
    mean, error = shared.mean, shared.error
    return Bunch(k=int(size), shared=mean, error=error, share=share, held_out=held_out)


def _by_chance(table):
    """Return True if the fits of no number share more than chance explains."""
    return all(row.shared <= SURE * row.error for row in table)
