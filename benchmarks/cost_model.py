"""What a round costs, as a function of the data, the model and the cluster; and a forecast.

Usage: python benchmarks/cost_model.py [--stated]

It measures the rates of a thread one by one (`rates.py`), compares the model with rounds of other
sizes, and prints a forecast for a large cluster. The formulas are those of docs/scale.md, and
`--stated` makes the forecast from the rates that are stated there.
"""

import argparse
import time
from dataclasses import dataclass, replace
from math import ceil, log2

import numpy as np
from large_tables import planted
from rates import CLOCK, STATED, TABLES, WORDS, measure, show

from coem import MixtureClusterer
from coem.engine import LocalEngine
from coem.families import Multinomial
from coem.latent.block import Partition
from coem.latent.emissions import Emissions
from coem.latent.mixture import Mixture
from coem.latent.pruning import FEWEST, FULL

NETWORK = 0.8  # ns a byte: 10 Gbit/s


@dataclass(frozen=True)
class Job:
    """Rows, model and cluster."""

    n_rows: float
    nonzeros: float = 100.0  # of a row, in a view
    n_words: int = 100_000
    k: int = 50
    n_views: int = 1  # with co-EM, which has a turn for each
    early: bool = False  # all components have a part of every row; later on, one or two
    n_machines: int = 1
    threads: int = 1  # of a machine
    partitions: int = 1  # of all rows
    served: int = 50  # workers that fetch from one at a time: Dask's limit of connections
    listed: float = 0.0  # share of all pairs of word and component that tables list; 0: dense

    @property
    def rows_each(self):
        """Rows of a machine."""
        return self.n_rows / self.n_machines

    @property
    def cells(self):
        """Cells of the dense table of a view."""
        return self.k * self.n_words

    @property
    def has_lists(self):
        """Whether responsibilities are lists."""
        full = self.n_rows / self.partitions * self.nonzeros >= FULL * self.n_words
        return self.n_views == 1 and self.k >= FEWEST and (full or self.listed > 0)

    @property
    def table_bytes(self):
        """Bytes of the parameters of a view."""
        return min(8 * self.listed, 4) * self.cells if self.listed else 4 * self.cells

    @property
    def sums_bytes(self):
        """Bytes of the statistics of a view."""
        return 12 * self.listed * self.cells if self.listed else 8 * self.cells


def bytes_of(job):
    """Return the bytes of a machine by what they are for; a state exists while it is used."""
    state = 4 if job.n_views == 1 else 8 * job.n_views
    at_work = job.rows_each if job.n_views > 1 else job.n_rows / job.partitions * job.threads
    cells = at_work * (8 if job.has_lists and not job.early else job.k * state)
    return {
        "rows": job.rows_each * job.nonzeros * 8 * job.n_views,
        "posteriors": cells,
        "parameters": job.table_bytes * job.n_views,
        # While two are added on each of two threads, there is a third.
        "statistics": (1.5 if job.n_machines > 1 else 1) * job.threads * job.sums_bytes,
    }


def at(rates, sizes, size):
    """Return a rate between those of the sizes that it was measured at."""
    return float(np.interp(np.log(size), np.log(sizes), rates))


def seconds_of(job, rates):
    """Return the seconds of a turn (an E step and an M step of a view) by what they are for."""
    nonzeros, cells = job.rows_each * job.nonzeros, job.rows_each * job.k
    wide = 8 * ceil(job.k / 8)  # components that kernels work on
    read = at(rates.read, TABLES, 4 * job.cells)
    e_step = nonzeros * (read + wide * at(rates.product, TABLES, 4 * job.cells))
    if job.has_lists:
        e_step += cells * rates.many_cell
    elif job.n_views > 1:
        e_step += cells * rates.view_cell
    else:
        e_step += cells * rates.cell
    if job.listed:
        m_step = nonzeros * rates.listed_total
    elif job.early:
        m_step = nonzeros * wide * at(rates.tile, WORDS, job.n_words)
    else:
        m_step = nonzeros * at(rates.total, WORDS, job.n_words)
        m_step += 0 if job.has_lists else cells * rates.scan
    several = job.n_machines > 1
    steps = ceil(log2(job.n_machines))
    sums = job.cells * (job.listed or 1.0)
    add, log = (rates.listed_add, rates.listed_log) if job.listed else (rates.add, rates.log)
    fresh = 0 if job.listed else rates.new
    # Sums go up a tree, and from its root to the process that calls `fit`.
    parts = {
        "E step": e_step / job.threads,
        "M step": m_step / job.threads,
        "new sums": sums * fresh,
        "send parameters": copies(job) * job.table_bytes * rates.send * several,
        "send sums": (steps + 1) * job.sums_bytes * rates.send * several,
        "add sums": (steps + ceil(log2(job.threads))) * sums * add * several,
        "table": sums * log / job.threads,
    }
    return {name: value / 1e9 for name, value in parts.items()}


def copies(job):
    """Return how many copies of a table are sent one after the other in a turn.

    One goes from the driver to a worker, which serves some workers at a time. The others try again
    later, and then find several that have the table.
    """
    holders, n = 1, 1
    while holders < job.n_machines:
        each = min(job.served, ceil((job.n_machines - holders) / holders))
        n, holders = n + each, holders * (1 + each)
    return n


def round_seconds(job, rates):
    """Return the seconds of a round over all views."""
    return job.n_views * sum(seconds_of(job, rates).values())


# -- checks -------------------------------------------------------------------------------------


CHECKED = [
    Job(20_000, n_words=50_000, k=20),
    Job(40_000, n_words=6_000, k=100),
    Job(60_000, n_words=100_000, k=32),
    Job(30_000, n_words=250_000, k=50),
    Job(100_000, n_words=100_000, k=50),
    Job(400_000, n_words=100_000, k=50),
    Job(20_000, n_words=40_000, k=300),
    Job(10_000, n_words=20_000, k=1000),
    Job(10_000, n_words=100_000, k=1000),
    Job(30_000, n_words=30_000, k=50, n_views=2),
    Job(20_000, n_words=60_000, k=40, early=True),
    Job(10_000, n_words=150_000, k=100, early=True),
]


def timed_round(job, repeats=6):
    """Return the processor seconds of a round on one thread, and the non-zeros of a row.

    The round is that of an engine with several partitions, on one of them: the rows are added to
    statistics, and these become parameters. The state of a single view is not kept.
    """
    X, start = planted(job.n_rows, job.n_words, job.k)
    views = [X]
    for seed in range(1, job.n_views):
        views.append(X[:, np.random.default_rng(seed).permutation(job.n_words)])
    if job.early:
        start = np.random.default_rng(7).dirichlet(np.ones(job.k), job.n_rows).astype(np.float32)
    latent = Mixture(Emissions((Multinomial(),) * job.n_views), job.k)
    part, theta, times = Partition(tuple(views), given=start), latent.unknown(), []
    first = state = latent.infer(part, theta, CLOCK, None)
    for _ in range(repeats):
        spent, state = 0, first if job.early else state
        for turn in range(job.n_views):
            began = time.process_time_ns()
            theta = latent.estimate(latent.gather(part, theta, turn, CLOCK, state), theta, turn)
            spent += time.process_time_ns() - began
            if not theta.started:
                continue
            began = time.process_time_ns()
            state = latent.infer(part, theta, CLOCK, None if job.n_views == 1 else state)
            spent += time.process_time_ns() - began
        began = time.process_time_ns()
        latent.summarise(part, theta, CLOCK, state)
        times.append(spent + time.process_time_ns() - began)
    return min(times[1:]) / 1e9, X.nnz / job.n_rows


def check(rates):
    """Print rounds of sizes that no rate was found from, beside what the model says."""
    print("\nrounds on one thread: processor time, beside that of the model\n")
    print("| round | rows | V | k | views | measured, ms | model, ms | ratio |")
    print("| --- " * 8 + "|")
    for job in CHECKED:
        measured, nonzeros = timed_round(job)
        predicted = round_seconds(replace(job, nonzeros=nonzeros), rates)
        print(
            f"| {'early' if job.early else 'late'} | {job.n_rows:,} | {job.n_words:,} | {job.k} | "
            f"{job.n_views} | {measured * 1e3:.0f} | {predicted * 1e3:.0f} | "
            f"{measured / predicted:.2f} |"
        )


def check_sending(rates, n_words=200_000, k=50, n_rows=2000, workers=2):
    """Print rounds of few rows on a Dask cluster of this machine, beside the model."""
    from distributed import Client, LocalCluster

    from coem.engine.dask import DaskEngine

    X, groups = planted(n_rows, n_words, k)
    start = np.eye(k, dtype=np.float32)[groups]
    nanny = {"n_workers": workers, "threads_per_worker": 1, "host": "127.0.0.1"}
    with LocalCluster(**nanny, dashboard_address=None) as cluster, Client(cluster) as client:

        def clock(n):
            engine = DaskEngine(client, n_parts=workers)
            engine._cluster.shares = False  # send arrays as to other machines
            model = MixtureClusterer(
                k, init=start, max_iter=n, tol=0, patience=None, family="multinomial", engine=engine
            )
            began = time.monotonic()
            model.fit(X)
            assert model.n_iter_ == n, model.n_iter_
            return time.monotonic() - began

        measured = min(clock(12) - clock(4) for _ in range(3)) / 8
    job = Job(n_rows, X.nnz / n_rows, n_words, k, n_machines=workers, partitions=workers)
    parts = seconds_of(job, rates)
    sending = sum(value for name, value in parts.items() if name.startswith("send"))
    others, n_bytes = sum(parts.values()) - sending, sending / rates.send * 1e9
    print(f"\n{n_rows:,} rows on {workers} Dask workers of this machine, V = {n_words:,}, k = {k}:")
    print(f"a round takes {measured * 1e3:.0f} ms by the clock; the model says ", end="")
    print(f"{sum(parts.values()) * 1e3:.0f} ms, {sending * 1e3:.0f} of them for sending.")
    print(
        f"So a byte takes {(measured - others) * 1e9 / n_bytes:.2f} ns, serialised and sent by Dask"
    )


# -- forecast -----------------------------------------------------------------------------------


def large(n_words, k, **more):
    """Return 10^9 rows of 100 non-zeros on 100 machines of 16 threads, with a leaf for each."""
    return Job(1e9, 100, n_words, k, n_machines=100, threads=16, partitions=12_800, **more)


FORECAST = [
    ("dense", large(100_000, 50)),
    ("dense, a worker serves 4", large(100_000, 50, served=4)),
    ("dense, early round", large(100_000, 50, early=True)),
    ("dense, two views", large(100_000, 50, n_views=2)),
    ("dense", large(100_000, 1000)),
    ("dense, a worker serves 4", large(100_000, 1000, served=4)),
    ("dense", large(1_000_000, 1000)),
    ("listed, all pairs", large(1_000_000, 1000, listed=1.0)),
    ("listed, 5 % of the pairs", large(1_000_000, 1000, listed=0.05)),
]
GROUPS = {
    "rows": ("E step", "M step"),
    "sending parameters": ("send parameters",),
    "sending sums": ("send sums",),
    "sums and tables": ("new sums", "add sums", "table"),
}


def on_the_network(rates):
    """Return rates of machines that are connected with 10 Gbit/s."""
    return replace(rates, send=NETWORK)


def grouped(job, rates):
    """Return the seconds of a round on a cluster by what they are for."""
    parts = seconds_of(job, on_the_network(rates))
    return {name: job.n_views * sum(parts[own] for own in group) for name, group in GROUPS.items()}


def forecast(rates):
    """Print what a large cluster would need for a round."""
    print(
        "\n10^9 rows of 100 non-zeros on 100 machines of 16 threads, 10 Gbit/s: seconds a round\n"
    )
    print("| V | k | table |", " | ".join(GROUPS), "| round | E step reads, GB/s |")
    print("| --- " * (len(GROUPS) + 5) + "|")
    for name, job in FORECAST:
        parts = grouped(job, rates)
        cells = " | ".join(f"{value:.2f}" for value in parts.values())
        print(f"| {job.n_words:,} | {job.k:,} | {name} | {cells} | ", end="")
        reads = job.rows_each * job.nonzeros * 4 * job.k / seconds_of(job, rates)["E step"]
        print(f"{sum(parts.values()):.2f} | {reads / 1e9:.0f} |")
    print("\nthe same: GB of a machine\n")
    print("| V | k | table |", " | ".join(bytes_of(FORECAST[0][1])), "| all |")
    print("| --- " * 8 + "|")
    for name, job in FORECAST:
        if job.early or job.served == 4:
            continue  # as the line before
        sizes = bytes_of(job).values()
        cells = " | ".join(f"{size / 1e9:.2f}" for size in sizes)
        print(f"| {job.n_words:,} | {job.k:,} | {name} | {cells} | {sum(sizes) / 1e9:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--stated", action="store_true", help="measure nothing: a forecast only")
    if parser.parse_args().stated:
        forecast(STATED)
        return
    began = time.monotonic()
    rates = measure()
    show(rates)
    with LocalEngine(1):
        check(rates)
    check_sending(rates)
    forecast(rates)
    print(f"\n{time.monotonic() - began:.0f} s by the clock")


if __name__ == "__main__":
    main()
