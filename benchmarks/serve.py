"""Ask ``coem serve`` many times over one connection, with malformed requests among them.

Prints the time of an answer and the memory before and after. The server runs in a thread of this
process, on loopback, and stops by itself.
"""

import argparse
import http.client
import json
import random
import resource
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import coem
from coem.cli import _models
from coem.cli._server import Server
from coem.cli.serve import columns_of, predictor

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


def loop(server, rows, n_requests):
    """Return the seconds of good requests: those that pass, and those of the processor."""
    rng, passed, busy = random.Random(0), [], []
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    for i in range(n_requests):
        if rng.random() < 0.2:
            body, headers, wanted = rng.choice(BAD)
            assert ask(connection, body, headers) == wanted
            continue
        body = json.dumps({"row": rows[i % len(rows)]}).encode()
        started = time.perf_counter(), time.process_time()
        assert ask(connection, body, HEAD) == 200
        passed.append(time.perf_counter() - started[0])
        busy.append(time.process_time() - started[1])
    connection.close()
    return np.array(passed), np.array(busy)


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
        saved = _models.load_model(folder)
        parts = TOKEN, predictor(saved), columns_of(saved), {"status": "ok"}
        with Server(("127.0.0.1", 0), *parts) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
            thread.start()
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            passed, busy = loop(server, rows, options.requests)
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            server.shutdown()
            thread.join()
    print(f"{options.requests:,} requests, {len(busy):,} of them good; the rest were refused")
    for name, seconds in (("processor, client and server", busy), ("on the clock", passed)):
        low, median, high = (1000 * np.quantile(seconds, q) for q in (0.05, 0.5, 0.95))
        print(f"{name}: median {median:.2f} ms, 5 % below {low:.2f}, 95 % below {high:.2f}")
    print(f"memory: {before / 1024:.0f} MB before, {after / 1024:.0f} MB after")


if __name__ == "__main__":
    main()
