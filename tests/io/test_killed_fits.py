"""A fit that is killed at any step, and started again, ends with the same bits.

A child gets SIGKILL before a step that the system hears of: the opening of a file, a rename, a
lock. It is started again, and killed at a later step, until it comes to its end.
"""

import json
import subprocess
import sys

import pytest

KILLED = """
import json, os, signal, sys, warnings
from pathlib import Path
import numpy as np
from coem import (
    AspectModel, HiddenMarkovModel, MixtureClassifier, MixtureClusterer, RunCoupling,
    SphericalKMeans,
)
from coem.io import checkpoint

home, name, stride = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
checkpoint.THRIFT = 0
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.poisson(np.repeat(0.5 + 3 * np.eye(3, 10), 16, axis=0))
y = np.where(np.arange(48) % 3, -1, np.arange(48) // 16)
few = {"max_iter": 2, "tol": 0, "random_state": 0}
fits = {
    "cluster": lambda at: MixtureClusterer(3, n_init=2, **few, checkpoint=at).fit(X),
    "rows": lambda at: MixtureClusterer(
        3, n_init=2, coupling_of_runs=RunCoupling("rows", n_couplings=1, n_rounds=2), **few,
        checkpoint=at,
    ).fit(X),
    "k-means": lambda at: SphericalKMeans(
        4, n_init=2, patience=None, max_iter=3, random_state=0, checkpoint=at
    ).fit(X),
    "classify": lambda at: MixtureClassifier(
        components_per_class=[1, 2], cv=2, calibrate=True, **few, checkpoint=at
    ).fit(X, y),
    "coupled": lambda at: AspectModel(
        3, n_runs=2, coupling="c", rounds=2, max_iter=2, random_state=0, checkpoint=at
    ).fit(X),
    "hmm": lambda at: HiddenMarkovModel(
        3, n_init=2, init="random", **few, checkpoint=at
    ).fit(X, lengths=[24, 24]),
}

def told(value):
    if isinstance(value, dict):
        return {str(k): told(v) for k, v in value.items() if k != "seconds"}
    if isinstance(value, (list, tuple)):
        return [told(v) for v in value]
    return value.tolist() if isinstance(value, np.ndarray) else repr(value)

def result(at):
    model = fits[name](at)
    fitted = {k: v for k, v in vars(model).items() if k.endswith("_") and k != "families_"}
    return json.dumps(told(fitted), sort_keys=True)

def child(steps):
    left = [steps]
    def hook(event, args):
        if event.split(".")[0] in ("os", "open", "fcntl", "shutil"):
            left[0] -= 1
            if left[0] < 0:
                left[0] = 1000  # the system hears of the kill, too
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    (home / "found").write_text(result(home / "state"))
    os._exit(0)

whole, kills, steps = result(None), 0, stride
while True:
    number = os.fork()
    if not number:
        child(steps)
    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    if code == 0:
        break
    assert code == -signal.SIGKILL, code
    kills, steps = kills + 1, steps + 1
    assert kills < 1000
same = (home / "found").read_text() == whole
print(json.dumps({"kills": kills, "same": same, "left": sorted(os.listdir(home))}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("stride", [17, 23])
@pytest.mark.parametrize("name", ["cluster", "rows", "k-means", "classify", "coupled", "hmm"])
def test_a_killed_fit_ends_with_the_same_bits(name, stride, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path, name, str(stride)],
        capture_output=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    assert found["kills"] > 1
    assert found["same"]
    assert found["left"] == ["found"]
