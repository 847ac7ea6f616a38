"""Which components of a model recur when only the seed changes."""

import sys
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from numbers import Integral

import numpy as np
from sklearn.utils import Bunch, check_random_state

from coem.checks import check_choice, check_number, check_weight
from coem.input import as_rows, n_rows_of
from coem.io.kept import part_of
from coem.latent.shared_rows import fate, rand_index, shared_rows, translated
from coem.records import Records
from coem.selection._figures import two_panels
from coem.selection._fits import (
    Fit,
    calibrate,
    check_model,
    check_names,
    each_fit,
    features_of,
    fits_of,
    is_fitted,
    keep_best,
    keep_central,
    kept_of,
    some_rows,
)
from coem.selection.trust import MEANING, group_trust, row_trust

FATES = ("recurs", "split", "merged", "scattered")


@dataclass(frozen=True, repr=False)
class Stability:
    """What `stability` found. `print` shows a table.

    Attributes
    ----------
    estimator : estimator
        The fitted model whose components were compared with those of the other runs.
    table : list of records
        One per component: `component`, `share` of the rows; its `trust`, the mean of its rows; in
        how many of the other runs it `recurs`, is `split` (several components of the other run
        together are the same), is `merged` (part of a larger one) or `scattered` (none of these);
        `merged_with`, the components of this model that shared the larger one, with the number of
        runs, the most frequent first; and the most telling `features`, if the model can rank them.
        A component without rows has a share and a trust of 0, and all of its counts are 0.
        ``table.to_frame()`` gives a DataFrame.
    labels : ndarray of shape (n_rows,)
        The component of each row.
    row_trust : ndarray of shape (n_rows,)
        How far the other runs keep each row together with the same rows, from 0 (as by chance) to
        1 (always the same rows, and no others); see `coem.selection.trust.row_trust`.
    agreement : ndarray of shape (n_runs, n_runs)
        Adjusted Rand index of each two runs; the first one is `estimator`.
    transitions : list of ndarray
        For each other run p(its component | component), of shape (k, k of the run).
    matches : ndarray of shape (n_others, k)
        For each other run the component that is the same, or -1.
    weight : ndarray of shape (n_rows,), optional
        The `sample_weight` that was given.
    others : list of ndarrays of shape (n_rows,)
        The component of each row in each other run.
    """

    estimator: object
    table: Records
    labels: np.ndarray
    row_trust: np.ndarray
    agreement: np.ndarray
    transitions: list
    matches: np.ndarray
    weight: np.ndarray | None = field(default=None)
    others: list = field(default_factory=list)

    @property
    def n_others(self):
        """Number of other runs."""
        return len(self.matches)

    @property
    def mean_agreement(self):
        """Adjusted Rand index of two runs, the mean over all pairs."""
        return float(self.agreement[np.triu_indices(len(self.agreement), 1)].mean())

    @property
    def summary(self):
        """The answer in two sentences."""
        there = [row for row in self.table if row.share > 0]
        always = sum(row.recurs == self.n_others for row in there)
        never = sum(row.recurs == 0 for row in there)
        empty = len(self.table) - len(there)
        without = f", {empty} have no rows" if empty else ""
        rows = np.average(self.row_trust, weights=self.weight)
        return (
            f"{always} of {len(self.table)} components recur in all {self.n_others} other runs, "
            f"{never} in none{without}. The mean trust of a row is {rows:.2f}; two runs agree with "
            f"an adjusted Rand index of {self.mean_agreement:.2f}."
        )

    @property
    def support(self):
        """For each row, how probable its component is for the other runs, of shape (n_rows,).

        A row of group g of another run has the component c with the probability p(c|g), the share
        of the rows of g. The support is the mean over the other runs.
        """
        said = translated(self.labels, self.others, len(self.table), self.weight)
        return said[np.arange(len(said)), self.labels]

    def calibrated(self, X):
        """Return the model with probabilities that the other runs support.

        Parameters
        ----------
        X : matrix, list, dict or Views
            The rows that were compared.

        Returns
        -------
        estimator : MixtureClusterer or Pipeline
            A copy of `estimator` after `MixtureClusterer.calibrate`. It assigns all rows as
            before. Its `calibration_` says what was found.
        """
        return calibrate(self.estimator, X, self.others, self.weight)

    def against(self, model, X):
        """Return the stability of another fitted model beside the same other runs.

        Parameters
        ----------
        model : estimator
            A fitted model, such as `estimator` after a further fit to more rows.
        X : matrix, list, dict or Views
            The rows that were compared.
        """
        sizes = [table.shape[1] for table in self.transitions]
        others = [Fit(None, *pair) for pair in zip(self.others, sizes, strict=True)]
        return _compare(Fit.of(model, as_rows(X)), others, self.weight, None)

    def to_frame(self):
        """Return the table as a pandas DataFrame."""
        return self.table.to_frame()

    def __repr__(self):
        lines = ["component  share  trust  recurs  split  merged  scattered  features"]
        for row in sorted(self.table, key=lambda r: (r.share == 0, -r.trust, r.component)):
            times = f"{row.recurs}/{self.n_others}" if row.share > 0 else "empty"
            words = ", ".join(map(str, row.features))
            if row.merged_with:
                words += f" [with {', '.join(map(str, list(row.merged_with)[:3]))}]"
            lines.append(
                f"{row.component:9}  {row.share:5.3f}  {row.trust:5.2f}  {times:>6}  "
                f"{row.split:5}  {row.merged:6}  {row.scattered:9}  {words}".rstrip()
            )
        return "\n".join([*lines, MEANING, self.summary])

    def plot(self):
        """Draw in how many runs each component recurs or not, and how much the runs agree.

        Returns
        -------
        figure : matplotlib.figure.Figure
        """
        figure, (bars, grid) = two_panels()
        names = [str(row.component) for row in self.table]
        before = np.zeros(len(names))
        for kind in FATES:
            times = np.array([row[kind] for row in self.table], dtype=float)
            bars.bar(names, times, bottom=before, label=kind)
            before += times
        bars.set_xlabel("component")
        bars.set_ylabel("other runs")
        bars.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 1.01), frameon=False)
        figure.colorbar(grid.imshow(self.agreement, vmin=0, vmax=1), ax=grid)
        grid.set_title("adjusted Rand index of two runs", loc="left", fontsize="small")
        return figure


def stability(
    model,
    X,
    *,
    n_runs=10,
    keep="best",
    subsample=None,
    sample_weight=None,
    feature_names=None,
    random_state=None,
    n_jobs=None,
    verbose=0,
    on_run=None,
):
    """Find the components that recur when a model is fitted again with other seeds.

    A component recurs in another run if a component there has most of its rows and few others:
    if both p(h2|h1) and p(h1|h2), shares of rows, are more than half way between their values by
    chance and 1. A component that does not recur may be split, merged with others, or scattered.

    A component that recurs need not be a group: every run cuts a long cloud without groups across
    its length. With `subsample` each run sees other rows. A component that recurs then does not
    depend on a particular sample of rows either.

    Parameters
    ----------
    model : MixtureClusterer, AspectModel, SphericalKMeans, or Pipeline that ends in one
        Any estimator with a `random_state` that assigns all rows: by `predict`, else by the
        largest value of `transform`, else by `labels_`. If the model is fitted, its components are
        compared with those of `n_runs` other runs. If not, it is fitted `n_runs` times, and the
        components of the best run are compared with those of the others. The best run has the
        largest `objective_` or `lower_bound_`, or the least `inertia_`, `reconstruction_err_` or
        `bound_`; if the model has none of these, it is the first. Each run is a complete fit with
        all restarts of the model. With a `checkpoint`, and a number as `random_state` of this
        call, finished runs and the state of those under way are kept: the same call goes on.
    X : matrix, list, dict or Views
        The rows.
    n_runs : int, default=10
        Number of fits.
    keep : {"best", "central"}, default="best"
        Which run to examine if the model is not fitted: the best one, or the one with which the
        others agree most (by the adjusted Rand index), whatever its objective. "central" holds all
        models in memory until the end.
    subsample : float, optional
        The share of the rows that each run is fitted on, drawn without replacement; each run then
        assigns all rows. By default each run is fitted on all rows.
    sample_weight : array of shape (n_rows,), optional
        A weight of 2 counts as the row given twice.
    feature_names : sequence of str, optional
        Names of the columns, for the table.
    random_state : int, RandomState or None, default=None
        Seed from which the seeds of the runs are drawn.
    n_jobs : int, optional
        Number of fits at a time, in threads: None is 1 (or what a joblib context says), -1 all
        processors. With "best", only as many models are in memory at once, and the best so far.
    verbose : int, default=0
        Write progress to stderr.
    on_run : callable, optional
        Called with the fitted model after each run, in the order of the runs.

    Returns
    -------
    stability : Stability
        With `table`, `row_trust`, `agreement`, `summary`, `to_frame()` and `plot()`.

    Examples
    --------
    Two groups that every run finds:

    >>> import numpy as np
    >>> from coem import MixtureClusterer
    >>> from coem.selection import stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(np.repeat([[9, 1, 1, 9], [1, 9, 9, 1]], 30, axis=0))
    >>> found = stability(MixtureClusterer(2), X, n_runs=5, random_state=0)
    >>> [(row.recurs, row.trust) for row in found.table]
    [(4, 1.0), (4, 1.0)]
    """
    for name, value, least in (("n_runs", n_runs, 2), ("verbose", verbose, 0)):
        check_number(name, value, Integral, least)
    check_choice("keep", keep, ("best", "central"))
    check_model(model, subsample)
    X = as_rows(X)
    n_rows = n_rows_of(X)
    check_names(feature_names, model, X)
    weight = check_weight(sample_weight, np.empty((n_rows, 1)))
    rng = check_random_state(random_state)
    runs = [Fit.of(model, X)] if is_fitted(model) else []
    given = len(runs)
    drawn = [
        (some_rows(rng, n_rows, subsample), int(rng.randint(np.iinfo(np.int32).max)))
        for _ in range(n_runs)
    ]
    kept = kept_of(model, X, weight, random_state, n_runs=n_runs, subsample=subsample)
    with kept or nullcontext():
        plans = [(*plan, part_of(kept, f"run-{i}")) for i, plan in enumerate(drawn)]
        for number, found in enumerate(_each_run(model, X, weight, plans, n_jobs)):
            if on_run is not None:
                on_run(found.model)
            if verbose:
                sys.stderr.write(f"[stability] run {number + 1} of {n_runs}\n")
            runs.append(found)
            if given:
                found.model = None
            elif keep == "best":
                keep_best(runs)
    if kept:
        kept.clear()
    if keep == "central" and not given:
        keep_central(runs, _agreement(runs, weight))
    reference = runs.pop(next(i for i, run in enumerate(runs) if run.model is not None))
    return _compare(reference, runs, weight, feature_names)


def _each_run(model, X, weight, plans, n_jobs):
    """Yield the fits of the plans, in their order."""
    fit = fits_of(model, X, weight, plans, n_jobs)

    def run(rows, seed, part):
        return Fit.of(fit(rows, seed, part), X, rows_of_fit=rows is None)

    return each_fit(run, plans, n_jobs)


def _compare(reference, others, weight, names):
    """Return how the components of one run recur in the others."""
    labels, k = reference.labels, reference.size
    masses = [shared_rows(labels, o.labels, (k, o.size), weight) for o in others]
    fates = [fate(mass) for mass in masses]
    rows = row_trust(labels, [o.labels for o in others], weight)
    trust = group_trust(labels, rows, k, weight)
    counts = np.bincount(labels, weights=weight, minlength=k)
    features = features_of(reference.model, names) or [[]] * k
    table = Records(
        Bunch(
            component=h,
            share=float(counts[h] / counts.sum()),
            trust=float(trust[h]),
            recurs=sum(int(f.match[h] >= 0) for f in fates),
            split=sum(int(f.split[h]) for f in fates),
            merged=sum(int(f.whole[h] >= 0) for f in fates),
            scattered=sum(int(f.scattered[h]) for f in fates) if counts[h] > 0 else 0,
            merged_with=_partners(fates, h),
            features=features[h],
        )
        for h in range(k)
    )
    agreement = _agreement([reference, *others], weight)
    matches = np.array([f.match for f in fates])
    transitions = [f.transition for f in fates]
    groups = [o.labels for o in others]
    return Stability(
        reference.model, table, labels, rows, agreement, transitions, matches, weight, groups
    )


def _partners(fates, h):
    """Return the components that were merged with component `h`, and in how many runs."""
    found = Counter()
    for f in fates:
        if f.whole[h] >= 0:
            found.update(np.flatnonzero(f.whole == f.whole[h]).tolist())
    found.pop(h, None)
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def _agreement(runs, weight):
    """Return the adjusted Rand index of the partitions of each two runs."""
    out = np.eye(len(runs))
    for i, a in enumerate(runs):
        for j, b in enumerate(runs[:i]):
            mass = shared_rows(a.labels, b.labels, (a.size, b.size), weight)
            out[i, j] = out[j, i] = rand_index(mass)
    return out
