"""entropy_trace: the records of a fit, with what only the truth can tell."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from coem import MixtureClassifier, MixtureClusterer, Views
from coem.analysis import entropy_trace
from coem.engine import LocalEngine
from coem.metrics import cluster_entropy
from coem.schedules import Linear
from coem.text import ScaleLength

RNG = np.random.default_rng(0)
TRUTH = np.repeat(["a", "b", "c"], 30)
VIEWS = Views(
    words=RNG.poisson(0.4 + 0.5 * np.repeat(np.eye(3, 12), 30, axis=0)),
    links=RNG.poisson(0.3 + 0.7 * np.repeat(np.eye(3, 6), 30, axis=0)),
)
COSTS = {"init": "random", "tol": 0, "max_iter": 5, "random_state": 3, "evidence": "fixed"}

cases = pytest.mark.parametrize(
    "options",
    [
        {},
        {"coupling": "joint"},
        {"assign": "average", "weights": "uniform"},
        {"weights": "per_view", "eta": 0.5},
        {"beta": Linear(0.2, 1, 4)},
        {"posterior": "hard", "coupling": "joint", "init": "rows", "dtype": np.float64},
        {"n_init": 3},
        {"n_init": 3, "n_jobs": 2},
        {"init": "k-means++"},
    ],
    ids=str,
)


# With four components for three classes one may die, which is no matter here.
may_die = pytest.mark.filterwarnings("ignore:components:sklearn.exceptions.ConvergenceWarning")


def without_clock(records):
    return [{**record, "seconds": 0} for record in records]


@cases
@may_die
def test_labels_of_a_round_are_those_of_a_fit_that_stops_there(options):
    """Restarts that stop earlier may be judged otherwise, so the best run is run again alone."""
    model = MixtureClusterer(4, **COSTS | options)
    trace = entropy_trace(model, VIEWS, TRUTH)
    assert len(trace) == 5
    whole = clone(model).fit(VIEWS)
    assert trace[-1].entropy == cluster_entropy(TRUTH, whole.labels_)
    if "n_init" in options:
        return
    for t, record in enumerate(trace, start=1):
        part = clone(model).set_params(max_iter=t).fit(VIEWS)
        assert record.entropy == cluster_entropy(TRUTH, part.labels_)
    assert len({record.entropy for record in trace}) > 1


@cases
@may_die
def test_the_other_fields_are_those_of_the_fit(options):
    model = MixtureClusterer(4, **COSTS | options)
    trace = entropy_trace(model, VIEWS, TRUTH)
    history = without_clock(clone(model).fit(VIEWS).history_)
    found = without_clock(trace)
    assert [{**record, "entropy": 0} for record in found] == [
        {**record, "entropy": 0} for record in history
    ]


@pytest.mark.slow
@may_die
def test_of_the_best_run():
    """The runs of this model differ in length, so that rounds of another run would show."""
    model = MixtureClusterer(4, n_init=6, coupling="joint", init="rows", random_state=3)
    whole = clone(model).fit(VIEWS)
    assert len({run.n_iter for run in whole.runs_}) > 1
    trace = entropy_trace(model, VIEWS, TRUTH)
    assert len(trace) == whole.n_iter_
    assert trace[-1].entropy == cluster_entropy(TRUTH, whole.labels_)


def test_the_estimator_is_left_as_it_was(tmp_path):
    engine = LocalEngine(2)
    model = MixtureClusterer(3, **COSTS, engine=engine, checkpoint=tmp_path / "fit")
    trace = entropy_trace(model, VIEWS, TRUTH)
    assert model.engine is engine
    assert not hasattr(model, "theta_")
    assert not (tmp_path / "fit").exists()
    assert [r.entropy for r in trace] == [
        r.entropy for r in entropy_trace(MixtureClusterer(3, **COSTS), VIEWS, TRUTH)
    ]


def test_empty_views_one_view_and_frames():
    words, links = VIEWS["words"].copy(), np.zeros_like(VIEWS["links"])
    words[:5] = 0
    model = MixtureClusterer(3, **COSTS, assign="average")
    silent = entropy_trace(model, {"words": words, "links": links}, TRUTH)
    alone = entropy_trace(model, words, TRUTH)
    assert {record.agreement_rate for record in silent} == {1.0}  # no row has two views
    assert all(0 <= record.entropy <= np.log2(3) for record in [*silent, *alone])
    frame = silent.to_frame()
    assert {"round", "entropy", "agreement_rate", "log_likelihood_words"} <= set(frame.columns)
    assert len(frame) == 5


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (TRUTH[:-1], r"labels_true has 89 rows and labels_pred has 90"),
        (TRUTH[:, np.newaxis], r"labels_true has shape \(90, 1\); give one label"),
        (np.r_[np.nan, np.ones(89)], "labels_true is NaN in row 0; leave unlabelled rows out"),
    ],
)
def test_labels_are_checked_before_the_fit(y, message, monkeypatch):
    monkeypatch.setattr(MixtureClusterer, "fit", None)
    with pytest.raises(ValueError, match=message):
        entropy_trace(MixtureClusterer(3), VIEWS, y)


@pytest.mark.parametrize(
    "estimator", [MixtureClassifier(), make_pipeline(ScaleLength(), MixtureClusterer(3)), None]
)
def test_other_estimators_are_refused(estimator):
    with pytest.raises(TypeError, match=r"must be a MixtureClusterer, got .* the last step"):
        entropy_trace(estimator, VIEWS, TRUTH)
