"""A corpus that is larger than the memory of a process can be fitted in it."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from coem.io.corpus_writer import CorpusWriter

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux")

SHARDS, ROWS, WIDTH = 16, 500, 4000  # 16 MB of float64 each, 256 MB in all
ROOM = 180 << 20  # bytes beside what the process has after its imports

CHILD = """
import resource, sys
import numpy as np
from coem import MixtureClusterer, SphericalKMeans, open_corpus
from coem.families import Gaussian
import coem.latent.stored as stored
import coem.estimators._sphere_fit as sphere_fit
import coem.estimators._views_model as views_model
stored.SAMPLE = sphere_fit.SAMPLE = views_model.SAMPLE = 400

X = open_corpus(sys.argv[1])
n_bytes = X.n_bytes
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
if sys.argv[3] == "memory":
    try:
        X.load()
    except MemoryError:
        print("too large")
    sys.exit()
model = {
    "mixture": MixtureClusterer(3, init="random", family=Gaussian("unit"), max_iter=3, tol=0),
    "spherical": SphericalKMeans(3, max_iter=3, patience=None, dtype=float, random_state=0),
}[sys.argv[3]].fit(X)
assert np.isfinite(model.objective_) and len(model.labels_) == len(X)
print(n_bytes > int(sys.argv[2]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "corpus"
    writer, rng = CorpusWriter(path), np.random.default_rng(0)
    for _ in range(SHARDS):
        rows = sp.random(ROWS, WIDTH, 0.01, random_state=rng).toarray()
        rows[np.arange(ROWS), rng.integers(3, size=ROWS)] += 5
        writer.append({"wide": rows})
    return path


def run(folder, what):
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(folder), str(ROOM), what]
    # The C library reserves address space for every thread, which is not memory.
    env = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_all_rows_do_not_fit(folder):
    assert run(folder, "memory") == "too large"


@pytest.mark.parametrize("what", ["mixture", "spherical"])
def test_a_part_at_a_time_does(folder, what):
    assert run(folder, what) == "True"
