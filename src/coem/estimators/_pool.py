"""How a pool finds the weights of its models."""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from coem.calibration import pool, pool_settings
from coem.estimators._held_out import Split, held_out, like, splits_of
from coem.estimators._labelled import RULE
from coem.estimators._linear import LinearModel, encoded, fit_linear, scale_of
from coem.estimators._pool_checks import check_exact
from coem.estimators._unlabeled_weight import ENOUGH, WEIGHTS, best_weight
from coem.estimators.classifier import MixtureClassifier
from coem.io.kept import Content, Kept, Part, once, part_of
from coem.labels import Knowledge, deal
from coem.metrics import expected_calibration_error
from coem.records import Records
from coem.typing import Array
from coem.views import Views, row_keys

PRIOR = 0.1, 1.0, 10.0  # weights of mixture and regression, limit, before any label is held out
NEW = "mixture", "linear", "limit"  # the settings of new rows, in the order of PRIOR
OWN = "own_mixture", "own_linear", "own_limit"  # those of rows of the fit
TRUST_IN_LABELS = 0.3  # what the class shares of the labels count, per unlabelled row


@dataclass(frozen=True)
class Ballot:
    """The rows of a fit, what is known of them, and how labelled rows are held out."""

    views: Views
    knowledge: Knowledge
    weight: Array | None
    cv: Any

    @property
    def labelled(self) -> Array:
        """The rows with exactly one label, and a weight."""
        known = self.knowledge.exact
        return np.flatnonzero(known if self.weight is None else known & (self.weight > 0))

    @property
    def some_unlabelled(self) -> bool:
        """Whether any row that counts has less than a label."""
        loose = ~self.knowledge.exact
        return bool(loose.any() if self.weight is None else (loose & (self.weight > 0)).any())

    @cached_property
    def contents(self) -> tuple[Array, list[Array]]:
        """The number of the content of each labelled row, and the contents of each class.

        Copies of a row have one content. Contents are numbered by their keys, and classes are in
        the order of their first content, so that neither the order of rows nor names matter.
        """
        rows = self.labelled
        _, first, content = np.unique(
            row_keys(self.views)[rows], return_index=True, return_inverse=True
        )
        codes = self.knowledge.codes[rows[first]]
        by_class = [np.flatnonzero(codes == c) for c in np.unique(codes)]
        return content, sorted(by_class, key=lambda own: int(own[0]))

    @property
    def n_testable(self) -> int:
        """The number of contents that can be held out: those of classes with several."""
        return sum(len(own) for own in self.contents[1] if len(own) > 1)

    def splits(self, random_state: Any) -> list[Split]:
        """Return the folds; none if a class has only one label, and so no row can be held out."""
        everyone = np.arange(len(self.knowledge.exact))
        if self.cv is None:
            return []
        if not isinstance(self.cv, Integral):
            return splits_of(self.cv, len(everyone), self.knowledge, self.weight, random_state)
        if self.n_testable < 2:
            return []
        content, by_class = self.contents
        dealt = deal(by_class, min(int(self.cv), self.n_testable))
        tests = [self.labelled[np.isin(content, fold)] for fold in dealt]
        return [(np.setdiff1d(everyone, test), test) for test in tests]

    def ask(self, model: MixtureClassifier, splits: list[Split], **how: Any) -> Array:
        """Return what models like this one say of the rows of each fold: log P(class | row).

        `how` are further parameters of `held_out`.
        """
        if not splits:
            return np.empty((0, len(self.knowledge.classes)))
        return held_out(model, self.views, self.weight, self.knowledge, splits, **how)[1]


@dataclass(frozen=True)
class Votes:
    """What the mixture says of rows that were held out."""

    mixture: MixtureClassifier  # fitted to all rows
    table: Records  # a record per weight of unlabelled rows that was tried
    splits: list[Split]  # the rows to train on and to test on, by fold
    log_proba: Array  # (n_held_out, n_classes), fold after fold; the rows stay in the fit
    log_proba_new: Array  # the same by fits without the rows


def vote(
    mixture: MixtureClassifier,
    ballot: Ballot,
    X: Any,
    labels: Array,
    sample_weight: Array | None,
    kept: Kept | None = None,
) -> Votes:
    """Fit the mixture to all rows, `X` with their labels and weights, and to each fold.

    Every weight of unlabelled rows is tried on the folds if it has to be found; the predictions
    of the best one are used again, so that nothing is fitted twice. `kept` keeps what was done.
    """
    splits = ballot.splits(mixture.random_state)
    tries = {}
    for weight in _weights(mixture, ballot, splits):
        _progress(mixture, f"folds with unlabeled_weight={weight:g}", splits)
        model = like(mixture, unlabeled_weight=weight, verbose=0)
        how = {"stay": ballot.some_unlabelled, "name": f"weight-{weight:g}-"}
        tries[weight] = ballot.ask(model, splits, **how, kept=kept)
    best, table = next(iter(tries)), Records()
    if len(tries) > 1:
        rows = np.concatenate([test for _, test in splits])
        best, table = best_weight(tries, rows, ballot.knowledge, ballot.weight)
    new = tries[best]
    if ballot.some_unlabelled:
        _progress(mixture, "folds without the held-out rows", splits)
        model = like(mixture, unlabeled_weight=best, verbose=0)
        new = ballot.ask(model, splits, kept=kept, name="new-")
    fitted = like(mixture, unlabeled_weight=best, checkpoint=part_of(kept, "fit"))
    fitted.fit(X, labels, sample_weight=sample_weight)
    fitted.set_params(checkpoint=None)
    return Votes(fitted, table, splits, tries[best], new)


def regress(
    ballot: Ballot, found: Votes, C: float, kept: Kept | None = None
) -> tuple[LinearModel, list[Array]]:
    """Return the regression on all labelled rows, and what others say of each fold.

    `kept` keeps the answers.
    """
    families, silent = found.mixture.families_, found.mixture.silent_views_
    speaking = [name for name in ballot.views.names if name not in silent]
    matrices = {name: encoded(families[name], ballot.views, name) for name in speaking}
    scales = {name: scale_of(families[name], X, ballot.weight) for name, X in matrices.items()}
    features = {name: scales[name].features(X) for name, X in matrices.items()}

    def fitted(train: Array) -> LinearModel:
        some = {name: X[train] for name, X in features.items()}
        mass = None if ballot.weight is None else ballot.weight[train]
        codes = ballot.knowledge.codes[train]
        return fit_linear(scales, some, codes, mass, len(ballot.knowledge.classes), C)

    whole, answers = fitted(ballot.labelled), []
    for fold, (train, test) in enumerate(found.splits):
        rows = np.setdiff1d(np.intersect1d(ballot.labelled, train), test)
        check_exact(ballot.knowledge, rows, f"cv, fold {fold}: ")

        def answer(part: Part | None, rows: Array = rows, test: Array = test) -> Content:
            some = {name: X[test] for name, X in features.items()}
            return {}, {"log_proba": fitted(rows).log_proba(some)}

        answers.append(once(kept, f"linear-{fold}", answer)[1]["log_proba"])
    return whole, answers


def _progress(mixture: MixtureClassifier, what: str, splits: Sequence[Split]) -> None:
    """Say what is being fitted, if the user wants to know."""
    if mixture.verbose and splits:
        sys.stderr.write(f"PooledClassifier: {len(splits)} {what}\n")


def _weights(
    mixture: MixtureClassifier, ballot: Ballot, splits: Sequence[Split]
) -> tuple[float, ...]:
    """Return the weights of unlabelled rows to try."""
    given = mixture.unlabeled_weight
    if not isinstance(given, str):
        return (float(given),)
    if not ballot.some_unlabelled:
        return (1.0,)
    enough = ballot.n_testable >= ENOUGH * len(ballot.knowledge.classes)
    return WEIGHTS if splits and enough else (RULE,)


def weigh(ballot: Ballot, found: Votes, answers: Sequence[Array]) -> tuple[Bunch, Bunch]:
    """Return the settings of the pool, and its predictions for the rows that were held out.

    `answers` are those of the regression, fold by fold. A fold is predicted with the settings that
    the other folds give. A mixture is surer of rows that it was fitted to than of new ones, so that
    each kind of rows has settings of its own.
    """
    n_classes = len(ballot.knowledge.classes)
    tests = [test for _, test in found.splits]
    if not tests:
        nothing = np.zeros(0, dtype=np.intp)
        empty = Bunch(rows=nothing, folds=nothing, proba=np.zeros((0, n_classes)))
        return Bunch(**_named(PRIOR, PRIOR), log_change=np.zeros(n_classes)), empty
    rows = np.concatenate(tests)
    folds = np.repeat(np.arange(len(tests)), [len(test) for test in tests])
    votes, truth = (found.log_proba, np.concatenate(answers)), ballot.knowledge.codes[rows]
    mass = np.ones(len(rows)) if ballot.weight is None else ballot.weight[rows]
    log_proba = np.empty_like(votes[0])
    for fold in range(len(tests)):
        mine = folds == fold
        others = ~mine
        settings = pool_settings([v[others] for v in votes], truth[others], PRIOR, mass[others])
        log_proba[mine] = pool([v[mine] for v in votes], settings)
    own = pool_settings(votes, truth, PRIOR, mass)
    new = pool_settings((found.log_proba_new, votes[1]), truth, PRIOR, mass)
    proba = np.exp(log_proba)
    right = proba.argmax(axis=1) == truth
    figures = Bunch(
        **_named(new, own),
        log_change=np.zeros(n_classes),
        n_rows=len(rows),
        accuracy=float(np.average(right, weights=mass)),
        log_loss=float(-np.average(log_proba[np.arange(len(rows)), truth], weights=mass)),
        ece=expected_calibration_error(truth, proba, sample_weight=mass),
    )
    return figures, Bunch(rows=rows, folds=folds, proba=proba)


def _named(new: Iterable[float], own: Iterable[float]) -> dict[str, float]:
    """Return the settings of new and of own rows by their names."""
    return dict(zip(NEW + OWN, map(float, (*new, *own)), strict=True))


def shares_of(ballot: Ballot) -> Array:
    """Return the shares of the classes among the labelled rows."""
    rows = ballot.labelled
    mass = None if ballot.weight is None else ballot.weight[rows]
    n_classes = len(ballot.knowledge.classes)
    counts = np.bincount(ballot.knowledge.codes[rows], weights=mass, minlength=n_classes)
    return np.asarray(counts / counts.sum())


def find_shares(log_proba: Array, ballot: Ballot) -> Array:
    """Return the shares of the classes among the unlabelled rows.

    People label as many rows of a rare class as of a frequent one. EM over the shares alone finds
    those of the unlabelled rows (Saerens, Latinne & Decaestecker 2002, Eq. 3.5): the E step
    multiplies P(class | row) by the change of the shares, the M step takes the mean over the rows.
    The shares of the labels count as a prior.
    """
    start = shares_of(ballot)
    loose = ~ballot.knowledge.exact
    mass = loose.astype(np.float64) if ballot.weight is None else loose * ballot.weight
    if not mass.any():
        return start
    proba, mass = np.exp(log_proba[mass > 0]), mass[mass > 0]
    known = len(ballot.labelled) if ballot.weight is None else ballot.weight[ballot.labelled].sum()
    pseudo_rows = start * (TRUST_IN_LABELS * mass.sum() + known)
    shares = start
    for _ in range(1000):
        posterior = proba * (shares / start)
        posterior /= posterior.sum(axis=1, keepdims=True)
        new = mass @ posterior + pseudo_rows
        new /= new.sum()
        change, shares = np.abs(new - shares).max(), new
        if change < 1e-8:
            break
    return np.asarray(shares)
