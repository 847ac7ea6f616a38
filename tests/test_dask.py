"""Fits on a Dask cluster: two worker processes on this machine, on loopback."""

import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import coem
from coem import HiddenMarkovModel, MixtureClassifier, MixtureClusterer, Views, open_corpus
from coem.em import em
from coem.engine import LocalEngine, as_engine
from coem.families import Gaussian, Multinomial
from coem.io import checkpoint, kept
from coem.io.corpus_writer import CorpusWriter
from coem.kernels.counts import is_table, new_table
from coem.kernels.sparse_tables import SparseTable
from coem.protocols import Clock
from coem.records import watch
from tests.laws.test_latent_laws import CASES, ROUNDS, close, fit_on_one_engine
from tests.test_interrupts import when_freed

distributed = pytest.importorskip("distributed", reason="needs coem[dask]")
dask = pytest.importorskip("dask", reason="needs coem[dask]")
pytest.importorskip("dask.array", reason="needs coem[dask]")
pytest.importorskip("dask.bag", reason="needs coem[dask]")

from coem.engine import (  # noqa: E402
    _dask_cluster,
    _dask_data,
    _dask_session,
    _dask_shared,
    _dask_tasks,
)
from coem.engine._dask_parcels import Parcel, n_bytes  # noqa: E402
from coem.engine._dask_shared import CAN_SHARE, NotSharedError, SharedParcel  # noqa: E402
from coem.engine._dask_tree import fold, leaves, owners_of, plan  # noqa: E402
from coem.engine.dask import DaskEngine  # noqa: E402
from coem.engine.dask_rows import DaskRows  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    # Of sockets and processes that a cluster leaves to the garbage collector when it ends.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

LOCAL = {  # any free port: with None, each would want port 8787
    "dashboard_address": "127.0.0.1:0",
    "threads_per_worker": 1,
    "silence_logs": "CRITICAL",
}
N, K = 240, 3
SECONDS = 60  # after which a test does not wait any longer


@contextmanager
def two_workers(**settings):
    """Give a client of two worker processes."""
    cluster = distributed.LocalCluster(n_workers=2, processes=True, **LOCAL)
    client = distributed.Client(cluster, **settings)
    try:
        yield client
    finally:
        for open_one in (client, cluster):
            with suppress(Exception):  # Dask may stumble over workers that were killed
                open_one.close()


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture
def own_client():
    """A client of two workers that a test may kill: Dask does not always start them again."""
    with two_workers(set_as_default=False) as client:
        yield client


@pytest.fixture
def engine(client):
    return DaskEngine(client, n_parts=5)


def rows(seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(K, size=N)
    words = rng.poisson(np.exp(rng.standard_normal((K, 12)))[group]).astype(float)
    points = 3 * rng.standard_normal((K, 3))[group] + rng.standard_normal((N, 3))
    return group, sp.csr_matrix(words), points


GROUP, WORDS, POINTS = rows()
BOTH = Views(words=WORDS, points=POINTS)
BOUNDS = (0, 50, 51, 170, N)
FIT = {"n_components": K, "max_iter": 6, "tol": 0, "random_state": 0}


def blocks(X):
    return [X[lo:hi] for lo, hi in pairwise(BOUNDS)]


def corpus_of(X, path):
    writer = CorpusWriter(path)
    for block in blocks(X):
        writer.append(block)
    return open_corpus(path)


def parameters(model):
    return [np.asarray(part) for theta in model.theta_.values() for part in as_tuple(theta)]


def as_tuple(theta):
    return theta if isinstance(theta, tuple) else (theta,)


def same_bits(one, other):
    assert one.objective_ == other.objective_
    np.testing.assert_array_equal(one.labels_, other.labels_)
    for mine, theirs in zip(parameters(one), parameters(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def near(one, other):
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-9)
    np.testing.assert_array_equal(one.labels_, other.labels_)


def until_none(left, what):
    """Wait until nothing is left, which comes in a moment."""
    end = time.monotonic() + SECONDS
    while found := left():
        assert time.monotonic() < end, f"{what} are left: {found}"
        time.sleep(0.05)


def tasks(client):
    return client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))


def nothing_is_left(client):
    until_none(lambda: list(client.futures), "futures")
    until_none(lambda: tasks(client), "tasks of the scheduler")
    until_none(lambda: sum(client.run(_dask_tasks.n_kept).values()), "states on workers")


# -- engines agree -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "mixture co-em soft global shares",
        "mixture co-em soft uniform parameters",
        "mixture joint hard uniform shares",
        "mixture with blanks",
        "mixture with labels",
        "mixture of mixtures",
        "chain soft shares",
        "chain hard labels",
        "chain with blanks",
    ],
)
def test_a_cluster_finds_what_all_engines_find(client, name):
    latent, part, theta = CASES[name]()
    truth = fit_on_one_engine(name)
    with DaskEngine(client, n_parts=4) as engine:
        result = em(latent, engine.open_parts(latent, [part], theta), **ROUNDS)
    close(result.theta, truth.theta)
    for mine, theirs in zip(result.history, truth.history, strict=True):
        assert mine.objective == pytest.approx(theirs.objective, rel=1e-10)


@pytest.mark.parametrize("X", [WORDS, POINTS, BOTH], ids=["words", "points", "both"])
def test_a_fit_is_that_of_threads_and_has_the_same_bits_again(client, engine, X):
    alone = MixtureClusterer(**FIT).fit(X)
    fits = [MixtureClusterer(**FIT, engine=engine).fit(X) for _ in range(2)]
    near(fits[0], alone)
    same_bits(*fits)
    nothing_is_left(client)


def test_tables_that_list_words(engine):
    lists = {"family": Multinomial(dense_cells=0)}
    alone, spread = (MixtureClusterer(**FIT, **lists, engine=e).fit(WORDS) for e in (None, engine))
    assert isinstance(spread.theta_["view0"], SparseTable)
    near(spread, alone)


def test_the_bits_do_not_depend_on_the_number_of_workers(engine):
    fits = [MixtureClusterer(**FIT, engine=engine).fit(BOTH)]
    with (
        distributed.LocalCluster(n_workers=1, processes=False, **LOCAL) as small,
        distributed.Client(small, set_as_default=False) as one,
    ):
        fits.append(MixtureClusterer(**FIT, engine=DaskEngine(one, n_parts=5)).fit(BOTH))
    same_bits(*fits)


@pytest.mark.parametrize("init", ["random", "rows", "array"])
def test_starts(engine, init):
    given = np.random.default_rng(0).dirichlet(np.ones(K), N) if init == "array" else init
    models = [MixtureClusterer(**FIT, init=given, engine=e) for e in (None, engine)]
    near(*[model.fit(BOTH) for model in models])


def test_weights(engine):
    weight = np.random.default_rng(0).gamma(2.0, size=N)
    models = [MixtureClusterer(**FIT, engine=e) for e in (None, engine)]
    near(*[model.fit(BOTH, sample_weight=weight) for model in models])


def test_annealed_co_em_gathers_again_when_eta_moves(engine):
    settings = {"eta": coem.schedules.Linear(1.0, 0.5, 4), "beta": coem.schedules.Linear(0.5, 1, 3)}
    models = [MixtureClusterer(**FIT, **settings, engine=e) for e in (None, engine)]
    near(*[model.fit(BOTH) for model in models])


def test_a_classifier(engine):
    y = np.where(np.arange(N) % 9 == 0, GROUP, -1)
    models = [MixtureClassifier(max_iter=5, tol=0, engine=e) for e in (None, engine)]
    alone, spread = (model.fit(BOTH, y) for model in models)
    near(spread, alone)
    np.testing.assert_array_equal(spread.predict(BOTH), alone.predict(BOTH))


def test_a_hidden_markov_model_keeps_sequences_whole(engine):
    lengths = [7, 90, 1, 60, 40, 42]
    fits = [
        HiddenMarkovModel(K, max_iter=5, tol=0, random_state=0, engine=e).fit(BOTH, lengths=lengths)
        for e in (None, engine)
    ]
    near(fits[1], fits[0])
    np.testing.assert_allclose(fits[1].transmat_, fits[0].transmat_, rtol=1e-9)


def test_restarts_share_the_rows_that_were_sent(client, engine, monkeypatch):
    sent = count_sent(monkeypatch)
    settings = FIT | {"n_init": 3, "init": "random", "family": Gaussian("diag")}
    for n_jobs in (1, 2):  # one run after the other, and side by side
        spread = DaskEngine(client, n_jobs=n_jobs, n_parts=5)
        model = MixtureClusterer(**settings, engine=spread).fit(POINTS)
        near(model, MixtureClusterer(**settings).fit(POINTS))
    assert sum(size > POINTS.nbytes / 10 for size, everywhere in sent if not everywhere) == 2 * 5
    nothing_is_left(client)


def test_runs_are_coupled_by_posteriors_that_are_fetched(engine):
    settings = FIT | {"n_init": 2, "coupling_of_runs": coem.RunCoupling("rows", n_rounds=3)}
    one, other = (MixtureClusterer(**settings, engine=e).fit(BOTH) for e in (None, engine))
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-9)
    # Both runs end in the same groups, which have other numbers: rounding chooses between them.
    assert len({*zip(one.labels_.tolist(), other.labels_.tolist(), strict=True)}) == K


# -- what is sent ------------------------------------------------------------------------------


def count_sent(monkeypatch):
    """Return a list that takes the bytes of all that is sent, and whether it goes to all."""
    sent, send = [], _dask_cluster.Cluster.send

    def counting(self, values, workers=None):
        sent.extend((n_bytes(value.value), workers is None) for value in values)
        return send(self, values, workers)

    monkeypatch.setattr(_dask_cluster.Cluster, "send", counting)
    return sent


def count_tasks(monkeypatch):
    """Return a list that takes the number of branches of each step."""
    asked, start = [], _dask_cluster.Cluster.start_at_home

    def counting(self, function, homes, *items, **more):
        if function is _dask_tasks.work:
            asked.append(len(homes))
        return start(self, function, homes, *items, **more)

    monkeypatch.setattr(_dask_cluster.Cluster, "start_at_home", counting)
    return asked


def fetched_keys(dask_worker):
    """Return what a worker has fetched from other workers."""
    return [key for item in dask_worker.transfer_incoming_log for key in item["keys"]]


def test_each_table_is_sent_once_a_round(client, engine, monkeypatch):
    rng = np.random.default_rng(0)
    wide = Views(a=sp.random(N, 9000, 0.02, "csr", random_state=rng), b=rng.poisson(1.0, (N, 8000)))
    start = MixtureClusterer(**FIT | {"max_iter": 1}, evidence="fixed").fit(wide)
    sent = count_sent(monkeypatch)
    model = MixtureClusterer(**FIT, evidence="fixed", engine=engine, init=start)
    at = []
    with watch(lambda record: at.append(len(sent))):
        model.fit(wide)
    for log in client.run(fetched_keys).values():
        # A worker fetches nothing twice, except for a sum that another one was too busy to send.
        assert 0 < len(log) <= 1.05 * len({*log})
    tables = [part.nbytes for part in parameters(model)]
    for lo, hi in pairwise(at):  # the first round also sends the rows
        large = sorted(size for size, everywhere in sent[lo:hi] if size > 20_000)
        np.testing.assert_allclose(large, sorted(tables), rtol=0.05)
        assert all(everywhere for _, everywhere in sent[lo:hi])
        assert hi - lo == 2 * 2  # a table and the rest, per view


def in_pairs(items):
    """Return the tree of pairs of neighbours, pairs of these, and so on; the odd one waits."""
    while len(items) > 1:
        pairs = [*zip(items[::2], items[1::2], strict=False)]
        items = pairs if len(items) % 2 == 0 else [*pairs, items[-1]]
    return items[0]


@pytest.mark.parametrize("n_leaves", [1, 2, 3, 5, 6, 7, 8, 13, 16, 31])
@pytest.mark.parametrize("n_owners", [1, 2, 3, 5, 8, 40])
def test_whoever_adds_branches_the_tree_is_the_same(n_leaves, n_owners):
    owners = owners_of(["worker"] * n_leaves, {"worker": n_owners})
    the_tree_is_the_same(owners)
    homes = np.random.default_rng(n_leaves).choice(["a", "b", "c"], n_leaves).tolist()
    the_tree_is_the_same(owners_of(homes, {"a": n_owners, "b": 1, "c": 2}))


def the_tree_is_the_same(owners):
    n_leaves, n_owners = len(owners), len({*owners})
    branches, levels = plan(owners)
    assert all(len({*owners[lo:hi]}) == 1 for lo, hi in branches)
    found = [fold(lo, hi, lambda i: i, lambda a, b: (a, b)) for lo, hi in branches]
    for level in levels:
        found += [(found[a], found[b]) for a, b in level]
    assert found[-1] == in_pairs([*range(n_leaves)])
    assert len(branches) <= 2 * min(n_leaves, n_owners * n_leaves.bit_length())


@pytest.mark.parametrize("n_leaves", [1, 7, 64, 100])
def test_few_leaves_move_when_workers_go_and_come(n_leaves):
    four, three, back = list("aabbccdd"), list("aaccdd"), list("aaccddee")
    before = [four[i * len(four) // n_leaves] for i in range(n_leaves)]
    assert _dask_data.shared_out(before, four) == before
    without = _dask_data.shared_out(before, three)
    assert {*without} <= {*three}
    kept = [own == other for own, other in zip(before, without, strict=True) if own != "b"]
    assert all(kept)
    again = _dask_data.shared_out(without, back)
    share = 2 * -(-n_leaves // len(back))  # of two threads
    beyond = sum(max(n - share, 0) for n in Counter(without).values())
    moved = [own != other for own, other in zip(without, again, strict=True)]
    assert sum(moved) == beyond
    assert max(Counter(again).values()) <= share


def test_leaves_have_all_partitions_in_their_order():
    for n_parts in (1, 63, 127, 128, 200, 5000):
        cuts = leaves(n_parts)
        assert [i for lo, hi in cuts for i in range(lo, hi)] == [*range(n_parts)]
    assert leaves(127)[-1] == (126, 127)
    assert leaves(201)[-2:] == [(195, 198), (198, 201)]
    assert len(leaves(8000)) == 1000


def test_the_number_of_tasks_changes_no_bit(client, monkeypatch):
    """Neither where a step takes long, nor with leaves of several partitions."""
    monkeypatch.setattr("coem.engine._dask_tree.LEAVES", 2)
    monkeypatch.setattr("coem.engine._dask_tree.MOST", 3)
    asked = count_tasks(monkeypatch)
    fits = []
    for long in (100.0, 1e-9):
        monkeypatch.setattr(_dask_session, "LONG", long)
        fits.append(MixtureClusterer(**FIT, engine=DaskEngine(client, n_parts=17)).fit(BOTH))
    same_bits(*fits)
    near(fits[0], MixtureClusterer(**FIT).fit(BOTH))
    assert {*asked} == {4, 6}  # 17 partitions are 6 leaves


def test_parcels_put_arrays_in_order():
    table = new_table(3, 5000, np.float32)
    table[...] = np.arange(15000).reshape(3, 5000)
    odd = np.zeros(8 * 4000 + 1, dtype=np.uint8)[1:].view(np.float64)
    assert not odd.flags.aligned
    moved = pickle.loads(pickle.dumps(Parcel({"table": table, "odd": odd, "same": table}))).value
    assert is_table(moved["table"])
    assert moved["same"] is moved["table"]
    assert moved["odd"].flags.aligned
    np.testing.assert_array_equal(moved["table"], table)
    assert n_bytes(table) == pytest.approx(table.nbytes, rel=0.01)


needs_memory = pytest.mark.skipif(not CAN_SHARE, reason="needs memfd of Linux")


def small_table():
    table = new_table(3, 5000, np.float32)
    table[...] = np.arange(15000).reshape(3, 5000)
    return table


def elsewhere(shared):
    return pickle.loads(pickle.dumps(shared))


def reference():
    return elsewhere(SharedParcel(small_table()))


@needs_memory
@pytest.mark.parametrize("array", [small_table(), np.arange(6000.0).reshape(2, 3000)])
def test_shared_arrays_are_the_same_elsewhere(array):
    other = np.arange(1001, dtype=np.int64)[1:]
    shared = SharedParcel({"array": array, "other": other, "same": array, "small": np.ones(2)})
    found = elsewhere(shared).value
    np.testing.assert_array_equal(found["array"], array)
    np.testing.assert_array_equal(found["other"], other)
    np.testing.assert_array_equal(found["small"], np.ones(2))
    assert found["same"] is found["array"]
    assert is_table(found["array"]) == is_table(array)
    assert len(pickle.dumps(shared)) < 1500
    with pytest.raises(ValueError, match="read-only"):
        found["array"][0, 0] = 1
    reference = elsewhere(shared)
    del shared  # what another process has opened stays, and can be sent on
    np.testing.assert_array_equal(found["array"], array)
    third = elsewhere(reference)
    del reference
    np.testing.assert_array_equal(third.value["array"], array)
    del found, third
    gc.collect()
    assert shared_memory() == []


@needs_memory
@pytest.mark.parametrize(
    "make", [lambda: SharedParcel(small_table()), reference], ids=["parcel", "reference"]
)
def test_ctrl_c_while_shared_memory_is_freed_is_heard_and_leaves_none(make):
    last, shared = {1}, make()
    asked = when_freed(last)
    pickle.dumps(shared)
    before = len(shared_memory())
    held = [shared, last]  # which are freed from the end
    del shared, last
    with pytest.raises(KeyboardInterrupt):
        held.clear()
    assert asked() is None
    assert len(shared_memory()) < before


@needs_memory
def test_memory_of_another_process_is_not_taken_for_a_value(tmp_path):
    shared, other = SharedParcel(small_table()), SharedParcel(small_table())
    make, (_, *about) = shared.__reduce__()
    foreign = other.__reduce__()[1][0]
    short = tmp_path / "short"
    short.write_bytes(b"no table")
    for path in (foreign, str(short), str(tmp_path), str(tmp_path / "gone")):
        with pytest.raises(NotSharedError):
            assert make(path, *about).value is None


@needs_memory
def test_arrays_travel_if_there_is_no_room_to_share_them(monkeypatch):
    def full(name):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(os, "memfd_create", full)
    found = elsewhere(SharedParcel(small_table()))
    assert type(found) is Parcel
    np.testing.assert_array_equal(found.value, small_table())


def shared_memory():
    """Return the memory that this process shares with others."""
    places = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return [p for p in places if os.path.lexists(p) and "coem-arrays" in os.readlink(p)]


def hide_memory(dask_worker=None):
    """Let no other process find the memory of this one."""
    before, _dask_shared.HERE = _dask_shared.HERE, "/proc/0/fd"
    return before


def show_memory(before, dask_worker=None):
    _dask_shared.HERE = before


@needs_memory
def test_shared_arrays_are_freed_at_once(client, engine):
    """Also if Python does not look for cycles, here or on the workers."""
    gc.collect()
    client.run(gc.collect)
    gc.disable()
    client.run(gc.disable)
    try:
        MixtureClusterer(**FIT, engine=engine).fit(rows_of_many_words())
        assert engine._cluster.shares
        until_none(shared_memory, "shared arrays")
        until_none(lambda: any(client.run(shared_memory).values()), "shared arrays on workers")
    finally:
        client.run(gc.enable)
        gc.enable()


@needs_memory
@pytest.mark.parametrize("hidden", ["nothing", "tables", "sums"])
def test_processes_that_cannot_reach_memory_get_arrays_sent(client, engine, hidden):
    wide = rows_of_many_words()
    plain = MixtureClusterer(**FIT).fit(wide)
    at = []
    hide = {"tables": lambda f, *a: f(*a), "sums": client.run}.get(hidden, lambda f, *a: "")
    before = hide(hide_memory)
    before = next(iter(before.values())) if isinstance(before, dict) else before
    try:
        with watch(lambda record: at.append(len(shared_memory()))):
            near(MixtureClusterer(**FIT, engine=engine).fit(wide), plain)
    finally:
        hide(show_memory, before)
    assert engine._cluster.shares is (hidden == "nothing")
    assert (at[-1] > 0) is (hidden == "nothing")
    gc.collect()
    client.run(gc.collect)  # of errors, whose frames hold what was sent
    until_none(shared_memory, "shared arrays")
    until_none(lambda: any(client.run(shared_memory).values()), "shared arrays on workers")


def rows_of_many_words():
    return sp.random(N, 9000, 0.02, "csr", random_state=np.random.default_rng(0))


# -- where rows come from ----------------------------------------------------------------------


@pytest.mark.parametrize("stays", [True, False], ids=["kept", "loaded again"])
def test_a_corpus(client, tmp_path, monkeypatch, stays):
    if not stays:
        monkeypatch.setattr(_dask_data, "SHARE", 0.0)
    corpus = corpus_of(BOTH, tmp_path / "corpus")
    alone = MixtureClusterer(**FIT).fit(corpus)
    model = MixtureClusterer(**FIT, engine=client).fit(corpus)
    near(model, alone)
    np.testing.assert_allclose(model.predict_proba(corpus), alone.predict_proba(corpus), rtol=1e-9)
    nothing_is_left(client)


def test_a_corpus_with_a_relative_path(client, tmp_path, monkeypatch):
    corpus_of(WORDS, tmp_path / "corpus")
    monkeypatch.chdir(tmp_path)
    corpus = open_corpus("corpus")
    model = MixtureClusterer(**FIT, engine=client).fit(corpus)
    near(model, MixtureClusterer(**FIT).fit(corpus))


def dense_array():
    return dask.array.from_array(POINTS, chunks=(70, 2)), POINTS


def sparse_array():
    parts = [dask.array.from_delayed(dask.delayed(b), b.shape, float) for b in blocks(WORDS)]
    return dask.array.concatenate(parts), WORDS


def bag():
    return dask.bag.from_sequence(blocks(BOTH), npartitions=3), BOTH


def delayed_dicts():
    empty = {"words": WORDS[:0], "points": POINTS[:0]}
    found = [dict(block.items()) for block in blocks(BOTH)]
    return [dask.delayed(block) for block in (found[0], empty, *found[1:])], BOTH


def delayed_views():
    return [dask.delayed(block) for block in blocks(BOTH)], BOTH


@pytest.mark.parametrize("make", [dense_array, sparse_array, bag, delayed_dicts, delayed_views])
def test_collections(client, tmp_path, make):
    """They are fitted as a corpus of the same rows is."""

    X, plain = make()
    model = MixtureClusterer(**FIT, engine="dask").fit(X)
    alone = MixtureClusterer(**FIT).fit(corpus_of(plain, tmp_path / "corpus"))
    near(model, alone)
    np.testing.assert_array_equal(model.predict(X), alone.labels_)
    del X
    nothing_is_left(client)


def test_waiting_for_long_work_holds_no_rows(client, monkeypatch):
    """Also if Python does not look for cycles."""
    monkeypatch.setattr(_dask_cluster, "BEAT", 1e-3)  # all work is long
    gc.disable()
    try:
        MixtureClusterer(**FIT, engine="dask").fit(bag()[0])
        nothing_is_left(client)
    finally:
        gc.enable()


def test_rows_of_a_collection_stay_on_the_workers(client, monkeypatch):
    """Only samples and statistics reach this process."""
    fetched, fetch = [], _dask_cluster.Cluster.fetch

    def counting(*args):
        found = fetch(*args)
        fetched.append(n_bytes(found))
        return found

    def drawn(seed):  # inside, so that workers need not import the tests
        rng = np.random.default_rng(seed)
        return 3.0 * rng.integers(K, size=(12_000, 1)) + rng.standard_normal((12_000, 30))

    big = np.concatenate([drawn(seed) for seed in range(3)])
    X = [dask.delayed(drawn)(seed) for seed in range(3)]
    monkeypatch.setattr(_dask_cluster.Cluster, "fetch", counting)
    monkeypatch.setattr("coem.latent.stored.SAMPLE", 1000)
    monkeypatch.setattr("coem.estimators._views_model.SAMPLE", 1000)
    model = MixtureClusterer(**FIT, family=Gaussian("diag"), engine=client).fit(X)
    assert len(model.labels_) == len(big)
    assert max(fetched) < big.nbytes / 20


def test_rows_that_are_opened_once(client, tmp_path):
    corpus = corpus_of(BOTH, tmp_path / "corpus")
    X = DaskRows(delayed_views()[0], client)
    assert (X.names, X.widths, X.shape) == (BOTH.names, BOTH.widths, (N, 15))
    assert X.bounds == list(BOUNDS)
    some = np.array([200, 3, 50, 3])
    np.testing.assert_array_equal(X.take(some)["points"], POINTS[some])
    np.testing.assert_array_equal(X.sample(20, 1), corpus.sample(20, 1))
    among = np.arange(0, N, 7)
    np.testing.assert_array_equal(X.sample(9, among=among), corpus.sample(9, among=among))
    np.testing.assert_array_equal(X[["points"]].load()["points"], POINTS)
    np.testing.assert_array_equal(X.rows(40, 60)["points"], POINTS[40:60])
    assert X[["points", "words"]].widths == (3, 12)
    assert X.digest == DaskRows(delayed_dicts()[0], client).digest
    assert X.digest != DaskRows([dask.delayed(BOTH[::-1])], client).digest
    assert "240 rows in 4 blocks" in repr(X)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(X)


def test_a_classifier_of_a_collection(client):
    y = np.where(np.arange(N) % 9 == 0, GROUP, -1)
    models = [MixtureClassifier(max_iter=5, tol=0, engine=e) for e in (None, client)]
    alone, spread = models[0].fit(BOTH, y), models[1].fit(delayed_views()[0], y)
    near(spread, alone)


def test_bad_rows_are_named_by_their_number(client):
    bad = WORDS.toarray()
    bad[180, 2] = -1
    X = [dask.delayed(block) for block in blocks(bad)]
    with pytest.raises(ValueError, match="row 180"):
        MixtureClusterer(**FIT, family="multinomial", engine=client).fit(X)
    gc.collect()  # the error holds the frames in which it was raised
    nothing_is_left(client)


# -- what can go wrong -------------------------------------------------------------------------


def kill(client, number=0):
    pid = sorted(client.run(os.getpid).items())[number][1]
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("source", ["memory", "corpus", "delayed"])
def test_a_killed_worker_changes_no_bit(own_client, tmp_path, source):
    corpus = corpus_of(BOTH, tmp_path / "corpus")
    X = {"memory": BOTH, "corpus": corpus, "delayed": delayed_views()[0]}[source]
    engine = DaskEngine(own_client, n_parts=5)
    whole = MixtureClusterer(**FIT, engine=engine).fit(X)

    def look(record):
        if record.round == 3:
            kill(own_client)

    with watch(look):
        same_bits(MixtureClusterer(**FIT, engine=engine).fit(X), whole)
    gc.collect()  # errors of the lost worker refer to the rows, until Python looks for cycles
    nothing_is_left(own_client)


def test_a_fit_goes_on_when_all_workers_are_started_again(own_client):
    engine = DaskEngine(own_client, n_parts=5)
    whole = MixtureClusterer(**FIT, engine=engine).fit(BOTH)

    def look(record):
        if record.round == 2:
            own_client.restart(timeout=SECONDS, wait_for_workers=False)
            own_client.cluster.scale(3)  # Dask may start none of the two again on a busy machine
            own_client.wait_for_workers(1, timeout=SECONDS)

    with watch(look):
        same_bits(MixtureClusterer(**FIT, engine=engine).fit(BOTH), whole)


def test_a_worker_that_is_lost_before_the_scheduler_hears_of_a_table(client, engine, monkeypatch):
    whole = MixtureClusterer(**FIT, engine=engine).fit(BOTH)
    n_sent, scatter = [], client.scatter

    def scattered(values, **how):
        n_sent.append(len(values))
        sent = scatter(values, **how)
        if len(n_sent) == 12:
            raise KeyError("tcp://127.0.0.1:1")
        return sent

    monkeypatch.setattr(client, "scatter", scattered)
    same_bits(MixtureClusterer(**FIT, engine=engine).fit(BOTH), whole)
    assert len(n_sent) > 12


def test_work_that_was_on_too_many_lost_workers_is_tried_again(own_client, tmp_path):
    def killing(path):  # inside, so that workers need not import the tests
        if not os.path.exists(path):
            open(path, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return Parcel(5)

    own_client.cluster.scheduler.allowed_failures = 0
    cluster = _dask_cluster.Cluster(own_client)
    (future,) = cluster.start(killing, [str(tmp_path / "killed")])
    with pytest.raises(_dask_cluster.Lost):
        cluster.fetch(future)
    assert cluster.fetch(future) == 5
    future.release()


def test_blocks_that_nobody_can_make_again(own_client, monkeypatch):
    monkeypatch.setattr(_dask_cluster, "TRIES", 2)
    sent = own_client.scatter(blocks(BOTH))
    X = DaskRows([dask.delayed(block) for block in sent], own_client)
    kill(own_client)
    until_none(lambda: all(block.status == "finished" for block in sent), "all blocks")
    for use in (X.load, lambda: X.sample(20, 1), lambda: X.take(np.arange(N))):
        with pytest.raises(RuntimeError, match="sent with scatter"):
            use()
    with pytest.raises(RuntimeError, match="sent with scatter"):
        MixtureClusterer(**FIT, engine=own_client).fit(X)


def test_a_cluster_that_starts_workers_when_there_is_work():
    with (
        distributed.LocalCluster(n_workers=0, processes=False, **LOCAL) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        cluster.adapt(minimum=0, maximum=1, interval="100 ms")
        fit = MixtureClusterer(**FIT, engine=DaskEngine(client, n_parts=2)).fit(BOTH)
    assert fit.n_iter_ == FIT["max_iter"]


def test_handlers_of_signals_are_put_back_if_another_thread_fits_longer(engine):
    before, goes_on, inside = signal.getsignal(signal.SIGINT), threading.Event(), threading.Event()

    def fit():
        with engine:
            inside.set()
            assert goes_on.wait(SECONDS)

    thread = threading.Thread(target=fit)
    with engine:
        thread.start()
        assert inside.wait(SECONDS)
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
    goes_on.set()
    thread.join()


def test_ctrl_c_is_heard_if_engines_are_left_in_another_order(client):
    before = signal.getsignal(signal.SIGINT)
    first, second = DaskEngine(client), DaskEngine(client)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    finally:
        second.__exit__(None, None, None)
    assert signal.getsignal(signal.SIGINT) == before


class Stop(Exception):
    pass


def stopping(at, error=Stop):
    def look(record):
        if record.round == at:
            raise error

    return look


SOME = np.where(np.arange(N) % 9 == 0, GROUP, -1)
COUPLED = {"n_init": 2, "coupling_of_runs": coem.RunCoupling("rows", n_couplings=1, n_rounds=2)}
STOPPED = {  # a model, what it is fitted with, and the round of the last phase that it stops in
    "mixture": (MixtureClusterer(**FIT), {}, 4),
    "coupled runs": (MixtureClusterer(**FIT | COUPLED), {}, 4),
    "classifier": (MixtureClassifier(max_iter=6, tol=0), {"y": SOME}, 4),
    "choices": (
        MixtureClassifier(components_per_class=[1, 2], cv=2, max_iter=2, tol=0, random_state=0),
        {"y": SOME},
        2,
    ),
    "chain": (HiddenMarkovModel(**FIT), {"lengths": [7, 90, 1, 60, 40, 42]}, 4),
}


@pytest.mark.parametrize("name", STOPPED)
def test_a_checkpoint_goes_on_with_the_same_bits(engine, tmp_path, name, monkeypatch):
    monkeypatch.setattr(checkpoint, "THRIFT", 0)
    plain, data, last = STOPPED[name]
    whole = clone(plain).set_params(engine=engine)
    n_all = counted(lambda: whole.fit(BOTH, **data))
    model = clone(plain).set_params(engine=engine, checkpoint=tmp_path / "kept")
    with watch(stopping(last)), pytest.raises(Stop):
        model.fit(BOTH, **data)
    assert kept.has_state(tmp_path / "kept")
    n_rest = counted(lambda: model.fit(BOTH, **data))
    same_bits(model, whole)
    assert n_rest < n_all
    assert not (tmp_path / "kept").exists()


def counted(work):
    """Return the number of rounds in a piece of work."""
    rounds = []
    with watch(rounds.append):
        work()
    return len(rounds)


def test_a_scheduler_that_ends_is_named_and_the_checkpoint_is_of_use(client, engine, tmp_path):
    whole = MixtureClusterer(**FIT, engine=engine).fit(BOTH)
    model = MixtureClusterer(**FIT, checkpoint=tmp_path / "kept")
    with ExitStack() as stack:
        cluster = stack.enter_context(
            distributed.LocalCluster(n_workers=1, processes=False, **LOCAL)
        )
        other = stack.enter_context(distributed.Client(cluster, set_as_default=False, timeout=2))

        def look(record):
            if record.round == 4:
                stack.close()

        model.set_params(engine=DaskEngine(other, n_parts=5))
        with watch(look), pytest.raises(ConnectionError, match=r"connect a new client.*checkpoint"):
            model.fit(BOTH)
        with pytest.raises(ConnectionError, match="connect a new client"):
            model.set_params(engine=other).fit(BOTH)
    same_bits(model.set_params(engine=engine).fit(BOTH), whole)


# It may come while Dask frees an object, where Python drops the exception with a warning.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_leaves_nothing_behind(client, engine):
    model = MixtureClusterer(**FIT | {"max_iter": 10_000}, engine=engine)
    timer = threading.Timer(1.5, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        model.fit(BOTH)
    timer.join()
    gc.collect()  # the interrupt holds the frames that it was raised in
    nothing_is_left(client)
    assert client.submit(sum, [1, 2]).result() == 3
    with watch(stopping(2, KeyboardInterrupt)), pytest.raises(KeyboardInterrupt):
        model.fit(BOTH)
    gc.collect()
    nothing_is_left(client)


def test_a_task_that_outlives_its_session_keeps_no_state():
    before = _dask_tasks.n_kept()  # by clusters in this process that have ended
    job = _dask_tasks.Job("a session", Clock(1, (1.0,), 0.0), room=1 << 30)
    _dask_tasks._keep(job, 0, Parcel(np.zeros(9)))
    assert _dask_tasks.n_kept() == before + 1
    _dask_tasks.forget([job.session])
    _dask_tasks._keep(job, 1, Parcel(np.zeros(9)))
    assert _dask_tasks.n_kept() == before


def test_states_of_sessions_that_nobody_ended_make_room():
    room = n_bytes(Parcel(np.zeros(900))) + 10
    old, new = (_dask_tasks.Job(name, Clock(1, (1.0,), 0.0), room=room) for name in ("old", "new"))
    before = _dask_tasks.n_kept()
    _dask_tasks.forget([key[0] for key in _dask_tasks._states])
    _dask_tasks._keep(old, 0, Parcel(np.zeros(900)))
    _dask_tasks._keep(new, 0, Parcel(np.zeros(900)))
    _dask_tasks._keep(new, 1, Parcel(np.zeros(900)))  # no room beside that of its own session
    assert [*_dask_tasks._states] == [("new", 0)]
    _dask_tasks.forget(["new"])
    assert _dask_tasks.n_kept() == 0 <= before


def test_states_of_partitions_that_have_moved_make_room():
    room = n_bytes(Parcel(np.zeros(900))) + 10
    at = [
        _dask_tasks.Job("session", Clock(1, (1.0,), 0.0), room=room, step=step) for step in range(4)
    ]
    _dask_tasks.forget([key[0] for key in _dask_tasks._states])
    _dask_tasks._keep(at[1], 0, Parcel(np.zeros(900)))
    _dask_tasks._keep(at[2], 1, Parcel(np.zeros(900)))  # partition 0 may still be asked for
    assert [*_dask_tasks._states] == [("session", 0)]
    _dask_tasks._keep(at[3], 1, Parcel(np.zeros(900)))
    assert [*_dask_tasks._states] == [("session", 1)]
    _dask_tasks.forget(["session"])


ALONE = """
import sys
from distributed import Client
from coem import MixtureClusterer
from tests.test_dask import BOTH, FIT

if __name__ == "__main__":
    with Client(sys.argv[1], set_as_default=False) as client:
        print(repr(MixtureClusterer(**FIT, engine=client).fit(BOTH).objective_))
"""


def test_the_client_need_not_be_the_default_one(client, engine):
    own = MixtureClusterer(**FIT, engine=client).fit(BOTH).objective_
    command = [sys.executable, "-c", ALONE, client.scheduler.address]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout.strip() == repr(own)


class Loud:
    """An object that is freed when Ctrl-C comes."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_that_python_drops_ends_the_fit(engine):
    rounds, before = [], signal.getsignal(signal.SIGINT)

    def look(record):
        rounds.append(record.round)
        if record.round == 2:
            Loud()

    with watch(look), pytest.raises(KeyboardInterrupt):
        MixtureClusterer(**FIT | {"max_iter": 50}, engine=engine).fit(BOTH)
    assert rounds == [1, 2]
    assert signal.getsignal(signal.SIGINT) is before
    assert MixtureClusterer(**FIT, engine=engine).fit(BOTH).n_iter_ == FIT["max_iter"]


def test_a_fit_after_ctrl_c_is_not_stopped_by_it(engine):
    model = MixtureClusterer(**FIT, engine=engine)
    with engine:  # held between two fits
        with (
            watch(lambda record: signal.raise_signal(signal.SIGINT)),
            pytest.raises(KeyboardInterrupt),
        ):
            model.fit(BOTH)
        assert model.fit(BOTH).n_iter_ == FIT["max_iter"]


@pytest.mark.parametrize("error", [ArithmeticError, FileNotFoundError])
def test_errors_of_workers_are_those_of_threads(client, engine, error):
    class Odd(Gaussian):
        def stats_under(self, *args):
            raise error("odd")

    with pytest.raises(error, match="odd"):
        MixtureClusterer(**FIT, family=Odd("diag", reg=0), init="random", engine=engine).fit(POINTS)
    nothing_is_left(client)


# -- the parameter -----------------------------------------------------------------------------


def test_engines_by_name_and_by_client(client, engine):
    assert as_engine("dask").client is client
    assert as_engine(client, n_jobs=2).n_workers == 2
    assert as_engine(engine) is engine
    assert isinstance(as_engine(None), LocalEngine)
    assert engine.map(abs, [-1, 2]) == [1, 2]


def test_models_with_a_client(client, tmp_path):
    model = MixtureClusterer(**FIT, engine=client)
    twin = clone(model)
    assert twin.engine is twin.get_params()["engine"] is client
    model.fit(BOTH)
    model.save(tmp_path / "m.coem")
    assert coem.load(tmp_path / "m.coem").engine is None
    again = pickle.loads(pickle.dumps(model))
    assert again.engine == "dask"
    np.testing.assert_array_equal(again.predict(BOTH), model.labels_)
    by_engine = MixtureClusterer(**FIT, engine=DaskEngine(client, n_parts=2))
    assert clone(by_engine).engine is by_engine.engine
    assert pickle.loads(pickle.dumps(by_engine)).engine == "dask"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("spark", 'engine must be None, "dask", a distributed.Client'),
        (7, 'engine must be None, "dask", a distributed.Client'),
    ],
)
@pytest.mark.parametrize("estimator", [MixtureClusterer, MixtureClassifier, HiddenMarkovModel])
def test_other_engines_are_refused(estimator, wrong, message):
    with pytest.raises(ValueError, match=message):
        estimator(engine=wrong).fit(POINTS, np.arange(N) % 2)


def test_without_a_client_the_error_says_how_to_make_one(client):
    with distributed.Client(client.scheduler.address, set_as_default=False) as other:
        other.close()
        with pytest.raises(ConnectionError, match="connect a new client"):
            MixtureClusterer(**FIT, engine=other).fit(POINTS)
    with pytest.raises(TypeError, match="must be a distributed"):
        DaskEngine("tcp://127.0.0.1:8786")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (lambda: dask.array.ones(9), "1 dimensions; it must have 2"),
        (lambda: [dask.delayed(POINTS), dask.delayed(WORDS)], "same views: block 0 has"),
        (lambda: [dask.delayed(POINTS[:0])], "no rows"),
        (lambda: [dask.delayed(np.array([["a"]]))], "X, block 0"),
        (lambda: dask.delayed(POINTS), "a dask bag of row blocks"),
    ],
)
def test_other_collections_are_refused(client, X, message):

    with pytest.raises((TypeError, ValueError), match=message):
        MixtureClusterer(**FIT, engine=client).fit(X())


def test_a_collection_needs_the_engine():
    with pytest.raises(ValueError, match=r'engine="dask"'):
        MixtureClusterer(**FIT).fit([dask.delayed(POINTS)])
