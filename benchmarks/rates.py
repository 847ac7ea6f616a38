"""What one thread needs for the parts of a round: rates of this machine, each by itself.

Every rate is the processor time of one piece of code on rows that isolate it, the best of several.
Where the time depends on a cache, it is measured at several sizes.
"""

import math
import os
import socket
import threading
import time
from dataclasses import dataclass, field, fields

import numpy as np
import scipy.sparse as sp
from large_tables import planted
from zipf import zipf_counts

from coem.engine import LocalEngine
from coem.families import Multinomial
from coem.kernels import counts
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.protocols import Clock

TABLES = 2**19, 2**22, 2**25, 2**28  # bytes of the tables that scores are measured with
WORDS = 2_000, 20_000, 200_000, 1_000_000  # that sums are measured with
NARROW, WIDE = 16, 256  # components of the scores
CLOCK = Clock(0, (1.0, 1.0), 0.0)


def rate(what):
    """Return a field that says what its rate is of."""
    return field(metadata={"what": what})


@dataclass(frozen=True)
class Rates:
    """Nanoseconds of one thread. Tuples have a rate for each size in `TABLES` or `WORDS`."""

    read: tuple[float, ...] = rate("E step: a non-zero, whatever k is")
    product: tuple[float, ...] = rate("E step: a non-zero and component")
    cell: float = rate("E step: a row and component")
    many_cell: float = rate("E step: a row and component, with lists of responsibilities")
    view_cell: float = rate("E step: a row and component, in co-EM")
    scan: float = rate("M step: a row and component, to find those that have a part")
    total: tuple[float, ...] = rate("M step, late: a non-zero, in one component")
    tile: tuple[float, ...] = rate("M step, early: a non-zero and component")
    new: float = rate("a cell of statistics: fresh memory")
    add: float = rate("a cell of statistics: adding it to another")
    log: float = rate("a cell of the table: sum, logarithm, and writing it")
    listed_total: float = rate("M step with listed tables: a non-zero")
    listed_add: float = rate("a listed pair of word and component: adding it to others")
    listed_log: float = rate("a listed pair: making parameters of it")
    send: float = rate("a byte from one process to another of this machine")


STATED = Rates(  # what docs/scale.md states
    read=(0.095, 0.265, 1.31, 3.64),
    product=(0.0418, 0.0509, 0.1, 0.162),
    cell=2.25,
    many_cell=1.65,
    view_cell=5.99,
    scan=0.721,
    total=(2.46, 2.35, 4.56, 4.82),
    tile=(0.294, 0.298, 0.502, 4.85),
    new=0.514,
    add=0.328,
    log=3.0,
    listed_total=19.5,
    listed_add=11.6,
    listed_log=12.6,
    send=0.199,
)


def measure():
    """Return the rates of this machine."""
    with LocalEngine(1):
        return Rates(
            **of_scores(), **of_rows(), **of_sums(), **of_cells(), **of_lists(), send=of_bytes()
        )


def best(work, repeats=4):
    """Return the least processor time of some calls, in ns."""
    times = []
    for _ in range(repeats):
        start = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - start)
    return min(times)


def rows_of(n_rows, n_words, seed=0):
    """Return Zipf rows as fits see them."""
    return zipf_counts(n_rows, n_words, seed=seed).astype(np.float32)


def of_scores():
    """Return the rates of scores, from a narrow and a wide table of each size."""
    read, product = [], []
    for size in TABLES:
        narrow, wide = (scored(size, k) for k in (NARROW, WIDE))
        each = min((wide - narrow) / (WIDE - NARROW), narrow / NARROW)
        product.append(each)
        read.append(narrow - NARROW * each)
    return {"read": tuple(read), "product": tuple(product)}


def scored(size, k):
    """Return the time of a non-zero, with k components and a table of some bytes."""
    X, table = rows_of(8000, size // (4 * k)), counts.new_table(k, size // (4 * k), np.float32)
    table[...] = -8.0
    blocks = X[:4000], X[4000:]
    return best(lambda: [counts.scores(block, table) for block in blocks]) / X.nnz


def one_word_rows(n_rows, k):
    """Return rows of one word each, which belongs to one of k components."""
    words = np.random.default_rng(0).integers(k, size=n_rows)
    ones = np.ones(n_rows, dtype=np.float32)
    return sp.csr_matrix((ones, words, np.arange(n_rows + 1)), shape=(n_rows, k))


def of_rows():
    """Return the rates of a row and component, from rows of one word."""

    def posterior(n_rows, k, n_views=1):
        X = one_word_rows(n_rows, k)
        latent = Mixture(Emissions((Multinomial(),) * n_views), k)
        table = counts.as_table(np.where(np.eye(k, dtype=bool), 0.0, -50.0).astype(np.float32))
        part, theta = Partition((X,) * n_views), latent.from_params((table,) * n_views)

        def work():
            state = latent.infer(part, theta, CLOCK, None)
            latent.summarise(part, theta, CLOCK, state)

        return best(work) / (n_rows * k * n_views)

    X = one_word_rows(8_000, 512)
    resp, total = np.eye(512, dtype=np.float32)[X.indices], np.zeros((512, 512))
    return {
        "cell": posterior(20_000, 50),
        "many_cell": posterior(8_000, 512),
        "view_cell": posterior(20_000, 50, 2),
        "scan": best(lambda: counts.accumulate(X, resp, total)) / resp.size,
    }


def of_sums(k=48):
    """Return the rates of sums: rows of one component each, and rows of all."""
    total, tile = [], []
    rng = np.random.default_rng(0)
    for n_words in WORDS:
        X = rows_of(10_000, n_words)
        one = np.eye(k, dtype=np.float32)[rng.integers(k, size=X.shape[0])]
        every = rng.dirichlet(np.ones(k), X.shape[0]).astype(np.float32)
        total.append(summed(X, one) / X.nnz)
        tile.append(summed(X, every) / (X.nnz * k))
    return {"total": tuple(total), "tile": tuple(tile)}


def summed(X, resp):
    """Return the time of adding rows to sums."""
    sums = np.zeros((resp.shape[1], X.shape[1]))
    return best(lambda: counts.accumulate(X, resp, sums), 3)


def of_cells(k=50, n_words=100_000):
    """Return the rates of a cell of statistics and tables."""
    sums, other = np.ones((k, n_words)), np.ones((k, n_words))
    return {
        "new": best(lambda: np.zeros((k, n_words)).fill(1.0)) / sums.size,
        "add": best(lambda: np.add(sums, other, out=sums)) / sums.size,
        "log": best(lambda: counts.log_table(sums, 1.0, np.float32)) / sums.size,
    }


def of_lists(n_rows=40_000, n_words=1_000_000, k=1000):
    """Return the rates of tables that list words."""
    X, groups = planted(n_rows, n_words, k)
    family = Multinomial(alpha=0.01, dense_cells=0)
    latent = Mixture(Emissions((family,)), k)
    part = Partition((X,), given=groups)
    resp = latent.infer(part, latent.unknown(), CLOCK, None).resp[0]
    stats = family.stats(X, resp)
    pairs = len(stats.counts.sums)
    return {
        "listed_total": best(lambda: family.stats(X, resp), 2) / X.nnz,
        "listed_add": best(lambda: stats + stats, 2) / pairs,
        "listed_log": best(lambda: family.estimate(stats), 2) / pairs,
    }


def of_bytes(n_bytes=256 << 20):
    """Return the time of a byte between two ends of a loopback connection, by the clock."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        start = time.perf_counter_ns()
        sender = threading.Thread(target=_send, args=(server.getsockname(), n_bytes))
        sender.start()
        end, _ = server.accept()
        left, buffer = n_bytes, bytearray(1 << 20)
        with end:
            while left > 0:
                left -= end.recv_into(buffer)
        sender.join()
        return (time.perf_counter_ns() - start) / n_bytes


def _send(address, n_bytes):
    with socket.create_connection(address) as end:
        piece = bytes(1 << 20)
        for _ in range(n_bytes // len(piece)):
            end.sendall(piece)


def rounded(value):
    """Return a rate, or several, with three digits."""
    if isinstance(value, tuple):
        return tuple(rounded(each) for each in value)
    return round(value, 3 - math.ceil(math.log10(value))) if value > 0 else 0.0


def show(rates):
    """Print rates as a table."""
    print(f"rates of this machine, ns of one thread ({os.cpu_count()} processors)\n")
    print("| rate | of | at | ns |\n| --- | --- | --- | --- |")
    at = {"read": TABLES, "product": TABLES, "total": WORDS, "tile": WORDS}
    for each in fields(rates):
        sizes = ", ".join(f"{size:,}" for size in at.get(each.name, ()))
        unit = {TABLES: " table of bytes: ", WORDS: " V: "}.get(at.get(each.name), "")
        value = getattr(rates, each.name)
        values = value if isinstance(value, tuple) else (value,)
        numbers = ", ".join(str(rounded(one)) for one in values)
        print(f"| `{each.name}` | {each.metadata['what']} |{unit}{sizes} | {numbers} |")
