"""Learning from one batch after another."""

from coem.latent.block import Partition
from coem.views import as_views


class OnlineMixin:
    """`partial_fit`: statistics add, so batches do."""

    def partial_fit(self, X, y=None, sample_weight=None):
        """Go on with the rows of another batch.

        The first call is `fit`. Every later one does one E step on the new rows with the
        parameters at hand, adds their statistics to those of the batches before, and does one M
        step. `labels_` are those of the last batch; `history_`, `objective_` and `n_iter_` stay
        those of the first. After a plain `fit`, which keeps no
        statistics, the sum starts with this batch, from the parameters that were fitted.

        Parameters
        ----------
        X : matrix, list, dict or Views
            The rows of the batch.
        y : array of shape (n_rows,), optional
            Labels, for a classifier.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        self : object
            The estimator.
        """
        if not hasattr(self, "weights_"):
            self.fit(X, y, sample_weight=sample_weight)
            self._stats = self._batch_stats(*self._batch(X, y, sample_weight))
            return self
        data, model, theta = self._batch(X, y, sample_weight)
        stats = self._batch_stats(data, model, theta)
        if self._stats is not None:
            stats = [old + new for old, new in zip(self._stats, stats, strict=True)]
        self._stats = stats
        for turn, expected in enumerate(self._stats):
            theta = model.estimate(expected, theta, turn)
        self._set_theta(model, theta)
        self.labels_ = self.predict(X)
        return self

    def _batch(self, X, y, sample_weight):
        """Return the data of a batch, the model and the parameters at hand."""
        rows = self._data(X)
        knowledge = self._knowledge(as_views(X), y, sample_weight)
        return Partition(rows.views, rows.empty, *knowledge), self._model(), self._theta()

    def _batch_stats(self, data, model, theta):
        """Return the statistics of a batch for every turn of the model."""
        eta = self.history_[-1].eta
        with self._engine() as engine:
            model.e_step(engine, data, theta, self.beta_, eta)
            return [model.gather(engine, data, turn, eta) for turn in range(model.n_turns)]


def check_classes(classes, seen):
    """Refuse classes that are not those that have been seen."""
    missing = [label for label in classes if label not in seen]
    if missing:
        raise ValueError(f"class {missing[0]!r} has no labelled row; label one first")
    strange = [label for label in seen if label not in classes]
    if strange:
        raise ValueError(f"label {strange[0]!r} is none of the classes {classes}")
