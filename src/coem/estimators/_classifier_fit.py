"""How a classifier is fitted: its parameters, one fit, and its calibration."""

from numbers import Integral, Real

from sklearn.utils import Bunch

from coem.checks import check_flag, check_number
from coem.estimators._base import BaseMixture
from coem.estimators._classifier_methods import ClassifierMethods
from coem.estimators._correspondence import by_hand, check_correspondence
from coem.estimators._held_out import calibration, is_leave_one_out, like, splits_of
from coem.estimators._labels_of_corpora import Judged, lesson_of, with_labels
from coem.estimators._starts import first_classes
from coem.estimators._subtopics import Sizes, check_sizes, is_choice, needs_folds, sizes_of
from coem.estimators._unlabeled_weight import check_unlabeled_weight as check_unlabeled
from coem.estimators._unlabeled_weight import with_weight
from coem.io.kept import Kept, check_seed, part_of
from coem.labels import Knowledge
from coem.row_store import RowStore
from coem.typing import Array
from coem.views import Views


class ClassifierFit(ClassifierMethods):
    """The fits of `MixtureClassifier`."""

    def _check_params(self) -> None:
        """Raise unless all parameters are valid."""
        super()._check_params()
        check_unlabeled(self.unlabeled_weight)
        check_sizes(self.components_per_class)
        check_correspondence(self.correspondence)
        if (self.cv is None or isinstance(self.cv, Real | str)) and not is_leave_one_out(self.cv):
            check_number("cv", self.cv, Integral, 2)
        check_flag("calibrate", self.calibrate)
        if needs_folds(self):
            check_seed(self.random_state, self.checkpoint, "fits to folds")
        judged = is_choice(self.components_per_class) or self.calibrate
        if judged and isinstance(self.init, BaseMixture):
            raise ValueError(
                "init is a fitted model, which may have seen the rows that will be held out; "
                "leave calibrate at False and components_per_class at a number"
            )

    def _fit_sizes(
        self,
        sizes: Sizes,
        views: Views | RowStore,
        knowledge: Knowledge,
        weight: Array | None,
        kept: Kept | None,
    ) -> None:
        """Fit with given numbers of components per class."""
        n_by_class = sizes_of(sizes, self.classes_)
        self.component_classes_ = first_classes(self.init, self.classes_, n_by_class)
        if isinstance(self.correspondence, dict):  # raise before any work
            by_hand(self.correspondence, self.classes_, self.component_classes_)
        lesson = lesson_of(knowledge, weight, views)
        if n_by_class.sum() > len(views):
            raise ValueError(
                f"n_samples={len(views)} rows cannot fill {n_by_class.sum()} components; lower "
                "components_per_class"
            )
        part, own = self._rows_of_fit(views, weight), self._weigh(knowledge, weight)
        part = with_labels(part, knowledge.allowed, self.component_classes_, own)
        part = self._listened(part, weight)
        saved = self._saved(part, part_of(kept, "fit"))
        self._fit(part, lesson, saved=saved)
        if saved:
            saved.clear()

    def _calibration(self, sizes: Sizes, judged: Judged, kept: Kept | None) -> Bunch:
        """Return the calibration by folds, with given numbers of components per class."""
        X, _, weight, knowledge = judged
        cv = 5 if is_leave_one_out(self.cv) else self.cv
        splits = splits_of(cv, len(knowledge.exact), knowledge, weight, self.random_state)
        model = like(with_weight(self, components_per_class=sizes))
        return calibration(model, X, weight, knowledge, splits, kept)
