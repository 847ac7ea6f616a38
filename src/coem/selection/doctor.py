"""A doctor for classifiers: find out whether unlabelled rows help or hurt."""

import sys
import warnings
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch, check_random_state

from coem.calibration import best_temperature
from coem.checks import check_number
from coem.estimators import MixtureClassifier, MixtureClusterer
from coem.input import as_rows, n_rows_of, take_rows
from coem.labels import read_knowledge
from coem.records import Records
from coem.selection._advice import advise
from coem.selection._figures import draw_runs, draw_variants, two_panels
from coem.selection.splitters import LabeledKFold, LabeledShuffleSplit

LAMBDAS = (0.3, 0.1, 0.03)
NUMBERS = (2, 5, 10, 20)
PLAIN = {"calibrate": False, "checkpoint": None, "init": "random", "correspondence": "labels"}
FEW_CLASSES = 4  # with more classes, do not try more components for a single class


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What `doctor` found.

    Attributes
    ----------
    recommendation : str
        What to do, and why.
    settings : dict
        The recommendation as parameters of the classifier.
    estimator : estimator
        A clone of the examined estimator, with these settings.
    table : list of records
        One per variant: `variant`, `accuracy` on held-out labelled rows, its `standard_error`,
        `gain` over naive Bayes and `gain_standard_error`, `log_loss` (calibrated), and `settings`.
        The first variant is naive Bayes on the labelled rows only.
    restarts : list of records
        One per run of EM without labels, started from some labelled rows: `variant`, `objective`,
        and `accuracy` on labelled rows that were not used for the start.
    correlation : dict
        Variant -> correlation of `objective` and `accuracy` over the runs, if both vary. Near 1, a
        more probable model is more accurate. Below 0, a model that fits the unlabelled rows better
        is less accurate.
    """

    recommendation: str
    settings: dict
    estimator: object
    table: Records
    restarts: Records
    correlation: dict

    def __repr__(self):
        lines = [f"{'variant':36} accuracy  log loss"]
        for row in self.table:
            mark = " <-" if row.settings == self.settings else ""
            figures = f"{row.accuracy:.3f} +- {row.standard_error:.3f}  {row.log_loss:.3f}"
            lines.append(f"{row.variant:36} {figures}{mark}")
        return "\n".join([*lines, self.recommendation])

    def plot(self):
        """Plot the accuracy of the variants, and accuracy against objective for the runs.

        Returns
        -------
        figure : matplotlib.figure.Figure
        """
        figure, (bars, dots) = two_panels()
        draw_variants(bars, self.table, self.settings)
        draw_runs(dots, self.restarts, self.correlation)
        return figure


def doctor(
    estimator,
    X,
    y,
    *,
    n_splits=5,
    n_repeats=2,
    n_restarts=10,
    random_state=None,
    verbose=0,
    on_fit=None,
):
    """Find out whether unlabelled rows help a classifier, by tests on the labelled rows.

    Labelled rows are held out in repeated folds. Variants of the classifier are fitted to the other
    rows: without the unlabelled rows, with them, with a smaller weight for them, and with more
    components per class (Nigam et al. 2006, Sec. 3.4). The log loss on the held-out rows decides,
    after each variant is calibrated: with about 50 labels, a difference of 5 % in accuracy may be
    chance, and the log loss shows differences sooner. Of all variants within a standard error of
    the best, the simplest is recommended. Then EM without labels is started from a few or many of
    the labelled rows, to see whether a more probable model is more accurate (Fig. 3.2, 3.3).

    Parameters
    ----------
    estimator : MixtureClassifier or Pipeline that ends in one
        The classifier to examine. Put steps that learn from labels, such as `SelectWords`, into
        the pipeline. If you apply them before, they see the labels of the held-out rows.
    X : matrix, list, dict or Views
        Rows, with and without labels.
    y : array of shape (n_rows,)
        Labels; -1, None, NaN or "" for a row without one.
    n_splits, n_repeats : int, default=5, 2
        Number of folds, and how often the folds are drawn.
    n_restarts : int, default=10
        Number of runs without labels for the correlation; 0 skips it.
    random_state : int, RandomState or None, default=None
        Seed of the folds and the starts.
    verbose : int, default=0
        If not 0, write progress to stderr.
    on_fit : callable, optional
        It is called without arguments after each of the fits that `doctor_cost` counts.

    Returns
    -------
    diagnosis : Diagnosis
        With `recommendation`, `settings`, `estimator`, `table`, `restarts`, `correlation` and
        `plot()`.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MixtureClassifier
    >>> from coem.selection import doctor
    >>> rng = np.random.default_rng(0)
    >>> topic = rng.integers(2, size=80)
    >>> X = rng.poisson(np.array([[2, 1, 1, 0.5], [0.5, 1, 1, 2]])[topic])
    >>> y = np.where(np.arange(80) < 20, topic, -1)
    >>> diagnosis = doctor(MixtureClassifier(), X, y, n_repeats=1, n_restarts=2, random_state=0)
    >>> diagnosis.table[0].variant
    'naive Bayes'
    """
    _check_classifier(estimator)
    X = as_rows(X)
    knowledge = _checked(y, n_rows_of(X), n_splits, n_repeats, n_restarts)
    y, folds = knowledge.labels(), (_n_folds(knowledge, n_splits), n_repeats)
    report = on_fit or _nothing
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    table, losses, naive = Records(), [], None
    variants = _variants(knowledge)
    for number, (name, settings) in enumerate(variants, 1):
        _write_progress(verbose, f"{number} of {len(variants)}: {name}")
        model = _with(estimator, settings | PLAIN | {"random_state": seed})
        held = _held_out(model, X, y, knowledge, *folds, seed, report, plain=naive is None)
        right, loss = _scores(*held)
        losses.append(loss)
        naive = right if naive is None else naive
        table.append(_row(name, settings, right, loss, right - naive))
    best = table[_choice(losses)]
    restarted = [table[1], best] if "components_per_class" in best.settings else [table[1]]
    restarts = Records()
    for row in restarted if n_restarts else []:
        _write_progress(verbose, f"restarts: {row.variant}")
        model = _with(estimator, row.settings | PLAIN | {"random_state": seed})
        restarts += _runs(model, row.variant, X, y, n_restarts, seed, report)
    correlation = _correlations(restarts)
    recommended = _with(estimator, best.settings)
    advice = advise(best, table, correlation)
    return Diagnosis(advice, best.settings, recommended, table, restarts, correlation)


def doctor_cost(y, *, n_splits=5, n_repeats=2, n_restarts=10):
    """Return what `doctor` will do for these labels, before it does anything.

    Parameters
    ----------
    y, n_splits, n_repeats, n_restarts
        As in `doctor`.

    Returns
    -------
    cost : Bunch
        `n_fits` is the largest number of fits. `plain_fits` is how many plain fits (all rows, one
        component per class) take about as long: a fit with more components takes longer, and one
        to the labelled rows alone is quick.
    """
    knowledge = _checked(y, len(y), n_splits, n_repeats, n_restarts)
    each = _n_folds(knowledge, n_splits) * n_repeats
    sizes = [_relative(settings, knowledge) for _, settings in _variants(knowledge)]
    several = [size for size in sizes if size > 1]
    # If more components are best, there are as many restarts with them.
    restarts = [1.0, *([float(np.mean(several))] if several else [])]
    return Bunch(
        n_fits=len(sizes) * each + n_restarts * len(restarts),
        plain_fits=float(sum(sizes) * each + n_restarts * sum(restarts)),
    )


def _relative(settings, knowledge):
    """Return how much of the time of a plain fit a variant needs."""
    if settings.get("unlabeled_weight") == 0:
        return float(knowledge.exact.mean())
    spec, k = settings.get("components_per_class", 1), len(knowledge.classes)
    n = k + sum(spec.values()) - len(spec) if isinstance(spec, dict) else spec * k
    return n / k


def _checked(y, n_rows, n_splits, n_repeats, n_restarts):
    """Return what is known of the classes; raise if there is nothing to examine."""
    check_number("n_splits", n_splits, Integral, 2)
    check_number("n_repeats", n_repeats, Integral, 1)
    check_number("n_restarts", n_restarts, Integral, 0)
    if y is None:
        raise ValueError("doctor needs y, to tell labelled rows from unlabelled ones")
    knowledge = read_knowledge(y, n_rows)
    if not knowledge.exact.any():
        raise ValueError("y has no labelled row, so there is nothing to test on; label some rows")
    if knowledge.exact.all():
        raise ValueError("every row has a label; doctor needs unlabelled rows")
    return knowledge


def _n_folds(knowledge, n_splits):
    """Return the number of folds that the labelled rows allow."""
    return min(n_splits, max(2, int(knowledge.exact.sum()) // 2))


def _nothing():
    """Hear of a fit, and do nothing."""


def _check_classifier(estimator):
    """Raise unless `estimator` is a MixtureClassifier, or a Pipeline that ends in one."""
    last = estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(last, MixtureClassifier):
        raise ValueError(
            "doctor examines a MixtureClassifier, or a Pipeline that ends in one, got "
            f"{type(last).__name__}"
        )


def _variants(knowledge):
    """Return names and settings of the variants; naive Bayes and plain EM come first."""
    tries = [("naive Bayes", {"unlabeled_weight": 0.0}), ("EM", {"unlabeled_weight": 1.0})]
    tries += [(f"EM, unlabeled_weight={w}", {"unlabeled_weight": w}) for w in LAMBDAS]
    classes = knowledge.classes.tolist()
    most = len(knowledge.exact) // 10  # each component should have about ten rows
    alone = [{label: n} for n in NUMBERS for label in classes if len(classes) <= FEW_CLASSES]
    for spec in [*NUMBERS, *alone]:
        n = sum(spec.values()) if isinstance(spec, dict) else spec * len(classes)
        if n <= most:
            tries.append((f"EM, components_per_class={spec}", {"components_per_class": spec}))
    return tries


def _with(estimator, settings):
    """Return a clone of an estimator with other settings for its classifier."""
    base = {"components_per_class": 1, "unlabeled_weight": 1.0} | settings
    if not isinstance(estimator, Pipeline):
        return clone(estimator).set_params(**base)
    name = estimator.steps[-1][0]
    return clone(estimator).set_params(**{f"{name}__{key}": v for key, v in base.items()})


def _held_out(model, X, y, knowledge, n_splits, n_repeats, seed, report, *, plain):
    """Return held-out rows, their true classes, and log P(class) by models without these rows."""
    rows, logs = [], []
    for repeat in range(n_repeats):
        folds = LabeledKFold(n_splits, random_state=(seed + repeat) % 2**31)
        for train, test in folds.split(np.zeros((len(y), 1)), y):
            train = train[knowledge.certainty[train] > 0] if plain else train
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fitted = clone(model).fit(take_rows(X, train), y[train])
            rows.append(test)
            logs.append(fitted.predict_log_proba(take_rows(X, test)))
            report()
    rows = np.concatenate(rows)
    return rows, knowledge.codes[rows], np.concatenate(logs)


def _scores(rows, truth, log_proba):
    """Return accuracy and calibrated log loss per row, averaged over the repeats."""
    inverse_temperature = best_temperature(log_proba, truth)
    logs = log_softmax(inverse_temperature * log_proba, axis=1)
    _, place = np.unique(rows, return_inverse=True)
    times = np.bincount(place)
    right = np.bincount(place, weights=log_proba.argmax(axis=1) == truth) / times
    return right, np.bincount(place, weights=-logs[np.arange(len(rows)), truth]) / times


def _choice(losses):
    """Return the number of the first variant that is not clearly worse than the best one.

    Simpler variants come first. A variant is clearly worse if its mean loss over the rows is larger
    by more than a standard error of the difference.
    """
    best = losses[int(np.argmin([loss.mean() for loss in losses]))]
    for place, loss in enumerate(losses):
        worse = loss - best
        if worse.mean() <= worse.std() / np.sqrt(len(worse)):
            return place
    raise AssertionError("the best variant is not worse than itself")


def _row(name, settings, right, loss, gain):
    n = np.sqrt(len(right))
    return Bunch(
        variant=name,
        accuracy=float(right.mean()),
        standard_error=float(right.std() / n),
        gain=float(gain.mean()),
        gain_standard_error=float(gain.std() / n),
        log_loss=float(loss.mean()),
        settings=settings,
    )


def _runs(model, name, X, y, n_restarts, seed, report):
    """Start EM without labels from some of the labelled rows, and score it on others.

    Starts from few and from many rows lead to models of different quality. So they show whether a
    better objective comes with a better accuracy.
    """
    piped = isinstance(model, Pipeline)
    classifier = model[-1] if piped else model
    shared = set(MixtureClusterer().get_params(deep=False)) - {"n_components", "init"}
    params = {k: v for k, v in classifier.get_params(deep=False).items() if k in shared}
    records, rows = Records(), X
    for train, test in _starts(y, n_restarts, seed):
        known = np.full(len(y), None, dtype=object)
        known[train] = y[train]
        X = clone(model[:-1]).fit_transform(rows, known) if piped else rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            first = clone(classifier).set_params(max_iter=1, tol=0).fit(X, known)
            free = MixtureClusterer(len(first.weights_), init=first, **params).fit(X)
        proba = free.predict_proba(take_rows(X, test))
        members = np.eye(len(first.classes_))[first.component_classes_]
        guess = first.classes_[(proba @ members).argmax(axis=1)]
        accuracy = float(np.mean([a == b for a, b in zip(guess, y[test], strict=True)]))
        records.append(Bunch(variant=name, objective=free.objective_, accuracy=accuracy))
        report()
    return records


def _starts(y, n_restarts, seed):
    """Yield labelled rows to start from (from one per class to half of them), and rows to score."""
    knowledge = read_knowledge(y, None)
    exact = int(knowledge.exact.sum())
    n_classes = len(np.unique(knowledge.codes[knowledge.exact]))
    half = max(1, min(exact // 2, exact - n_classes))
    sizes = np.geomspace(n_classes, max(exact - half, n_classes), n_restarts).round().astype(int)
    for run, size in enumerate(sizes.tolist()):
        split = LabeledShuffleSplit(
            1, test_size=half, train_size=size, random_state=(seed + run) % 2**31
        )
        for train, test in split.split(np.zeros((len(y), 1)), y):
            yield train[knowledge.exact[train]], test


def _correlations(restarts):
    """Return variant -> correlation of objective and accuracy, for variants where both vary."""
    found = {}
    for name in dict.fromkeys(row.variant for row in restarts):
        pairs = np.array([(r.objective, r.accuracy) for r in restarts if r.variant == name])
        if len(pairs) > 2 and (np.ptp(pairs, axis=0) > 1e-9 * np.abs(pairs).max(axis=0)).all():
            found[name] = float(np.corrcoef(pairs.T)[0, 1])
    return found


def _write_progress(verbose, text):
    if verbose:
        sys.stderr.write(f"[doctor] {text}\n")
