"""Ask ``coem serve`` many times over one connection, with malformed requests among them.

Prints the time of an answer, the processor time of the server, and its memory before and after (as
Linux tells them). The server is the program itself, on loopback, and is stopped at the end.
"""

import argparse
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import coem

TOKEN = "the-token-of-the-benchmark"
HEAD = {"Authorization": f"Bearer {TOKEN}"}
BAD = [
    (b"{", HEAD, 400),
    (b'{"rows": []}', HEAD, 400),
    (b'{"row": {"nothing": "here"}}', HEAD, 400),
    (b'{"row": {"text": {"a": 1}}}', HEAD, 400),
    (b"\xff", HEAD, 400),
    (b'{"row": {"text": "ship"}}', {}, 401),
]


def word(number):
    """Return letters for a number: codes would not pass for text."""
    return "".join(chr(97 + number // 26**place % 26) for place in range(4))


def table(n_rows, n_words, seed=0):
    """Return texts of four topics over many words."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(n_words, 0.05), size=4)
    rows = [rng.choice(n_words, 60, p=share[i % 4]) for i in range(n_rows)]
    return [{"id": str(i), "text": " ".join(word(w) for w in row)} for i, row in enumerate(rows)]


def ask(connection, body, headers):
    connection.request("POST", "/predict", body, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status


def loop(port, rows, n_requests):
    """Return the seconds that each of the good requests took."""
    rng, seconds = random.Random(0), []
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    for i in range(n_requests):
        if rng.random() < 0.2:
            body, headers, wanted = rng.choice(BAD)
            assert ask(connection, body, headers) == wanted
            continue
        body = json.dumps({"row": rows[i % len(rows)]}).encode()
        started = time.perf_counter()
        assert ask(connection, body, HEAD) == 200
        seconds.append(time.perf_counter() - started)
    connection.close()
    return np.array(seconds)


def used(process):
    """Return the processor seconds of a process, and its largest memory in MB."""
    place = Path("/proc", str(process.pid))
    ticks = sum(map(int, (place / "stat").read_text().rpartition(")")[2].split()[11:13]))
    lines = (place / "status").read_text().splitlines()
    (peak,) = (int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    return ticks / os.sysconf("SC_CLK_TCK"), peak / 1024


def started(folder, token):
    """Return the program that serves the model of a run, and its port."""
    command = [sys.executable, "-m", "coem", "serve", folder, "--port", "0", "--token-file", token]
    process = subprocess.Popen([*command, "--json"], stdout=subprocess.PIPE, text=True)
    url = json.loads(process.stdout.readline())["url"]
    return process, int(url.rpartition(":")[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--words", type=int, default=20_000)
    options = parser.parse_args()
    rows = table(options.rows, options.words)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "run"
        coem.cluster(rows, text="text", k=4, restarts=2, latent=None).save(folder, report=False)
        token = Path(home) / "token"
        token.write_text(TOKEN)
        process, port = started(folder, token)
        try:
            loop(port, rows, 100)
            before = used(process)
            seconds = loop(port, rows, options.requests)
            after = used(process)
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)
    low, median, high = (1000 * np.quantile(seconds, q) for q in (0.05, 0.5, 0.95))
    busy = 1000 * (after[0] - before[0]) / options.requests
    print(f"{options.requests:,} requests, {len(seconds):,} of them good; the rest were refused")
    print(f"good ones: median {median:.2f} ms, 5 % below {low:.2f}, 95 % below {high:.2f}")
    print(f"processor time of the server: {busy:.2f} ms a request")
    print(f"its memory: {before[1]:.0f} MB before, {after[1]:.0f} MB after")


if __name__ == "__main__":
    main()
