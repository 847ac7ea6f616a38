"""What a round costs, as a function of the data, the model and the cluster; and a forecast.

Usage: python benchmarks/cost_model.py [--rates FILE]

It measures the rates of this machine (how fast a thread scores and sums non-zeros, adds tables,
takes logarithms, copies memory, and how fast a process reads a file and sends bytes to another),
predicts rounds in memory from them, compares the predictions with measured rounds, and prints a
forecast for a large cluster. The formulas are those of docs/scale.md.
"""

import argparse
import json
import os
import socket
import tempfile
import threading
import time
import warnings
from dataclasses import asdict, dataclass, replace
from math import ceil, log2

import numpy as np
from zipf import zipf_counts

from coem import MixtureClusterer
from coem.kernels import counts

MB = 1e6


@dataclass(frozen=True)
class Rates:
    """Rates of one thread, one disk and one network card."""

    score_row: float  # seconds a non-zero, whatever k is
    score_cell: float  # seconds a non-zero and component: the E step
    sum_entry: float  # seconds a non-zero and component that is left in its row: the M step
    posterior_cell: float  # seconds a row and component: exponentials and sums
    sum_cell: float  # seconds a cell of the statistics: zeros, and writing them
    log_cell: float  # seconds a cell of the table: logarithms
    add_byte: float  # seconds a byte of statistics, added to others
    disk_byte: float  # seconds a byte of a file that is in the page cache
    net_byte: float  # seconds a byte from one process to another


@dataclass(frozen=True)
class Job:
    """Rows, model and cluster."""

    n_rows: float
    nonzeros: float = 100.0  # of a row
    n_words: int = 100_000
    k: int = 50
    left: float = 1.5  # components of a row above 1e-9, late in a fit
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
    entries = job.rows_each * job.nonzeros
    e_step = entries * (rates.score_row + rates.score_cell * job.k)
    e_step += job.rows_each * job.k * rates.posterior_cell
    m_step = entries * job.left * rates.sum_entry
    read = entries * 8 * rates.disk_byte if job.stored else 0.0
    work = (e_step + m_step) / job.threads
    steps = ceil(log2(job.n_machines)) if job.n_machines > 1 else 0
    table = bytes_of(job)
    return {
        "E step": e_step / job.threads,
        "M step": m_step / job.threads,
        "read, beyond the work": max(read - work, 0.0),
        "tables of partitions": (job.parts - 1) * table["statistics"] * rates.add_byte,
        "send parameters": steps * table["sent down"] * rates.net_byte,
        "add statistics": steps * table["sent up"] * (rates.net_byte + rates.add_byte),
        "zeros and logarithms": job.table_cells * (rates.sum_cell + rates.log_cell) / job.threads,
    }


def round_seconds(job, rates):
    """Return the seconds of a round over all views."""
    return job.n_views * sum(seconds_of(job, rates).values())


# -- rates of this machine ----------------------------------------------------------------------


def best(work, repeats=5):
    """Return the shortest time of some calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure():
    """Return the rates of this machine."""
    X = zipf_counts(20_000, 100_000)
    rng = np.random.default_rng(0)
    times, ks = {}, (16, 64)
    for k in ks:
        table = counts.new_table(k, X.shape[1], np.float32)
        table[...] = rng.standard_normal(table.shape)
        times[k] = best(lambda t=table: counts.scores(X, t)) / X.nnz
    cell = (times[64] - times[16]) / 48
    k = 64
    resp = np.zeros((X.shape[0], k), np.float32)
    resp[np.arange(len(resp)), rng.integers(k, size=len(resp))] = 1
    half = X[: X.shape[0] // 2], resp[: len(resp) // 2]
    whole, part = (best(lambda a=args: counts.accumulate(*a)) for args in ((X, resp), half))
    summing = max(whole - part, 0.0) / (X.nnz - half[0].nnz)
    sums = rng.random((k, X.shape[1]))
    other = sums.copy()
    dense = rng.standard_normal((X.shape[0], k))
    return Rates(
        score_row=max(times[16] - 16 * cell, 0.0),
        score_cell=cell,
        sum_entry=summing,
        sum_cell=max(whole - summing * X.nnz, 0.0) / sums.size,
        posterior_cell=best(lambda: np.exp(dense)) / dense.size,
        log_cell=best(lambda: counts.log_table(sums, 1.0, np.float32)) / sums.size,
        add_byte=best(lambda: np.add(sums, other, out=sums)) / sums.nbytes,
        disk_byte=file_rate(),
        net_byte=socket_rate(),
    )


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
    """Print measured rounds in memory beside what the model says."""
    print("rounds in memory, one thread, V = 100,000, one component left in a row")
    print("     rows     k  measured ms  model ms  ratio")
    warnings.simplefilter("ignore")
    for n_rows, k in [(10_000, 20), (40_000, 20), (160_000, 20), (40_000, 50), (40_000, 100)]:
        X = zipf_counts(n_rows, 100_000)
        labels = np.random.default_rng(0).integers(k, size=n_rows)
        resp = np.eye(k, dtype=np.float32)[labels]
        model = MixtureClusterer(k, init=resp, max_iter=12, tol=0, posterior="hard", beta=1.0)
        model.fit(X)
        measured = float(np.min([record.seconds for record in model.history_[2:]]))
        job = Job(n_rows, X.nnz / n_rows, 100_000, k, left=1.0)
        predicted = round_seconds(job, rates)
        print(
            f"{n_rows:>9,} {k:>5}  {measured * 1e3:>11.1f}  {predicted * 1e3:>8.1f}  "
            f"{measured / predicted:>5.2f}"
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
    return seconds_of(Job(1, n_machines=2), Rates(*[0.0] * 9))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", help="write the measured rates to this file, as JSON")
    arguments = parser.parse_args()
    rates = measure()
    print("rates of this machine,", os.cpu_count(), "processors")
    for name, value in asdict(rates).items():
        print(f"  {name:<15} {value * 1e9:.3f} ns")
    print()
    if arguments.rates:
        with open(arguments.rates, "w", encoding="utf-8") as file:
            json.dump(asdict(rates), file)
    check(rates)
    forecast(rates)


if __name__ == "__main__":
    main()
