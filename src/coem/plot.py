"""Pictures for notebooks, in the manner of scikit-learn's displays. They need matplotlib."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coem.metrics import expected_calibration_error, reliability_curve
from coem.report.agreement import rates
from coem.report.readers import read
from coem.report.words import lengths_of, name_groups, names_of, words_of
from coem.selection import choose_k

__all__ = [
    "AgreementDisplay",
    "ClustersDisplay",
    "DendrogramDisplay",
    "ReliabilityDisplay",
    "SizesDisplay",
    "TraceDisplay",
    "plot_agreement",
    "plot_clusters",
    "plot_dendrogram",
    "plot_reliability",
    "plot_sizes",
    "plot_trace",
]


class Display:
    """Keeps the axes that it was drawn on as `ax_` and `figure_`."""

    def plot(self, ax=None):
        """Draw on the axes, or on new ones.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; None takes the axes of a new figure.

        Returns
        -------
        display : Display
            Itself, with `ax_` and `figure_` set.
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self


class TraceDisplay(Display):
    """The objective after every round, and how far the views agreed.

    Parameters
    ----------
    objective : array of shape (n_rounds,)
        The objective; larger is better.
    agreement : array of shape (n_rounds,), optional
        Share of rows on which the views agree; drawn on a second axis.
    """

    def __init__(self, objective, agreement=None):
        self.objective, self.agreement = objective, agreement

    @classmethod
    def from_estimator(cls, estimator, *, ax=None):
        """Draw the `history_` of a fitted model."""
        check_is_fitted(estimator)
        history = getattr(estimator, "history_", None)
        if not history:
            raise ValueError(f"{type(estimator).__name__} has no history of rounds to draw")
        several = len(getattr(estimator, "view_names_", ())) > 1
        rates = [record.get("agreement_rate") for record in history]
        agreement = np.array(rates) if several and None not in rates else None
        return cls(np.array([record["objective"] for record in history]), agreement).plot(ax)

    def _draw(self, ax):
        rounds = np.arange(1, len(self.objective) + 1)
        ax.plot(rounds, self.objective, marker=".", label="objective")
        ax.set(xlabel="round", ylabel="objective")
        if self.agreement is not None:
            beside = ax.twinx()
            beside.plot(rounds, self.agreement, color="C1", linestyle="--", label="agreement")
            beside.set_ylabel("views agree", color="C1")


class AgreementDisplay(Display):
    """The share of rows that any two views put into the same group.

    Parameters
    ----------
    matrix : array of shape (n_views, n_views)
        Shares; NaN where no row has both views.
    names : sequence of str
        The views.
    """

    def __init__(self, matrix, names):
        self.matrix, self.names = np.asarray(matrix), list(names)

    @classmethod
    def from_estimator(cls, estimator, X, *, ax=None):
        """Draw how the views of rows agree, each by itself, in the eyes of a fitted model."""
        reading = read(estimator, X)
        if reading.view_groups is None:
            raise ValueError("one view has nothing to agree with; fit the model on several views")
        return cls.from_predictions(reading.view_groups, names=reading.views.names, ax=ax)

    @classmethod
    def from_predictions(cls, view_labels, *, names=None, ax=None):
        """Draw from the groups that every view gives, (n_rows, n_views), -1 where it is empty."""
        labels = np.asarray(view_labels)
        matrix, _ = rates(labels)
        names = [f"view{v}" for v in range(len(matrix))] if names is None else names
        return cls(matrix, names).plot(ax)

    def _draw(self, ax):
        image = ax.imshow(self.matrix, vmin=0, vmax=1, cmap="Blues")
        places = range(len(self.names))
        ax.set_xticks(places, self.names)
        ax.set_yticks(places, self.names)
        for u in places:
            for v in places:
                if np.isfinite(self.matrix[u, v]):
                    colour = "white" if self.matrix[u, v] > 0.6 else "black"
                    text = f"{self.matrix[u, v]:.0%}"
                    ax.text(v, u, text, ha="center", va="center", color=colour)
        self.figure_.colorbar(image, ax=ax, label="same group")


class ClustersDisplay(Display):
    """The sizes of the groups as bars, with their names.

    Parameters
    ----------
    sizes : array of shape (n_groups,)
        Number of rows.
    names : sequence of str
        Names, such as the telling words.
    """

    def __init__(self, sizes, names):
        self.sizes, self.names = np.asarray(sizes), list(names)

    @classmethod
    def from_estimator(cls, estimator, X, *, feature_names=None, n_words=5, ax=None):
        """Draw the groups of rows with their most telling words; see `coem.report.group_words`."""
        reading = read(estimator, X)
        if reading.noun == "class":
            return cls(reading.sizes, [str(key) for key in reading.keys]).plot(ax)
        columns = names_of(estimator, reading.views, feature_names)
        words = words_of(reading, columns)
        names = name_groups(words, n_words, lengths_of(reading.views))
        return cls(reading.sizes, names).plot(ax)

    @classmethod
    def from_predictions(cls, labels, *, names=None, ax=None):
        """Draw the sizes of the groups that rows were given."""
        groups, sizes = np.unique(np.asarray(labels), return_counts=True)
        return cls(sizes, groups.astype(str) if names is None else names).plot(ax)

    def _draw(self, ax):
        order = np.argsort(self.sizes, kind="stable")
        bars = ax.barh(np.arange(len(order)), self.sizes[order])
        ax.bar_label(bars, labels=[f"{size:,}" for size in self.sizes[order]], padding=3)
        ax.set_yticks(np.arange(len(order)), [self.names[g] for g in order])
        ax.set_xlabel("rows")
        ax.margins(x=0.12)
        ax.spines[["top", "right"]].set_visible(False)


class ReliabilityDisplay(Display):
    """How often a classifier is right where it is so and so sure.

    Parameters
    ----------
    confidence, accuracy, weight : arrays of shape (n_bins,)
        What `coem.metrics.reliability_curve` returns.
    error : float
        The expected calibration error.
    """

    def __init__(self, confidence, accuracy, weight, error):
        self.confidence, self.accuracy = confidence, accuracy
        self.weight, self.error = weight, error

    @classmethod
    def from_estimator(cls, estimator, X, y, *, n_bins=10, ax=None):
        """Draw the curve of a fitted classifier on rows with their true classes."""
        given = {"classes": estimator.classes_, "n_bins": n_bins}
        return cls.from_predictions(y, estimator.predict_proba(X), **given, ax=ax)

    @classmethod
    def from_predictions(cls, y_true, proba, *, classes=None, n_bins=10, ax=None):
        """Draw the curve of probabilities (n_rows, n_classes) that were predicted."""
        given = {"classes": classes, "n_bins": n_bins}
        curve = reliability_curve(y_true, proba, **given)
        error = expected_calibration_error(y_true, proba, **given)
        return cls(curve.confidence, curve.accuracy, curve.weight, error).plot(ax)

    def _draw(self, ax):
        there = self.weight > 0
        ax.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="as sure as right")
        ax.plot(self.confidence[there], self.accuracy[there], color="C0")
        share = self.weight[there] / self.weight.sum()
        points = self.confidence[there], self.accuracy[there]
        ax.scatter(*points, s=20 + 300 * share, color="C0", label=f"error {self.error:.3f}")
        ax.set(xlabel="probability of the choice", ylabel="share that is right")
        ax.set(xlim=(0, 1.03), ylim=(0, 1.03), aspect="equal")
        ax.legend(loc="upper left", frameon=False)


class DendrogramDisplay(Display):
    """The tree of a `MultiViewAgglomerative`.

    Parameters
    ----------
    linkage : array of shape (n_rows - 1, 4)
        The merges, as scipy takes them.
    ids : sequence of str, optional
        Names of the rows.
    truncate : int, default=30
        Number of leaves that are drawn; larger ones are groups of rows, with their number.
    by_order : bool, default=False
        Heights are the order of the merges and not their distances.
    """

    def __init__(self, linkage, ids=None, truncate=30, by_order=False):
        self.linkage, self.ids, self.truncate = np.asarray(linkage, dtype=float), ids, truncate
        self.by_order = by_order

    @classmethod
    def from_estimator(cls, estimator, *, ids=None, truncate=30, ax=None):
        """Draw a fitted tree.

        Several views measure distances on scales of their own, which may fall from one merge to
        the next: heights are then the order of the merges.
        """
        check_is_fitted(estimator, "linkage_matrix_")
        several = len(estimator.view_names_) > 1
        return cls(estimator.linkage_matrix_, ids, truncate, by_order=several).plot(ax)

    def _draw(self, ax):
        from scipy.cluster.hierarchy import dendrogram

        merges = self.linkage.copy()
        few = len(merges) + 1 <= self.truncate
        if self.by_order:
            # Merges below the leaves that are drawn take no height.
            below = 0 if few else len(merges) + 1 - self.truncate
            merges[:, 2] = np.maximum(np.arange(1, len(merges) + 1) - below, 0)
        labels = None if self.ids is None else [str(i)[:24] for i in self.ids]
        cut = {} if few else {"truncate_mode": "lastp", "p": self.truncate}
        dendrogram(merges, ax=ax, labels=labels, leaf_rotation=90, **cut)
        ax.set_ylabel("order of the merges" if self.by_order else "distance")
        ax.set_xlabel("rows" if few else "rows, or (number of rows)")
        ax.spines[["top", "right"]].set_visible(False)


class SizesDisplay(Display):
    """What fits share by their number of components, with its error and the chosen number.

    Parameters
    ----------
    choice : coem.selection.Choice
        What `coem.selection.choose_k` returns. The shaded numbers are possible, too; the
        dashed line is the information that is enough.
    """

    def __init__(self, choice):
        self.choice = choice

    @classmethod
    def from_choice(cls, choice, *, ax=None):
        """Draw what `choose_k` found."""
        return cls(choice).plot(ax)

    @classmethod
    def from_estimator(cls, estimator, X, sizes=None, *, ax=None, **settings):
        """Choose the number of components of a model for rows, and draw what was found.

        Settings are those of `coem.selection.choose_k`.
        """
        return cls(choose_k(estimator, X, sizes, **settings)).plot(ax)

    def _draw(self, ax):
        self.choice.draw(ax)


# -- functions that return axes -----------------------------------------------------------------


def plot_trace(model, ax=None):
    """Draw the objective of every round of a fit, and return the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MixtureClusterer
    >>> from coem.plot import plot_trace
    >>> model = MixtureClusterer(2, random_state=0).fit(np.eye(4))
    >>> plot_trace(model).get_ylabel()
    'objective'
    """
    return TraceDisplay.from_estimator(model, ax=ax).ax_


def plot_agreement(model, X, ax=None):
    """Draw how far the views of rows agree, and return the axes."""
    return AgreementDisplay.from_estimator(model, X, ax=ax).ax_


def plot_clusters(model, X, *, feature_names=None, n_words=5, ax=None):
    """Draw sizes and telling words of the groups, and return the axes."""
    named = {"feature_names": feature_names, "n_words": n_words}
    return ClustersDisplay.from_estimator(model, X, **named, ax=ax).ax_


def plot_reliability(y_true, proba, *, classes=None, n_bins=10, ax=None):
    """Draw how often a classifier is right where it is so and so sure, and return the axes."""
    given = {"classes": classes, "n_bins": n_bins}
    return ReliabilityDisplay.from_predictions(y_true, proba, **given, ax=ax).ax_


def plot_dendrogram(model, *, ids=None, truncate=30, ax=None):
    """Draw the tree of a `MultiViewAgglomerative`, and return the axes."""
    return DendrogramDisplay.from_estimator(model, ids=ids, truncate=truncate, ax=ax).ax_


def plot_sizes(choice, ax=None):
    """Draw what `coem.selection.choose_k` found, and return the axes.

    Examples
    --------
    >>> import numpy as np
    >>> from coem import MixtureClusterer
    >>> from coem.plot import plot_sizes
    >>> from coem.selection import choose_k
    >>> X = np.random.default_rng(0).poisson(np.repeat(1 + 20 * np.eye(3, 9), 40, axis=0))
    >>> plot_sizes(choose_k(MixtureClusterer(), X, [2, 3, 4], random_state=0)).get_xlabel()
    'components'
    """
    return SizesDisplay.from_choice(choice, ax=ax).ax_


def _axes(ax):
    """Return axes to draw on; matplotlib is loaded here and not before."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("coem.plot needs matplotlib: pip install coem[plot]") from error
    return plt.subplots(layout="constrained")[1]
