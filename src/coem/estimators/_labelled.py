"""What labels mean to a mixture: each class has some of the components."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from coem.checks import check_weight
from coem.estimators._correspondence import allowed_components, by_hand, by_labels, by_model
from coem.estimators._explain import ExplainMixin
from coem.estimators._fit import Lesson, MixtureFit
from coem.estimators._restarts import Rows, Starts
from coem.initialise import Start, prime, prime_apart
from coem.labels import Knowledge, read_knowledge
from coem.latent.mixture import MixtureTheta
from coem.latent.stored import StoredRows
from coem.protocols import Engine
from coem.records import Records
from coem.schedules import as_schedule
from coem.typing import Array
from coem.views import Views

RULE = 0.05  # the weight of an unlabelled row if there are too few labels to choose it by


class LabelledMixture(ExplainMixin, MixtureFit):
    """A mixture whose components belong to classes; the hooks of `MixtureClassifier`."""

    components_per_class: Any  # a number, a dict, "cv", or a list of candidates
    unlabeled_weight: float | str  # a number, or "auto"
    unlabeled_weight_: float
    cv_results_: Records
    correspondence: str | dict[int, Any]
    calibrate: bool
    cv: Any  # a number, "loo", a splitter, or splits

    classes_: Array
    component_classes_: Array

    _inits = ("random", "rows", "k-means++")

    # -- classes and components --------------------------------------------------------------

    def _n_components(self) -> int:
        return len(self.component_classes_)

    def _classes(self) -> tuple[int, ...]:
        return tuple(self.component_classes_.tolist())

    def _pseudo_rows(self) -> float:
        return 1.0

    def _label_of(self, component: int) -> Any:
        return self.classes_[self.component_classes_[component]]

    def _labels(self, proba: Array) -> Array:
        members = np.eye(len(self.classes_))[self.component_classes_]
        labels: Array = self.classes_[(proba @ members).argmax(axis=1)]
        return labels

    def _by_class(self, log_proba: Array) -> Array:
        """Return the logarithms of the sums over the components of each class (Eq. 3.13)."""
        if len(self.component_classes_) == len(self.classes_) == log_proba.shape[1]:
            order = np.argsort(self.component_classes_, kind="stable")
            if (self.component_classes_[order] == np.arange(len(order))).all():
                return log_proba[:, order]
        out = np.full((len(log_proba), len(self.classes_)), -np.inf)
        for c in np.unique(self.component_classes_):
            out[:, c] = logsumexp(log_proba[:, self.component_classes_ == c], axis=1)
        return out

    def _rivals(self, log_joint: Array, pair: list[int] | None) -> tuple[int, int]:
        """Return the best component of the best class, and that of the second best class."""
        by_class = self._by_class(log_joint[np.newaxis])[0]
        best, second = (
            int(np.where(self.component_classes_ == c, log_joint, -np.inf).argmax())
            for c in pair or np.argsort(-by_class, kind="stable")[:2]
        )
        return best, second

    # -- labels of rows ----------------------------------------------------------------------

    def _knowledge(
        self, views: Views, y: Any, sample_weight: Any
    ) -> tuple[Array | None, Array | None]:
        knowledge = read_knowledge(y, len(views), self.classes_)
        weight = self._weigh(knowledge, check_weight(sample_weight, views))
        return allowed_components(knowledge.allowed, self.component_classes_, weight)

    def _say(self, y: Any, weight: Array) -> Array:
        own = self._weigh(read_knowledge(y, len(weight)), weight)
        assert own is not None
        return own

    def _weigh(self, knowledge: Knowledge, weight: Array | None) -> Array | None:
        """Return the weights of the rows; the less a label says, the lower (EM-lambda)."""
        share = self._unlabeled_share()
        if share == 1:
            return weight
        own: Array = share + (1 - share) * knowledge.certainty
        return own if weight is None else weight * own

    def _unlabeled_share(self) -> float:
        """Return the weight of an unlabelled row; models of older files have only the parameter."""
        given = RULE if isinstance(self.unlabeled_weight, str) else self.unlabeled_weight
        return float(getattr(self, "unlabeled_weight_", given))

    # -- fit ---------------------------------------------------------------------------------

    def _starts(self, part: Rows, lesson: Lesson | None, engine: Engine) -> Starts[MixtureTheta]:
        """Return the given start, or starts from the labelled rows."""
        given = self._given_start(part.n_rows)
        if given is not None:
            return Starts(given, 1)
        assert lesson is not None
        mixture, (rows, taught) = self._mixture(), lesson
        if isinstance(part, StoredRows):
            part = part.take(rows)
        n_rows = int(taught.any(axis=1).sum())
        if np.bincount(self.component_classes_).max() == 1:
            resp = taught.astype(mixture.dtype)
            return Starts(lambda rng: Start(prime(mixture, part, resp)), 1, n_rows=n_rows)
        draw = prime_apart(mixture, part, taught, self.init)
        return Starts(lambda rng: Start(draw(rng)), self.n_init, n_rows=n_rows)

    def _name_components(
        self, part: Rows, lesson: Lesson | None, unannealed: Callable[[], MixtureTheta]
    ) -> None:
        """Set the class of every component, as `correspondence` says."""
        annealed = len(as_schedule(self.beta, "beta")) > 0
        now = self.component_classes_
        if isinstance(self.correspondence, dict):
            self.component_classes_ = by_hand(self.correspondence, self.classes_, now)
        elif annealed and self.correspondence == "labels":
            assert lesson is not None
            known = lesson.shares.any(axis=1)
            labelled = part.without_labels().take(lesson.rows[known])
            self.component_classes_ = by_labels(self._fitted(), labelled, lesson.shares[known], now)
        elif annealed:
            fitted = self._fitted()
            other = replace(fitted, theta=unannealed())
            self.component_classes_ = by_model(fitted, other, part.sample, now)
