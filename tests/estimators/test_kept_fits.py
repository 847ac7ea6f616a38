"""Fits of several runs, phases or folds go on where they were, and end with the same bits."""

import errno
import os
import warnings

import numpy as np
import pytest

from coem import (
    AspectModel,
    MixtureClassifier,
    MixtureClusterer,
    PooledClassifier,
    RunCoupling,
    TrafficModel,
)
from coem.io import _lock, checkpoint, kept, read_archive, stopping, whole, write_archive
from coem.selection import choose_k, stability
from tests.states import Stopped, stopped_after_writes

RNG = np.random.default_rng(0)
X = RNG.poisson(np.repeat(0.5 + 3 * np.eye(3, 10), 16, axis=0))
HELD_OUT = RNG.poisson(0.2, X.shape)
TRIPS = RNG.poisson(np.exp(RNG.standard_normal((12, 12))))
VIEWS = {"a": X[:, :5], "b": X[:, 5:]}
Y = np.where(np.arange(48) % 3, -1, np.arange(48) // 16)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def write_every_round(monkeypatch):
    monkeypatch.setattr(checkpoint, "THRIFT", 0)


def of_rows(n_rounds=2, **more):
    coupling = RunCoupling("rows", n_couplings=2, n_rounds=n_rounds)
    params = {"n_init": 2, "init": "random", "max_iter": 3, "tol": 0, "random_state": 0}
    return MixtureClusterer(3, coupling_of_runs=coupling, **params | more)


def aspects(**more):
    params = {"n_runs": 2, "coupling": "c", "rounds": 2, "max_iter": 3, "random_state": 0}
    return AspectModel(3, **params | more)


def classes(**more):
    return MixtureClassifier(**{"max_iter": 2, "tol": 0, "random_state": 0, "cv": 2} | more)


def pool(folder, n_jobs):
    how = {"unlabeled_weight": "auto", "checkpoint": folder, "n_jobs": n_jobs}
    return PooledClassifier(classes(**how), cv=2).fit(VIEWS, Y)


def fit(model, *data):
    return lambda folder, n_jobs: model().set_params(checkpoint=folder, n_jobs=n_jobs).fit(*data)


def runs_of(folder, n_jobs):
    model = MixtureClusterer(3, max_iter=2, tol=0, checkpoint=folder)
    return stability(model, X, n_runs=3, keep="central", random_state=0, n_jobs=n_jobs)


def sizes_of(folder, n_jobs):
    model = MixtureClusterer(max_iter=2, tol=0, checkpoint=folder)
    return choose_k(model, X, [2, 3], n_splits=2, random_state=0, n_jobs=n_jobs)


CALLS = {
    "coupled mixtures": fit(of_rows, X),
    "coupled views": fit(lambda: of_rows(family="multinomial"), VIEWS),
    "coupled, annealed": fit(lambda: of_rows(beta=0.7, patience=2), X),
    "coupled aspects": fit(aspects, X),
    "held-out counts": fit(lambda: aspects(coupling="xy", validation=HELD_OUT, patience=1), X),
    "aspects alone": fit(lambda: aspects(coupling=None, rounds=1), X),
    "coupled traffic": fit(
        lambda: TrafficModel(2, coupling="x", max_iter=3, random_state=0), TRIPS
    ),
    "calibrated": fit(lambda: classes(calibrate=True), VIEWS, Y),
    "sizes": fit(lambda: classes(components_per_class=[1, 2]), X, Y),
    "sizes by leave-one-out": fit(
        lambda: classes(components_per_class=[1, {0: 2}], cv="loo"), X, Y
    ),
    "weight": fit(lambda: classes(unlabeled_weight="auto"), VIEWS, Y),
    "pool": pool,
    "stability": runs_of,
    "choose_k": sizes_of,
}
FITTED = (
    *("weights_", "x_given_h_", "y_given_h_", "alpha_", "beta_", "labels_", "objective_", "kl_"),
    *("history_", "runs_", "transition_", "cv_results_", "calibration_", "pool_", "held_out_"),
    *("labels", "row_trust", "agreement", "others", "table", "best", "possible"),
)


def told(value):
    """Return a value as plain lists and texts, without seconds."""
    if isinstance(value, dict):
        return {name: told(part) for name, part in value.items() if name != "seconds"}
    if isinstance(value, list | tuple):
        return [told(part) for part in value]
    return (value.dtype.str, value.tolist()) if isinstance(value, np.ndarray) else repr(value)


def results(model):
    return {name: told(getattr(model, name)) for name in FITTED if hasattr(model, name)}


def until_the_end(call, folder, n_writes, monkeypatch, n_jobs=1):
    """Stop a call at a write again and again, until it comes to its end; return how often."""
    real, n_stops = kept.write_archive, 0
    while True:
        left = [n_writes]

        def write(*args, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise Stopped
            return real(*args)

        monkeypatch.setattr(kept, "write_archive", write)
        try:
            return call(folder, n_jobs), n_stops
        except Stopped:
            n_stops += 1
        finally:
            monkeypatch.setattr(kept, "write_archive", real)


@pytest.mark.parametrize("name", CALLS)
def test_same_bits_as_without_stops(name, tmp_path, monkeypatch):
    call, folder = CALLS[name], tmp_path / "state"
    found, n_stops = until_the_end(call, folder, 3, monkeypatch)
    assert n_stops > 1
    expected = results(call(None, 1))
    assert len(expected) > 2
    assert results(found) == expected
    assert not folder.exists()


@pytest.mark.parametrize("name", ["coupled mixtures", "coupled aspects", "stability"])
def test_same_bits_with_other_threads(name, tmp_path, monkeypatch):
    call, folder = CALLS[name], tmp_path / "state"
    found, n_stops = until_the_end(call, folder, 7, monkeypatch, n_jobs=2)
    assert n_stops > 0
    assert results(found) == results(call(None, 1))


def stop_at(call, folder, n_writes, monkeypatch):
    """Stop a call at a write."""
    with stopped_after_writes(n_writes, monkeypatch), pytest.raises(Stopped):
        call(folder, 1)


def counting(monkeypatch, name="write_archive"):
    """Return a list that grows with every file that is written."""
    real, seen = kept.write_archive, []

    def write(path, *args):
        seen.append(path.name)
        return real(path, *args)

    monkeypatch.setattr(kept, name, write)
    return seen


@pytest.mark.parametrize("name", ["coupled aspects", "sizes", "pool", "choose_k"])
def test_what_was_done_is_not_done_again(name, tmp_path, monkeypatch):
    call = CALLS[name]
    with monkeypatch.context() as patched:
        whole_call = counting(patched)
        call(tmp_path / "whole", 1)
    n_writes = len(whole_call)
    stop_at(call, tmp_path / "state", n_writes * 2 // 3, monkeypatch)
    rest = counting(monkeypatch)
    call(tmp_path / "state", 1)
    assert len(rest) < n_writes * 2 // 3


def test_files_of_earlier_phases_go(tmp_path, monkeypatch):
    call = fit(lambda: aspects(rounds=4), X)
    with monkeypatch.context() as patched:
        names = counting(patched)
        call(tmp_path / "whole", 1)
    stop_at(call, tmp_path / "state", len(names) - 1, monkeypatch)
    left = {path.name for path in (tmp_path / "state").glob("*.zip")}
    assert {"run-0-4.zip", "run-0-3.zip", "coupling-0.zip", "coupling-3.zip"} <= left
    assert not left & {"run-0.zip", "run-1.zip", "run-0-1.zip", "run-0-2.zip"}


def test_only_the_best_candidate_stays_on_the_disk(tmp_path, monkeypatch):
    call = fit(lambda: classes(components_per_class=[1, 2, 3, {0: 2}]), X, Y)
    with monkeypatch.context() as patched:
        names = counting(patched)
        call(tmp_path / "whole", 1)
    stop_at(call, tmp_path / "state", names.index("done-size-2.zip") + 2, monkeypatch)
    folders = {path.name for path in (tmp_path / "state").glob("*.fit")}
    assert len(folders & {"size-0.fit", "size-1.fit", "size-2.fit"}) == 1


# -- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("coupled aspects", {"rounds": 3}, "rounds was 2 and is 3"),
        ("coupled aspects", {"max_iter": 4}, "max_iter was 3 and is 4"),
        ("coupled aspects", {"random_state": 1}, "other seeds"),
        ("coupled mixtures", {"n_components": 4}, "n_components was 3 and is 4"),
        ("sizes", {"cv": 3}, "cv was 2 and is 3"),
        ("sizes", {"max_iter": 3}, "max_iter was 2 and is 3"),
        ("sizes", {"random_state": 1}, "random_state was 0 and is 1"),
    ],
)
def test_other_parameters_are_refused(name, change, message, tmp_path, monkeypatch):
    models = {
        "coupled aspects": (aspects, (X,)),
        "coupled mixtures": (of_rows, (X,)),
        "sizes": (lambda: classes(components_per_class=[1, 2]), (X, Y)),
    }
    model, data = models[name]
    stop_at(CALLS[name], tmp_path / "state", 5, monkeypatch)
    with pytest.raises(ValueError, match=rf"to another fit \(.*{message}.*\); delete the folder"):
        fit(lambda: model().set_params(**change), *data)(tmp_path / "state", 1)


@pytest.mark.parametrize("name", ["coupled aspects", "sizes"])
def test_other_data_are_refused(name, tmp_path, monkeypatch):
    stop_at(CALLS[name], tmp_path / "state", 5, monkeypatch)
    other = X + np.eye(*X.shape, dtype=int)
    call = (
        fit(aspects, other)
        if name == "coupled aspects"
        else fit(lambda: classes(components_per_class=[1, 2]), other, Y)
    )
    with pytest.raises(ValueError, match=r"to another fit .*other data"):
        call(tmp_path / "state", 1)


def test_a_last_phase_may_be_longer(tmp_path, monkeypatch):
    longer = fit(lambda: of_rows(max_iter=6), X)
    stop_at(CALLS["coupled mixtures"], tmp_path / "state", 9, monkeypatch)
    assert results(longer(tmp_path / "state", 1)) == results(longer(None, 1))


@pytest.mark.parametrize(
    "call",
    [
        lambda place: classes(calibrate=True, random_state=None, checkpoint=place).fit(X, Y),
        lambda place: PooledClassifier(MixtureClassifier(checkpoint=place)).fit(X, Y),
        lambda place: stability(MixtureClusterer(3, checkpoint=place), X),
        lambda place: choose_k(MixtureClusterer(3, checkpoint=place), X),
    ],
)
def test_several_fits_need_a_seed(call, tmp_path):
    with pytest.raises(ValueError, match=r"needs random_state to be a number.*set random_state=0"):
        call(tmp_path / "state")
    assert not (tmp_path / "state").exists()


def test_files_of_others_stay(tmp_path):
    (tmp_path / "mine.zip").write_text("mine")
    (tmp_path / "mine.fit").mkdir()
    (tmp_path / "mine.fit" / "notes.txt").write_text("mine")
    CALLS["sizes"](tmp_path, 1)
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["mine.fit", os.path.join("mine.fit", "notes.txt"), "mine.zip"]


@pytest.mark.parametrize("name", ["run-0-1.zip", "coupling-0.zip", "run-0.zip"])
def test_a_damaged_file_is_refused_with_advice(name, tmp_path, monkeypatch):
    folder = tmp_path / "state"
    stop_at(CALLS["coupled aspects"], folder, 8 if name == "run-0.zip" else 12, monkeypatch)
    if name == "run-0.zip":
        for path in folder.glob("run-*-1.zip"):
            path.unlink()
    (folder / name).write_bytes(b"not a zip")
    with pytest.raises(ValueError, match=r"is damaged .*delete (this file|the folder)"):
        CALLS["coupled aspects"](folder, 1)


@pytest.mark.parametrize("change", [{"kl_before": "x"}, {"rounds": [3]}, {"best": [1]}])
def test_a_forged_journal_is_refused(change, tmp_path, monkeypatch):
    folder = tmp_path / "state"
    stop_at(CALLS["held-out counts"], folder, 12, monkeypatch)
    for path in folder.glob("run-*.zip"):
        meta, arrays = read_archive(path)
        meta["notes"] |= change
        write_archive(path, meta, arrays)
    with pytest.raises(ValueError, match="delete its folder"):
        CALLS["held-out counts"](folder, 1)


# -- disks --------------------------------------------------------------------------------------


def full_disk(monkeypatch, n_calls):
    """Let the disk be full from some call on; return how often something was refused."""
    real, calls = os.fsync, [0, 0]

    def fsync(handle):
        calls[0] += 1
        if calls[0] > n_calls:
            calls[1] += 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle)

    monkeypatch.setattr(whole.os, "fsync", fsync)
    return calls


@pytest.mark.parametrize("name", ["coupled mixtures", "coupled aspects", "sizes", "stability"])
def test_a_full_disk_is_one_warning(name, tmp_path, monkeypatch):
    call = CALLS[name]
    expected = results(call(None, 1))
    for n_calls in (1, 2, 5, 8):
        with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            calls = full_disk(patched, n_calls)
            found = call(tmp_path / "state", 1)
        texts = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
        assert calls[1] > 0
        assert len(texts) == 1
        assert "No space left on device" in texts[0]
        assert "the fit goes on, and what was written before is kept" in texts[0]
        assert results(found) == expected


@pytest.mark.parametrize("name", ["coupled mixtures", "held-out counts", "sizes", "pool"])
@pytest.mark.parametrize("n_calls", [1, 3, 6, 10])
def test_what_was_written_before_the_disk_was_full_can_be_used(
    name, n_calls, tmp_path, monkeypatch
):
    call, folder = CALLS[name], tmp_path / "state"
    with monkeypatch.context() as patched:
        patched.setattr(kept, "warn_user", lambda *args: None)
        full_disk(patched, n_calls)
        patched.setattr(kept.Kept, "clear", stops)
        with pytest.raises(Stopped):
            call(folder, 1)
    assert results(call(folder, 1)) == results(call(None, 1))
    assert not folder.exists()


def stops(self):
    """Stop at the last moment, with everything still there; parts are cleared by the whole."""
    if not self.is_part:
        raise Stopped


def test_a_full_disk_at_the_start_is_an_error(tmp_path, monkeypatch):
    full_disk(monkeypatch, 0)
    with pytest.raises(OSError, match="No space left"):
        CALLS["coupled aspects"](tmp_path / "state", 1)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("stopped", [False, True])
def test_a_disk_that_has_no_room_for_the_lock_is_an_error(stopped, tmp_path, monkeypatch):
    call, folder = CALLS["coupled aspects"], tmp_path / "state"
    if stopped:
        stop_at(call, folder, 4, monkeypatch)
    before = {path.name: path.read_bytes() for path in folder.glob("*.zip")}

    class Full(_lock.HeldFile):
        def write(self, data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(_lock, "HeldFile", Full)
        with pytest.raises(OSError, match=r"No space left on device: '.*state.\.coem-lock'"):
            call(folder, 1)
    assert folder.exists() == stopped
    assert {path.name: path.read_bytes() for path in folder.glob("*")} == before
    assert results(call(folder, 1)) == results(call(None, 1))


# -- stops after a round ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["coupled mixtures", "coupled aspects", "sizes", "stability"])
def test_a_fit_that_is_asked_stops_after_the_round(name, tmp_path, monkeypatch):
    call, folder, real = CALLS[name], tmp_path / "state", checkpoint.Checkpoint._packed
    monkeypatch.setattr(checkpoint, "THRIFT", 1e9)
    seen = []

    def packed(self, *args):
        seen.append(self)
        assert stopping.ask()
        return real(self, *args)

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint.Checkpoint, "_packed", packed)
        try:
            with pytest.raises(stopping.StoppedAfterRound):
                call(folder, 1)
        finally:
            stopping.forget()
    assert len(seen) == 1
    assert kept.has_state(folder)
    assert not stopping.ask()  # no fit is under way
    stopping.forget()
    assert results(call(folder, 1)) == results(call(None, 1))
