"""Spherical k-means that was stopped goes on where it was, and ends with the same bits."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from coem import SphericalKMeans, Views
from coem.io import checkpoint, kept, read_archive, write_archive
from coem.kernels.lloyd import Lloyd
from coem.selection import stability
from tests.states import Stopped, stopped_after_writes

K = 12
RNG = np.random.default_rng(0)
GROUPS = RNG.integers(0, 8, 400)
WORDS = sp.csr_array(RNG.poisson(0.03 + 0.25 * (RNG.random((8, 900)) < 0.05)[GROUPS]) * 1.0)
TAGS = sp.csr_array(RNG.poisson(0.2 + (RNG.random((8, 60)) < 0.1)[GROUPS]) * 1.0)
PLACES = RNG.standard_normal((8, 5))[GROUPS] + 0.6 * RNG.standard_normal((400, 5))
SOME = np.where(RNG.random((400, 1)) < 0.3, np.nan, PLACES)
WEIGHT = RNG.integers(0, 3, 400) * 1.0
FEW = np.repeat(np.eye(8), 6, axis=0) + 0.02 * np.random.default_rng(1).standard_normal((48, 8))

CASES = {
    "sparse": (WORDS, {}),
    "double": (WORDS, {"dtype": np.float64}),
    "weights": (WORDS, {"sample_weight": WEIGHT}),
    "restarts": (WORDS, {"n_init": 3}),
    "dense": (PLACES, {}),
    "last state": (WORDS, {"patience": None, "max_iter": 9}),
    "views": (Views(words=WORDS, tags=TAGS), {}),
    "gaps": (Views(words=WORDS, places=SOME), {"patience": 2}),
    "refilled": (FEW, {"init": "rows", "random_state": 4}),
    "given": (PLACES, {"init": PLACES[:K]}),
}
FITTED = (
    *("labels_", "view_labels_", "cluster_centers_", "consensus_centers_", "objective_"),
    *("history_", "runs_", "best_run_", "n_iter_", "converged_"),
)


@pytest.fixture(autouse=True)
def write_every_round(monkeypatch):
    monkeypatch.setattr(checkpoint, "THRIFT", 0)


def fit(name, folder=None, n_jobs=1, **more):
    X, params = CASES[name]
    params = {"random_state": 0} | params | more
    weight = params.pop("sample_weight", None)
    model = SphericalKMeans(K, **params, n_jobs=n_jobs, checkpoint=folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of convergence, and of empty clusters
        return model.fit(X, sample_weight=weight)


def told(value):
    if isinstance(value, dict):
        return {name: told(part) for name, part in value.items() if name != "seconds"}
    if isinstance(value, list | tuple):
        return [told(part) for part in value]
    return (value.dtype.str, value.tolist()) if isinstance(value, np.ndarray) else repr(value)


def results(model):
    return {name: told(getattr(model, name)) for name in FITTED}


def stop_at(name, folder, n_writes, monkeypatch, n_jobs=1):
    """Stop a fit before some write; return its result if it ended before."""
    with stopped_after_writes(n_writes, monkeypatch):
        try:
            return fit(name, folder, n_jobs)
        except Stopped:
            return None


@pytest.mark.parametrize("n_writes", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_same_bits_as_without_stops(name, n_writes, tmp_path, monkeypatch):
    n_stops, found = 0, None
    while found is None:
        found = stop_at(name, tmp_path / "state", n_writes, monkeypatch, n_jobs=1 + n_stops % 2)
        n_stops += found is None
    assert n_stops > 0
    assert results(found) == results(fit(name))
    assert not (tmp_path / "state").exists()


def test_the_cases_have_sums_that_were_updated_and_clusters_that_were_refilled(monkeypatch):
    moved, real = [], Lloyd._move
    monkeypatch.setattr(Lloyd, "_move", lambda self, *how: moved.append(1) or real(self, *how))
    for name in ("sparse", "views"):
        moved.clear()
        whole = fit(name)
        assert whole.n_iter_ > 5
        assert len(moved) > 1
    assert any(record.reseeded for record in fit("refilled").history_[:-1])


def test_sums_that_are_made_again_would_have_other_digits(tmp_path, monkeypatch):
    stop_at("double", tmp_path, 5, monkeypatch)
    _, arrays = read_archive(tmp_path / "run-0.zip")
    again = Lloyd(WORDS, [], K)
    again.restore(
        {name.removeprefix("array.0."): a for name, a in arrays.items() if "array" in name}
    )
    summed = again.kept()["summed"].copy()
    fresh = Lloyd(WORDS, [], K)
    unit = sp.csr_array(WORDS.multiply(1 / np.sqrt(WORDS.multiply(WORDS).sum(axis=1))[:, None]))
    fresh.X, fresh._csr = unit, Lloyd(unit, [], K)._csr
    fresh.sum_rows(summed, None)
    np.testing.assert_allclose(fresh.sums, again.sums, atol=1e-12)
    assert (fresh.sums != again.sums).any()


def test_rounds_before_the_stop_are_not_run_again(tmp_path, monkeypatch):
    stop_at("sparse", tmp_path, 6, monkeypatch)
    meta, _ = read_archive(tmp_path / "run-0.zip")
    calls, real = [], Lloyd.sum_rows
    monkeypatch.setattr(Lloyd, "sum_rows", lambda self, *how: calls.append(1) or real(self, *how))
    n_rounds = fit("sparse", tmp_path).n_iter_
    assert len(meta["rounds"]) > 3
    assert len(calls) <= n_rounds - len(meta["rounds"]) + 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_clusters": 5}, r"n_clusters was 12 and is 5\); delete"),
        ({"patience": 9}, r"patience was 5 and is 9"),
        ({"init": "rows"}, r"other data or another init"),
        ({"init": PLACES[1 : K + 1]}, r"other data or another init"),
        ({"random_state": 7}, r"other seeds"),
    ],
)
def test_another_fit_is_refused(change, message, tmp_path, monkeypatch):
    stop_at("dense", tmp_path / "state", 3, monkeypatch)
    model = SphericalKMeans(K, random_state=0, checkpoint=tmp_path / "state").set_params(**change)
    with pytest.raises(ValueError, match=message):
        model.fit(PLACES)
    with pytest.raises(ValueError, match=r"other data"):
        SphericalKMeans(K, random_state=0, checkpoint=tmp_path / "state").fit(PLACES[::-1])


def test_a_run_may_go_on_for_longer_and_no_seed_takes_the_old_one(tmp_path, monkeypatch):
    stop_at("sparse", tmp_path / "state", 3, monkeypatch)
    longer = fit("sparse", tmp_path / "state", random_state=None, max_iter=150)
    assert results(longer) == results(fit("sparse"))


FORGED = {
    "labels": lambda meta, arrays: arrays["theta.0.labels"].fill(K),
    "no labels": lambda meta, arrays: arrays.pop("theta.0.labels"),
    "version": lambda meta, arrays: arrays["theta.version"].fill(0),
    "rows": lambda meta, arrays: arrays.update({"array.0.summed": np.zeros(3, np.int32)}),
    "other rows": lambda meta, arrays: arrays["array.0.summed"].fill(1),
    "beyond": lambda meta, arrays: arrays["array.0.summed"].fill(K),
    "sums": lambda meta, arrays: arrays["array.0.squares"].fill(0),
    "no sums": lambda meta, arrays: arrays.pop("array.0.sums"),
    "moves": lambda meta, arrays: meta["notes"].update(moves=[]),
    "views": lambda meta, arrays: meta["notes"]["moves"][0].append([1, 0, 0]),
    "no list": lambda meta, arrays: meta["notes"].update(moves=7),
    "no notes": lambda meta, arrays: meta["notes"].clear(),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_state_is_refused_with_advice(name, tmp_path, monkeypatch):
    stop_at("sparse", tmp_path, 4, monkeypatch)
    meta, arrays = read_archive(tmp_path / "run-0.zip")
    before = json.dumps(meta), {name: array.copy() for name, array in arrays.items()}
    FORGED[name](meta, arrays)
    assert (json.dumps(meta), arrays.keys()) != (before[0], before[1].keys()) or any(
        not np.array_equal(array, before[1][key]) for key, array in arrays.items()
    )
    write_archive(tmp_path / "run-0.zip", meta, arrays)
    with pytest.raises(ValueError, match=r"run-0.zip is damaged \(.*\); delete this file"):
        fit("sparse", tmp_path)


def test_forged_concept_vectors_are_refused(tmp_path, monkeypatch):
    stop_at("dense", tmp_path, 4, monkeypatch)
    meta, arrays = read_archive(tmp_path / "run-0.zip")
    arrays["theta.0.directions"] = arrays["theta.0.directions"][:, 1:]
    write_archive(tmp_path / "run-0.zip", meta, arrays)
    with pytest.raises(ValueError, match=r"12 concept vectors of 5 features\); delete this file"):
        fit("dense", tmp_path)


def test_several_fits_keep_their_states(tmp_path, monkeypatch):
    def call(folder):
        model = SphericalKMeans(K, n_init=2, checkpoint=folder)
        return stability(model, WORDS, n_runs=3, keep="central", random_state=0)

    whole = call(None)
    with stopped_after_writes(9, monkeypatch), pytest.raises(Stopped):
        call(tmp_path / "state")
    assert kept.has_state(tmp_path / "state")
    found = call(tmp_path / "state")
    np.testing.assert_array_equal(found.labels, whole.labels)
    np.testing.assert_array_equal(found.agreement, whole.agreement)
    assert told(found.estimator.cluster_centers_) == told(whole.estimator.cluster_centers_)
    assert not (tmp_path / "state").exists()
