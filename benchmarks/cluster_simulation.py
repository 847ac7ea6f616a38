"""Stragglers and lost workers: how long rounds take on a cluster, by simulation.

Usage: python benchmarks/cluster_simulation.py [--workers 100] [--rounds 200]

Each worker has partitions. The time of a partition varies, some workers are slow in a round, and
some are lost. A round ends when the statistics of all partitions are added up. The partitions of a
lost worker are read again and worked on by others; states are inferred again and nothing else is
lost. With `stealing`, a worker that has finished takes a partition of another one, and reads it.
The seconds of the work, and of sending and adding, are those of the forecast of `cost_model.py`
for V = 100,000 and k = 50, from the rates that docs/scale.md states.
"""

import argparse
import heapq
from dataclasses import dataclass

import numpy as np
from cost_model import grouped, large
from rates import STATED

PARTS = grouped(large(100_000, 50), STATED)
WORK = PARTS["rows"]  # seconds
SENDING = sum(PARTS.values()) / WORK - 1.0  # and adding, in units of the work


@dataclass(frozen=True)
class Cluster:
    """A cluster, in units of the time that a worker needs for its share of a round."""

    n_workers: int = 100
    parts: int = 16  # partitions of a worker
    spread: float = 0.1  # of the time of a partition: the sigma of a log-normal
    slow_share: float = 0.02  # of the workers, in a round
    slow_factor: float = 3.0
    loss: float = 0.0005  # chance that a worker is lost in a round
    notice: float = 0.5  # until the scheduler knows that it is lost
    reading: float = 0.5  # of a partition, in units of its work
    sending: float = SENDING  # of the parameters down and the statistics up
    stealing: bool = False


def simulate_round(cluster, rng):
    """Return the time of a round, and how many workers were lost."""
    n, parts = cluster.n_workers, cluster.parts
    speed = np.where(rng.random(n) < cluster.slow_share, cluster.slow_factor, 1.0)
    lost_at = np.where(rng.random(n) < cluster.loss, rng.random(n), np.inf)
    queues = [list(rng.lognormal(0.0, cluster.spread, parts) / parts) for _ in range(n)]
    orphans, free = [], [(0.0, w) for w in range(n)]
    heapq.heapify(free)
    end = 0.0
    known = [(at + cluster.notice, w) for w, at in enumerate(lost_at) if np.isfinite(at)]
    for when, w in sorted(known):
        orphans += [(when, size) for size in queues[w]]  # also those that were done: it had them
        queues[w] = []
    orphans.sort(reverse=True)
    while free:
        now, w = heapq.heappop(free)
        if np.isfinite(lost_at[w]):  # what it did before is lost, too
            continue
        task = _next_task(cluster, queues, orphans, w)
        if task is None:
            end = max(end, now)
            continue
        begin, size = max(now, task[0]), task[1]
        heapq.heappush(free, (begin + size * speed[w], w))
    return end + cluster.sending, int(np.isfinite(lost_at).sum())


def _next_task(cluster, queues, orphans, w):
    """Return when a worker can begin its next partition, and its time; None if nothing is left."""
    if queues[w]:
        return 0.0, queues[w].pop()
    if orphans:
        when, size = orphans.pop()
        return when, size * (1 + cluster.reading)
    if cluster.stealing:
        victim = max(range(len(queues)), key=lambda v: len(queues[v]))
        if len(queues[victim]) > 1:
            return 0.0, queues[victim].pop(0) * (1 + cluster.reading)
    return None


def report(name, cluster, n_rounds, seed=0):
    rng = np.random.default_rng(seed)
    found = [simulate_round(cluster, rng) for _ in range(n_rounds)]
    times = np.array([time for time, _ in found])
    lost = sum(n for _, n in found)
    middle, late = np.percentile(times, [50, 95])
    print(
        f"{name:<44} {times.mean():>6.2f} {middle:>7.2f} {late:>8.2f} {times.max():>8.2f} {lost:>6}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    n_workers, n_rounds = arguments.workers, arguments.rounds
    print(f"{n_workers} workers, {n_rounds} rounds; 1 is the work on rows, {WORK:.2f} s,")
    print(f"and a round in which nothing varies takes {1 + SENDING:.2f}")
    print(f"{'':<44} {'mean':>6} {'median':>7} {'95 %':>8} {'longest':>8} {'lost':>6}")
    calm = {"slow_share": 0.0, "loss": 0.0}
    for name, changes in {
        "nothing goes wrong": calm,
        "nothing goes wrong, one partition a worker": {**calm, "parts": 1},
        "2 % of the workers are slow": {"loss": 0.0},
        "the same, one partition a worker": {"loss": 0.0, "parts": 1},
        "2 % of the workers are slow, stealing": {"loss": 0.0, "stealing": True},
        "a worker is lost in every 20th round": {"slow_share": 0.0},
        "lost, one partition a worker": {"slow_share": 0.0, "parts": 1},
        "lost, noticed after the work of 5 rounds": {"slow_share": 0.0, "notice": 5.0},
        "slow and lost": {},
        "slow and lost, stealing": {"stealing": True},
        "slow and lost, stealing, 64 partitions": {"stealing": True, "parts": 64},
    }.items():
        report(name, Cluster(n_workers=n_workers, **changes), n_rounds)


if __name__ == "__main__":
    main()
