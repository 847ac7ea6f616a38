"""What a round costs, as a function of the data, the model and the cluster; and a forecast.

Usage: python benchmarks/cost_model.py

It times rounds of some sizes in memory and finds the rates of a thread from them, by least squares.
Then it compares the model with rounds of other sizes, measures how fast a process adds tables,
reads a file and sends bytes to another, and prints a forecast for a large cluster. The formulas are
those of docs/scale.md.
"""

import argparse
import os
import socket
import tempfile
import threading
import time
import warnings
from dataclasses import asdict, dataclass, replace
from math import ceil, log2

import numpy as np
from scipy.optimize import nnls
from zipf import zipf_counts

from coem import MixtureClusterer


@dataclass(frozen=True)
class Rates:
    """Seconds of one thread, one disk and one network card."""

    nonzero: float  # a non-zero, whatever k is: reading it, and the M step
    product: float  # a non-zero and component: the scores of the E step
    cell: float  # a row and component: the posterior
    word: float  # a word and component: the sums and logarithms of the M step
    add_byte: float  # a byte of statistics, added to others
    disk_byte: float  # a byte of a file that is in the page cache
    net_byte: float  # a byte from one process to another


@dataclass(frozen=True)
class Job:
    """Rows, model and cluster."""

    n_rows: float
    nonzeros: float = 100.0  # of a row
    n_words: int = 100_000
    k: int = 50
    n_views: int = 1
    n_machines: int = 1
    threads: int = 1  # of a machine
    parts: int = 1  # partitions of a machine
    stored: bool = False  # rows are read from a disk in every round

    @property
    def rows_each(self):
        """Rows of a machine."""
        return self.n_rows / self.n_machines

    @property
    def table_cells(self):
        """Cells of the table of a view."""
        return self.k * self.n_words


def bytes_of(job):
    """Return bytes by what they are for, of one machine."""
    rows = job.rows_each * job.nonzeros * 8 * job.n_views
    return {
        "rows": rows,
        "posteriors": 0 if job.stored else job.rows_each * job.k * 4 * job.n_views,
        "table": job.table_cells * 4 * job.n_views,
        "statistics": job.table_cells * 8 * (job.threads if job.n_machines > 1 else 1),
        "sent down": 0 if job.n_machines == 1 else job.table_cells * 4,
        "sent up": 0 if job.n_machines == 1 else job.table_cells * 8,
    }


def seconds_of(job, rates):
    """Return the seconds of a turn (an E step and an M step of a view) by what they are for."""
    nonzeros = job.rows_each * job.nonzeros
    on_rows = (
        nonzeros * (rates.nonzero + rates.product * job.k) + job.rows_each * job.k * rates.cell
    )
    work = on_rows / job.threads
    read = nonzeros * 8 * rates.disk_byte if job.stored else 0.0
    steps = ceil(log2(job.n_machines)) if job.n_machines > 1 else 0
    table = bytes_of(job)
    return {
        "work on rows": work,
        "read, beyond the work": max(read - work, 0.0),
        "tables of partitions": (job.parts - 1) * job.table_cells * 8 * rates.add_byte,
        "send parameters": steps * table["sent down"] * rates.net_byte,
        "add statistics": steps * table["sent up"] * (rates.net_byte + rates.add_byte),
        "sums and logarithms": job.table_cells * rates.word / job.threads,
    }


def round_seconds(job, rates):
    """Return the seconds of a round over all views."""
    return job.n_views * sum(seconds_of(job, rates).values())


# -- rates of this machine ----------------------------------------------------------------------


# Of tables that are larger than the cache of a processor; rounds with smaller ones are faster.
FITTED = [
    (20_000, 100_000, 16),
    (80_000, 100_000, 16),
    (20_000, 100_000, 64),
    (80_000, 100_000, 64),
    (20_000, 200_000, 32),
    (40_000, 200_000, 96),
    (60_000, 150_000, 24),
]
CHECKED = [
    (120_000, 100_000, 20),
    (30_000, 100_000, 100),
    (60_000, 100_000, 32),
    (50_000, 250_000, 50),
    (15_000, 50_000, 20),
]


def timed_round(n_rows, n_words, k):
    """Return the processor seconds of a late round on one thread, and the non-zeros of a row."""
    X = zipf_counts(n_rows, n_words)
    resp = np.eye(k, dtype=np.float32)[np.random.default_rng(0).integers(k, size=n_rows)]

    def rounds(n):
        model = MixtureClusterer(k, init=resp, max_iter=n, tol=0, family="multinomial")
        start = time.process_time()
        model.fit(X)
        return time.process_time() - start

    late = [(rounds(12) - rounds(4)) / 8 for _ in range(3)]
    return max(min(late), 1e-6), X.nnz / n_rows


def measure():
    """Return the rates of this machine."""
    lines, seconds = [], []
    for n_rows, n_words, k in FITTED:
        time_of, nonzeros = timed_round(n_rows, n_words, k)
        entries = n_rows * nonzeros
        lines.append([entries, entries * k, n_rows * k, n_words * k])
        seconds.append(time_of)
    scale = np.array(seconds)[:, np.newaxis]  # so that relative errors count
    found, _ = nnls(np.array(lines) / scale, np.ones(len(seconds)))
    sums, other = np.ones((64, 100_000)), np.ones((64, 100_000))
    adding = best(lambda: np.add(sums, other, out=sums)) / sums.nbytes
    return Rates(*found.tolist(), adding, file_rate(), socket_rate())


def best(work, repeats=5):
    """Return the shortest time of some calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def file_rate(n_bytes=256 << 20):
    """Return the seconds a byte of reading a mapped file that is in the page cache."""
    with tempfile.NamedTemporaryFile(suffix=".npy") as file:
        np.save(file, np.ones(n_bytes // 8))
        file.flush()
        return best(lambda: np.load(file.name, mmap_mode="r").sum(), 3) / n_bytes


def socket_rate(n_bytes=256 << 20):
    """Return the seconds a byte between two ends of a loopback connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        start = time.perf_counter()
        sender = threading.Thread(target=_send, args=(server.getsockname(), n_bytes))
        sender.start()
        end, _ = server.accept()
        left, buffer = n_bytes, bytearray(1 << 20)
        with end:
            while left > 0:
                left -= end.recv_into(buffer)
        sender.join()
        return (time.perf_counter() - start) / n_bytes


def _send(address, n_bytes):
    with socket.create_connection(address) as end:
        piece = bytes(1 << 20)
        for _ in range(n_bytes // len(piece)):
            end.sendall(piece)


# -- checks and forecast ------------------------------------------------------------------------


def check(rates):
    """Print rounds of sizes that no rate was found from, beside what the model says."""
    print("rounds in memory, one thread, of sizes that the rates were not found from")
    print("     rows        V     k  measured ms  model ms  ratio")
    for n_rows, n_words, k in CHECKED:
        measured, nonzeros = timed_round(n_rows, n_words, k)
        predicted = round_seconds(Job(n_rows, nonzeros, n_words, k), rates)
        print(
            f"{n_rows:>9,}  {n_words:>7,} {k:>5}  {measured * 1e3:>11.1f}  "
            f"{predicted * 1e3:>8.1f}  {measured / predicted:>5.2f}"
        )


def forecast(rates):
    """Print what a large cluster would need for a round."""
    cluster = replace(rates, net_byte=8 / 10e9, disk_byte=1 / 1e9)  # 10 Gbit/s, 1 GB/s
    print("\n10^9 rows of 100 non-zeros on 100 machines of 16 threads, 10 Gbit/s, 1 GB/s of disk")
    print(
        "        V      k  rows      ", "  ".join(f"{name:>22}" for name in _parts()), "  round s"
    )
    for n_words, k in [(100_000, 50), (100_000, 1000), (1_000_000, 50), (1_000_000, 1000)]:
        for stored in (False, True):
            job = Job(1e9, 100, n_words, k, n_machines=100, threads=16, parts=1, stored=stored)
            parts = seconds_of(job, cluster)
            where = "on a disk" if stored else "in memory"
            cells = "  ".join(f"{value:>22.2f}" for value in parts.values())
            print(f"{n_words:>9,}  {k:>5}  {where:<10}", cells, f" {sum(parts.values()):>8.2f}")
    print("\nbytes of a machine, GB")
    for n_words, k in [(100_000, 50), (1_000_000, 1000)]:
        job = Job(1e9, 100, n_words, k, n_machines=100, threads=16)
        sizes = "  ".join(f"{name} {size / 1e9:.2f}" for name, size in bytes_of(job).items())
        print(f"V = {n_words:,}, k = {k}: {sizes}")


def _parts():
    return seconds_of(Job(1, n_machines=2), Rates(*[0.0] * 7))


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    warnings.simplefilter("ignore")  # few rounds do not converge
    rates = measure()
    print("rates of this machine, in ns,", os.cpu_count(), "processors")
    for name, value in asdict(rates).items():
        print(f"  {name:<10} {value * 1e9:.3f}")
    print()
    check(rates)
    forecast(rates)


if __name__ == "__main__":
    main()
