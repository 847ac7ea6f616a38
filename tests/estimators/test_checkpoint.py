"""A fit that was stopped goes on where it was, and ends with the same bits."""

import errno
import os
import pickle
import subprocess
import sys
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from coem import HiddenMarkovModel, MixtureClassifier, MixtureClusterer, Views
from coem.engine import LocalEngine
from coem.families import Gaussian, MixtureOf
from coem.io import checkpoint, kept, read_archive, write_archive
from coem.io._lock import FolderLock, fcntl
from coem.io.fingerprint import fingerprint
from coem.io.packing import flat_theta
from coem.kernels.counts import is_table
from coem.schedules import Geometric, Linear, Steps

FAMILIES = {"words": "multinomial", "tags": "bernoulli", "place": Gaussian("diag")}
NESTED = {name: MixtureOf(family) for name, family in FAMILIES.items()}


class Stopped(Exception):
    pass


class Breaking(LocalEngine):
    """An engine that fails after some calls, as a machine would."""

    def __init__(self, calls, n_jobs=None):
        super().__init__(n_jobs)
        self.calls = calls

    def open_parts(self, latent, parts, theta):
        session = super().open_parts(latent, parts, theta)
        for name in ("e_step", "m_step"):
            setattr(session, name, self.counted(getattr(session, name)))
        return session

    def counted(self, step):
        def work(*args):
            self.calls -= 1
            if self.calls < 0:
                raise Stopped
            return step(*args)

        return work


@pytest.fixture(autouse=True)
def write_every_round(monkeypatch):
    monkeypatch.setattr(checkpoint, "THRIFT", 0)


@pytest.fixture(scope="module")
def views():
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 3, 90)
    words = rng.poisson(np.exp(rng.standard_normal((3, 12)))[centres])
    words[4] = 0
    tags = rng.random((90, 7)) < rng.random((3, 7))[centres]
    return Views(
        words=words, tags=tags * 1.0, place=rng.standard_normal((90, 2)) + centres[:, None]
    )


CASES = {
    "one view": ({}, ["words"]),
    "double": ({"dtype": np.float64}, ["words"]),
    "restarts": ({"n_init": 3}, ["words"]),
    "co-EM": ({"family": FAMILIES, "eta": Linear(1, 0, 4)}, list(FAMILIES)),
    "joint": ({"family": FAMILIES, "coupling": "joint"}, list(FAMILIES)),
    "annealed": ({"beta": Geometric(0.1, 1.5)}, ["words"]),
    "patience": ({"family": FAMILIES, "patience": 3}, list(FAMILIES)),
    "mixtures in components": ({"family": NESTED}, list(FAMILIES)),
    "per view": ({"family": FAMILIES, "weights": "per_view"}, list(FAMILIES)),
}


@pytest.mark.parametrize("calls", [1, 4, 9])
@pytest.mark.parametrize("case", CASES)
def test_same_bits_as_without_a_stop(case, calls, views, tmp_path):
    params, names = CASES[case]
    X = views[names]
    params = {"n_components": 3, "random_state": 0, "tol": 0, "max_iter": 12} | params
    if "family" in params:
        params["family"] = {name: params["family"][name] for name in names}
    whole = MixtureClusterer(**params).fit(X)
    model = MixtureClusterer(**params, checkpoint=tmp_path / "run", engine=Breaking(calls))
    with pytest.raises(Stopped):
        model.fit(X)
    resumed = model.set_params(engine=None).fit(X)
    assert_same(whole, resumed, names)
    assert not (tmp_path / "run").exists()


def assert_same(whole, resumed, names):
    assert [r.objective for r in whole.history_] == [r.objective for r in resumed.history_]
    assert [r.objective for r in whole.runs_] == [r.objective for r in resumed.runs_]
    np.testing.assert_array_equal(whole.weights_, resumed.weights_)
    np.testing.assert_array_equal(whole.labels_, resumed.labels_)
    for name in names:
        pair = [flat_theta((model.theta_[name],)) for model in (whole, resumed)]
        for ours, theirs in zip(*pair, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        assert type(whole.theta_[name]) is type(resumed.theta_[name])
    pickle.dumps(resumed)


def test_the_rounds_before_the_stop_are_not_run_again(views, tmp_path):
    model = MixtureClusterer(3, random_state=0, tol=0, max_iter=8, checkpoint=tmp_path)
    with pytest.raises(Stopped):
        model.set_params(engine=Breaking(6)).fit(views["words"])
    meta, _ = read_archive(tmp_path / "run-0.zip")
    done = len(meta["rounds"])
    assert done > 2
    counting = Breaking(1000)
    model.set_params(engine=counting).fit(views["words"])
    fresh = Breaking(1000)
    MixtureClusterer(3, random_state=0, tol=0, max_iter=8, engine=fresh).fit(views["words"])
    assert fresh.calls < counting.calls


def test_restarts_that_had_ended_are_kept(views, tmp_path):
    params = {"n_components": 3, "random_state": 0, "n_init": 4, "max_iter": 30, "tol": 1e-4}
    whole = MixtureClusterer(**params).fit(views["words"])
    model = MixtureClusterer(**params, checkpoint=tmp_path, engine=Breaking(12))
    with pytest.raises(Stopped):
        model.fit(views["words"])
    assert len(list(tmp_path.glob("run-*.zip"))) > 1
    assert_same(whole, model.set_params(engine=None, n_jobs=2).fit(views["words"]), ["view0"])


def test_parameters_of_a_finished_run_are_tables_of_the_kernels(views, tmp_path):
    model = MixtureClusterer(3, random_state=0, tol=0, max_iter=3, checkpoint=tmp_path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MixtureClusterer, "_set_theta", stops)
        with pytest.raises(Stopped):
            model.fit(views["words"])
    assert is_table(model.fit(views["words"]).theta_["view0"])  # a model file has another mark


def stops(*args):
    raise Stopped


def test_a_run_may_go_on_for_longer(views, tmp_path):
    params = {"n_components": 3, "random_state": 0, "tol": 0}
    model = MixtureClusterer(**params, max_iter=9, checkpoint=tmp_path, engine=Breaking(8))
    with pytest.raises(Stopped):
        model.fit(views["words"])
    longer = model.set_params(max_iter=15, engine=None).fit(views["words"])
    assert_same(MixtureClusterer(**params, max_iter=15).fit(views["words"]), longer, ["view0"])


def test_no_seed_takes_that_of_the_stopped_fit(views, tmp_path):
    model = MixtureClusterer(3, tol=0, max_iter=9, checkpoint=tmp_path, engine=Breaking(6))
    with pytest.raises(Stopped):
        model.fit(views["words"])
    _, arrays = read_archive(tmp_path / "plan.zip")
    model.set_params(engine=None).fit(views["words"])
    assert model.runs_[0].seed == arrays["seeds"][0]


def test_classifier(views, tmp_path):
    y = np.where(np.arange(90) % 5, -1, np.arange(90) % 3)
    whole = MixtureClassifier(tol=0, max_iter=9).fit(views["words"], y)
    model = MixtureClassifier(tol=0, max_iter=9, checkpoint=tmp_path, engine=Breaking(6))
    with pytest.raises(Stopped):
        model.fit(views["words"], y)
    assert_same(whole, model.set_params(engine=None).fit(views["words"], y), ["view0"])


@pytest.fixture
def stopped(views, tmp_path):
    model = MixtureClusterer(3, random_state=0, tol=0, max_iter=9, checkpoint=tmp_path / "run")
    with pytest.raises(Stopped):
        model.set_params(engine=Breaking(6)).fit(views["words"])
    return model.set_params(engine=None), tmp_path / "run"


@pytest.mark.parametrize("change", [{"n_components": 4}, {"random_state": 1}, {"eta": 0.5}])
def test_another_fit_is_refused(change, stopped, views):
    model, folder = stopped
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ValueError, match=r"to another fit .*delete the folder"):
        model.set_params(**change).fit(views["words"])
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}


def many_states(change):
    transmat = np.full((40, 40), 1 / 40)
    transmat[20, 20] += change  # in the place that a printed array leaves out
    transmat[20, 21] -= change
    return transmat


@pytest.mark.parametrize("place", ["transmat", "transmat_prior"])
def test_other_arrays_of_parameters_are_refused(place, tmp_path):
    X = np.random.default_rng(0).standard_normal((120, 1))
    values = {"transmat": many_states, "transmat_prior": lambda change: 2 + many_states(change)}
    model = HiddenMarkovModel(40, family="gaussian", random_state=0, tol=0, max_iter=4)
    model.set_params(checkpoint=tmp_path / "run", **{place: values[place](0.0)})
    with pytest.raises(Stopped):
        model.set_params(engine=Breaking(3)).fit(X)
    model.set_params(engine=None)
    with pytest.raises(ValueError, match="to another fit"):
        model.set_params(**{place: values[place](0.01)}).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # states without rows
        model.set_params(**{place: values[place](0.0).copy()}).fit(X)  # equal, but another object


@dataclass(frozen=True)
class Held:
    values: object


@pytest.mark.parametrize("hold", [lambda x: x, lambda x: {"a": [x]}, Held, pd.DataFrame])
def test_fingerprints_see_all_digits_and_entries(hold):
    one = np.full((50, 50), 1 / 3)
    digits, places, shape = one + 1e-12, one.copy(), one.reshape(25, 100)
    places[25, 25] = 7.0
    values = [one, digits, places, shape, one.astype(np.float32)]
    values += [] if hold is pd.DataFrame else [sp.csr_matrix(one), sp.csr_matrix(digits)]
    found = [fingerprint({"p": hold(value)}, []) for value in values]
    assert len(set(found)) == len(values)
    assert fingerprint({"p": hold(one.copy(order="F"))}, []) == found[0]


def test_other_data_is_refused(stopped, views):
    model, _ = stopped
    X = views["words"].copy()
    X[0, 0] += 1
    with pytest.raises(ValueError, match="to another fit"):
        model.fit(X)


def test_another_start_is_refused(views, tmp_path):
    warm = MixtureClusterer(3, random_state=0, tol=0, max_iter=2).fit(views["words"])
    cold = MixtureClusterer(3, random_state=1, tol=0, max_iter=2).fit(views["words"])
    model = MixtureClusterer(3, init=warm, tol=0, max_iter=9, checkpoint=tmp_path)
    with pytest.raises(Stopped):
        model.set_params(engine=Breaking(6)).fit(views["words"])
    with pytest.raises(ValueError, match="to another fit"):
        model.set_params(engine=None, init=cold).fit(views["words"])


@pytest.mark.parametrize("keep", [0, 10, 400, 0.5, -1])
def test_a_damaged_file_is_named(keep, stopped, views):
    model, folder = stopped
    path = folder / "run-0.zip"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(ValueError, match=r"run-0.zip is damaged"):
        model.fit(views["words"])


def test_other_components_in_a_file_are_refused(stopped, views):
    model, folder = stopped
    meta, arrays = read_archive(folder / "run-0.zip")
    for name in list(arrays):
        if name.startswith("theta.0"):
            arrays[name] = arrays[name][:2]
    write_archive(folder / "run-0.zip", meta, arrays)
    with pytest.raises(ValueError, match="3 components"):
        model.fit(views["words"])


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.zip"
    write_archive(path, {"a": 1}, {"x": np.arange(3)})
    with pytest.raises(ValueError, match="Object arrays"):
        write_archive(path, {"a": 2}, {"x": np.array([object()])})
    meta, arrays = read_archive(path)
    assert meta == {"a": 1}
    assert arrays["x"].tolist() == [0, 1, 2]
    assert [p.name for p in tmp_path.iterdir()] == ["file.zip"]


def member(data):
    def write(archive):
        archive.writestr("meta.json", "{}")
        archive.writestr("x.npy", data)

    return write


HEADER = (
    b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }"
)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((HEADER % b"1000000000000").ljust(127) + b"\n", "promises"),
        ((HEADER % b"2").replace(b"<f8", b"|O").ljust(127) + b"\n" + b"x" * 16, "promises"),
        (b"\x93NUMPY\x09\x00", "version"),
        (b"cos\nsystem\n(S'true'\ntR.", "magic"),
    ],
)
def test_a_forged_array_is_refused(data, message, tmp_path):
    path = tmp_path / "file.zip"
    with zipfile.ZipFile(path, "w") as archive:
        member(data)(archive)
    with pytest.raises(ValueError, match=message):
        read_archive(path)


def test_compressed_members_are_refused(tmp_path):
    path = tmp_path / "file.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("meta.json", "{}")
    with pytest.raises(ValueError, match="compressed"):
        read_archive(path)


@pytest.mark.parametrize("path", [3, ""])
def test_what_is_no_path(path, views):
    with pytest.raises(ValueError, match="checkpoint must be None or the path of a folder"):
        MixtureClusterer(3, checkpoint=path).fit(views["words"])


def test_a_file_is_no_folder(views, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is a file"):
        MixtureClusterer(3, checkpoint=tmp_path / "file").fit(views["words"])


def test_other_files_in_the_folder_stay(views, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    MixtureClusterer(3, tol=0, max_iter=3, checkpoint=tmp_path).fit(views["words"])
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_family_with_an_unnamed_tuple_says_what_it_needs():
    class Odd(Gaussian):
        theta_type = None

    with pytest.raises(ValueError, match="set its theta_type"):
        Odd().restore([np.ones(2), np.ones(2)])


def test_a_stop_while_calibrating_keeps_the_fit(views, tmp_path):
    y = np.where(np.arange(90) % 3, -1, np.arange(90) // 3 % 3)
    params = {"tol": 0, "max_iter": 5, "calibrate": True, "components_per_class": {np.int64(1): 2}}
    model = MixtureClassifier(**params, random_state=0, checkpoint=tmp_path / "run")
    with pytest.raises(Stopped):
        model.set_params(engine=Breaking(12)).fit(views["words"], y)
    assert (tmp_path / "run" / "fit.fit" / "run-0.zip").exists()
    model.set_params(engine=None).fit(views["words"], y)
    assert not (tmp_path / "run").exists()


# -- locks --------------------------------------------------------------------------------------


def test_a_folder_in_use_is_refused(stopped, views):
    model, folder = stopped
    held = FolderLock(folder)
    held.take()
    with pytest.raises(ValueError, match=rf"run is in use: process {os.getpid()} .*folder of its"):
        model.fit(views["words"])
    held.release()
    model.fit(views["words"])
    assert not folder.exists()


HOLD = """
import sys
from pathlib import Path
from coem.io._lock import FolderLock
held = FolderLock(Path(sys.argv[1]))
held.take()
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.skipif(fcntl is None, reason="this system locks no folders")
def test_the_lock_of_a_killed_process_is_gone(stopped, views):
    model, folder = stopped
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"locked\n"
        with pytest.raises(ValueError, match=f"process {other.pid} fits with it now"):
            model.fit(views["words"])
        other.kill()
    assert (folder / ".coem-lock").exists()
    model.fit(views["words"])
    assert not folder.exists()


def test_fits_that_share_a_folder_end_well_or_are_refused(views, tmp_path):
    params = {"n_components": 3, "random_state": 0, "tol": 0, "max_iter": 4}
    whole = MixtureClusterer(**params).fit(views["words"])

    def fit(number):
        try:
            return MixtureClusterer(**params, checkpoint=tmp_path / "run").fit(views["words"])
        except ValueError as error:
            assert "in use" in str(error)  # noqa: PT017
            return None

    with ThreadPoolExecutor(4) as pool:
        fitted = [model for model in pool.map(fit, range(16)) if model is not None]
    assert fitted
    assert {model.objective_ for model in fitted} == {whole.objective_}
    assert not (tmp_path / "run").exists()


def bare(folder, place):
    place.mkdir()


def link(folder, place):
    (folder / "mine.txt").write_text("mine")
    place.symlink_to("mine.txt")


def second_name(folder, place):
    (folder / "mine.txt").write_text("mine")
    place.hardlink_to(folder / "mine.txt")


STRANGE = {
    "folder": bare,
    "link": link,
    "second name": second_name,
    "link to nowhere": lambda folder, place: place.symlink_to("nowhere"),
    "fifo": lambda folder, place: os.mkfifo(place),
}


@pytest.mark.skipif(fcntl is None, reason="this system locks no folders")
@pytest.mark.parametrize("kind", STRANGE)
def test_what_is_no_lock_is_refused_and_stays(kind, views, tmp_path):
    STRANGE[kind](tmp_path, tmp_path / ".coem-lock")
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(ValueError, match=r"coem-lock is not a regular file.*; delete it, or"):
        MixtureClusterer(3, max_iter=2, checkpoint=tmp_path).fit(views["words"])
    assert sorted(os.listdir(tmp_path)) == before
    assert not (tmp_path / "mine.txt").exists() or (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("to", ["lock", "nowhere"])
def test_files_of_the_user_called_lock_stay(to, views, tmp_path):
    if to == "lock":
        (tmp_path / "lock").write_text("mine")
    else:
        (tmp_path / "lock").symlink_to(to)
    MixtureClusterer(3, tol=0, max_iter=2, checkpoint=tmp_path).fit(views["words"])
    assert os.listdir(tmp_path) == ["lock"]
    assert to == "nowhere" or (tmp_path / "lock").read_text() == "mine"


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "run").symlink_to("nowhere")
    with pytest.raises(ValueError, match=r"run cannot be made .*a link that .*choose another one"):
        FolderLock(tmp_path / "run").take()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ValueError, match=r"loop cannot be made .*a link that .*choose another one"):
        FolderLock(tmp_path / "loop").take()


@pytest.mark.skipif(fcntl is None, reason="this system locks no folders")
def test_a_file_system_without_locks(views, tmp_path, monkeypatch):
    def none(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    MixtureClusterer(3, tol=0, max_iter=2, checkpoint=tmp_path / "run").fit(views["words"])
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(fcntl is None, reason="this system locks no folders")
def test_ctrl_c_right_after_the_lock_unlocks_the_folder(views, tmp_path, monkeypatch):
    flock = fcntl.flock

    def interrupted(*args):
        flock(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", interrupted)
        with pytest.raises(KeyboardInterrupt):
            FolderLock(tmp_path).take()
    FolderLock(tmp_path).take()  # which ends with its object
    MixtureClusterer(3, tol=0, max_iter=2, checkpoint=tmp_path).fit(views["words"])


# -- fingerprints -------------------------------------------------------------------------------


class Plain:
    """A schedule of a user's own, whose repr tells nothing."""

    def __init__(self, values):
        self.values = np.asarray(values)

    def __repr__(self):
        return "Plain"


def of_closure(factor):
    return lambda t: factor * t


def of_default(factor):
    def schedule(t, by=factor):
        return t * by

    return schedule


class Tagged(float):
    """A number with more to it."""


class Slotted:
    __slots__ = ("values",)


def tagged(value, tag):
    number = Tagged(value)
    number.tag = tag
    return number


def slotted(x):
    value = Slotted()
    value.values = [x]
    return value


def recursive(x):
    def schedule(t):
        return x if t < 1 else schedule(t - 1)

    return schedule


def holding_itself(x):
    values = {"x": x}
    values["all"] = [values]
    return values


def method(x):
    value = Plain([x])
    value.own = value.__repr__  # holds itself
    return value.own


SAME_LOOKS = {
    "method": method,
    "method of C": lambda x: str(x).index,
    "nested function": lambda x: eval(f"lambda t: (lambda: {x})()"),
    "number with attributes": lambda x: tagged(1.0, x),
    "number of a kind of its own": lambda x: tagged(x, "same"),
    "mask": lambda x: np.ma.masked_array([1.0, 2.0], [x > 0.2, True]),
    "recursive": recursive,
    "holding itself": holding_itself,
    "slots": slotted,
    "ufunc": lambda x: np.exp if x == 0.25 else np.log,
    "names of fields": lambda x: np.zeros(2, [("a" if x == 0.25 else "b", float)]),
    "object": lambda x: Plain(np.full(2000, x)),
    "nested": lambda x: {"words": [Plain([x])]},
    "closure": of_closure,
    "default": of_default,
    "partial": lambda x: partial(max, x),
    "code": lambda x: eval(f"lambda t: t + {x}"),
    "set": lambda x: {x, "same"},
    "family": lambda x: Gaussian("diag", reg=x),
    "steps": lambda x: Steps(np.append(np.full(3000, 0.5), [x, 1.0])),
}


@pytest.mark.parametrize("case", SAME_LOOKS)
def test_fingerprints_see_what_a_repr_hides(case):
    make = SAME_LOOKS[case]
    one, same, other = (fingerprint({"p": make(x)}, []) for x in (0.25, 0.25, 0.125))
    assert one == same
    assert one != other


def test_numbers_of_other_types_differ():
    values = [0.5, np.float32(0.5), np.float64(0.5), Tagged(0.5), "0.5", np.array(0.5), True, 1]
    assert len({fingerprint({"p": value}, []) for value in values}) == len(values)


def test_fingerprints_are_the_same_in_another_process():
    """No address of an object is in them."""
    code = """
from tests.estimators.test_checkpoint import SAME_LOOKS, fingerprint
print(*(fingerprint({"p": make(0.25)}, []) for make in SAME_LOOKS.values()))
"""
    found = [fingerprint({"p": make(0.25)}, []) for make in SAME_LOOKS.values()]
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == found


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"n_components": 4}, "n_components was 3 and is 4"),
        ({"beta": Steps([0.5] * 40 + [0.75, 1.0])}, "other beta"),
        ({"eta": 0.5}, "eta was 1.0 and is 0.5"),
        ({"random_state": 1}, "other seeds"),
    ],
)
def test_a_refusal_tells_the_difference(change, told, views, tmp_path):
    model = MixtureClusterer(3, random_state=0, tol=0, max_iter=60, checkpoint=tmp_path)
    model.set_params(beta=Steps([0.5] * 40 + [0.25, 1.0]))
    with pytest.raises(Stopped):
        model.set_params(engine=Breaking(6)).fit(views["words"])
    with pytest.raises(ValueError, match=told):
        model.set_params(engine=None, **change).fit(views["words"])


# -- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plan.zip", "run-0.zip"])
def test_a_damaged_file_is_refused_with_advice(name, stopped, views):
    """Bytes cut off, changed, put in and taken out, at random."""
    model, folder = stopped
    path, rng = folder / name, np.random.default_rng(0)
    whole, (meta, _) = path.read_bytes(), read_archive(path)
    n_refused = 0
    for _ in range(400):
        path.write_bytes(damaged(whole, rng))
        try:
            assert kept.read(path, "delete it")[0] == meta  # a date, which nobody reads
        except ValueError as error:
            assert str(error).endswith("; delete it")  # noqa: PT017
            n_refused += 1
    assert n_refused > 300
    path.write_bytes(whole[:-30])
    with pytest.raises(ValueError, match=f"{name} is damaged.*delete .*begins again"):
        model.fit(views["words"])


def damaged(data, rng):
    """Return other bytes than those that are given."""
    place, kind = int(rng.integers(len(data))), rng.integers(4)
    noise = rng.integers(0, 256, int(rng.integers(1, 9)), dtype=np.uint8).tobytes()
    if kind == 0:
        return data[:place]
    if kind == 1:
        return data[:place] + bytes([data[place] ^ (1 << rng.integers(8))]) + data[place + 1 :]
    return data[:place] + (noise if kind == 2 else b"") + data[place + len(noise) :]


FORGED_SETTINGS = [{"n_components": 5}, {"n_components": ["a"]}, {"n_components": [1, 2]}, ["a"], 5]


@pytest.mark.parametrize("settings", FORGED_SETTINGS, ids=repr)
def test_a_forged_plan_is_refused_with_advice(settings, stopped, views):
    model, folder = stopped
    meta, arrays = read_archive(folder / "plan.zip")
    write_archive(folder / "plan.zip", meta | {"settings": settings}, arrays)
    with pytest.raises(ValueError, match=r"to another fit .*n_components.*; delete the folder"):
        model.set_params(n_components=4).fit(views["words"])


def test_forged_settings_are_not_shown(stopped, views):
    model, folder = stopped
    meta, arrays = read_archive(folder / "plan.zip")
    meta["settings"]["n_components"] = ["", "\x1b[2J"]
    write_archive(folder / "plan.zip", meta, arrays)
    with pytest.raises(ValueError, match=r"\(other n_components\)"):
        model.set_params(n_components=4).fit(views["words"])


@pytest.mark.parametrize("seeds", [np.array([0.5]), np.array(["a"]), np.array([-1])], ids=repr)
def test_forged_seeds_are_refused_with_advice(seeds, stopped, views):
    model, folder = stopped
    meta, _ = read_archive(folder / "plan.zip")
    write_archive(folder / "plan.zip", meta, {"seeds": seeds})
    with pytest.raises(ValueError, match=r"to another fit .*; delete the folder"):
        model.set_params(random_state=None).fit(views["words"])


FORGED_ROUNDS = {
    "n_initial_e_steps": 10**15,
    "fell": "x",
    "rounds": [5],
    "round": 7,
    "objective": None,
    "free_energy": 10**400,
    "log_likelihood": [1.0, 2.0, 3.0],
}


@pytest.mark.parametrize("name", FORGED_ROUNDS)
def test_a_forged_run_is_refused_with_advice(name, stopped, views):
    model, folder = stopped
    meta, arrays = read_archive(folder / "run-0.zip")
    place = meta if name in meta else meta["rounds"][0]
    place[name] = FORGED_ROUNDS[name]
    write_archive(folder / "run-0.zip", meta, arrays)
    with pytest.raises(ValueError, match=r"run-0.zip is damaged .*; delete this file"):
        model.fit(views["words"])
