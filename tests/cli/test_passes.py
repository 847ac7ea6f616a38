"""How often a run looks at the same rows after its last round.

A pass over the rows of a view is one evaluation of log p(row | component) for all rows. After the
last round of EM a fit makes one pass to set `labels_`. The program makes one more to calibrate
groups, and one for the page, the assignments and the record of the run. These tests fail if
anything reads the rows again.
"""

import pytest

from coem.families import Multinomial
from coem.kernels import aspect
from coem.latent.fitted import Fitted

from .conftest import posts, write_csv

N_ROWS, RESTARTS = 90, 3
TWO_VIEWS = ("--text", "body", "--view", "title=title")


class Passes:
    """Passes over the rows by fitted mixtures, and validations of the rows, both per view."""

    def __init__(self):
        self.scored, self.validated = [], []  # (view, n_rows) per call; threads may append

    def per_view(self):
        """Return (passes, validations) of each view."""
        return [
            tuple(
                sum(n for view, n in calls if view == wanted) / N_ROWS
                for calls, wanted in ((self.scored, number), (self.validated, name))
            )
            for number, name in enumerate(dict.fromkeys(view for view, _ in self.validated))
        ]


@pytest.fixture
def passes(monkeypatch):
    """Count what `Fitted`, and nothing in the rounds of EM, computes."""
    found, log_prob, check = Passes(), Fitted.log_prob, Multinomial.check

    def counted_log_prob(self, block, v):
        found.scored.append((v, block.n_rows))
        return log_prob(self, block, v)

    def counted_check(self, X, view):
        found.validated.append((view, X.shape[0]))
        return check(self, X, view)

    monkeypatch.setattr(Fitted, "log_prob", counted_log_prob)
    monkeypatch.setattr(Multinomial, "check", counted_check)
    return found


@pytest.fixture
def folds_in(monkeypatch):
    """Collect the calls that fold rows into an aspect model."""
    calls, fold_in = [], aspect.fold_in

    def counted(*args):
        calls.append(args)
        return fold_in(*args)

    monkeypatch.setattr(aspect, "fold_in", counted)
    return calls


@pytest.mark.parametrize(
    ("views", "per_view"),
    [
        # All runs share one validation. The kept run is read to calibrate it, and for the page;
        # that of one view validates once more to find the empty rows.
        (("--text", "body"), [(RESTARTS + 2, 4)]),
        (TWO_VIEWS, [(RESTARTS + 2, 3)] * 2),
        # Probabilities that stay as they are need no reading.
        ((*TWO_VIEWS, "--evidence", "fixed"), [(RESTARTS + 1, 2)] * 2),
    ],
    ids=["one view", "two views", "fixed"],
)
def test_cluster_reads_each_run_once_and_the_kept_run_once_or_twice_more(
    views, per_view, table, coem, passes
):
    arguments = (*views, "-k", 3, "--restarts", RESTARTS, "--label", "topic", "--out", "out")
    coem("cluster", table, *arguments)
    assert passes.per_view() == per_view


@pytest.mark.parametrize(
    ("views", "per_view"),
    [
        # One pass for `labels_` of the mixture and one for those of the pool; two for the page,
        # which asks the pool and its mixture. The regression validates the rows too.
        (("--text", "body"), [(4, 8)]),
        # The page takes one more pass to compare the views.
        (TWO_VIEWS, [(5, 8)] * 2),
    ],
    ids=["one view", "two views"],
)
def test_classify_reads_for_the_labels_and_for_the_page(views, per_view, here, coem, passes):
    rows = posts(N_ROWS)
    for row in rows[3:]:  # one label per class: no folds and no calibration, which fit again
        row["topic"] = ""
    table = write_csv(here / "few.csv", rows)
    coem("classify", table, *views, "--label", "topic", "--out", "out")
    assert passes.per_view() == per_view


def test_topics_folds_rows_in_once(table, coem, folds_in):
    coem("topics", table, "--text", "body", "-k", 3, "--out", "out")
    assert len(folds_in) == 1
    coem("predict", "out", table, "--out", "assigned.csv")
    assert len(folds_in) == 2


def test_predict_reads_once(finished, table, coem, passes):
    coem("predict", finished, table, "--out", "assigned.csv")
    assert sorted(passes.scored) == [(0, N_ROWS), (1, N_ROWS)]
