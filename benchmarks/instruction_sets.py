"""What it costs to have the same bits on all instruction sets: kernels without fused operations.

Build a second set of kernels, then compare the two on every instruction set of this machine:

    CXXFLAGS=-ffp-contract=off pip wheel . --no-deps -w build/unfused -C build-dir=build/unfused
    python benchmarks/instruction_sets.py build/unfused/coem-*.whl

Both kernels take turns, in processes of their own. Times are those of the processor, the least of
several. Bits are a digest of all arrays that a fit ends with: equal digests are equal results.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

SETS = ("baseline", "avx2", "avx512")
MEMBER = "coem/kernels/_compiled."


def main():
    from coem.kernels import instruction_set

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="coem, compiled with -ffp-contract=off")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(given.wheel) as wheel:
        (name,) = (m for m in wheel.namelist() if m.startswith(MEMBER) and m.endswith(".so"))
        kernels = {"fused": "", "unfused": wheel.extract(name, folder)}
        best = instruction_set()
        sets, runs = SETS[: SETS.index(best) + 1], {}
        for _ in range(given.repeats):
            for isa in sets:
                for kind, path in kernels.items():
                    runs.setdefault((isa, kind), []).append(once(path, isa))
    print("| fit | set | fused, ms | unfused, ms | ratio | bits fused | bits unfused |")
    print("| --- | --- | ---: | ---: | ---: | --- | --- |")
    for fit in runs[sets[0], "fused"][0]:
        for isa in sets:
            best = [min(run[fit][0] for run in runs[isa, kind]) for kind in kernels]
            bits = [runs[isa, kind][0][fit][1] for kind in kernels]
            times = f"{best[0]:.0f} | {best[1]:.0f} | {best[1] / best[0]:.2f}"
            print(f"| {fit} | {isa} | {times} | {bits[0]} | {bits[1]} |")


def once(path, isa):
    """Return the milliseconds and the bits of every fit, with some kernels on some set."""
    done = subprocess.run(
        [sys.executable, __file__, f"--kernels={path}"],
        env=os.environ | {"COEM_ISA": isa, "OPENBLAS_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
    )
    return json.loads(done.stdout)


def measure(path):
    """Print the milliseconds and the bits of every fit in this process."""
    if path:
        spec = importlib.util.spec_from_file_location("coem.kernels._compiled", path)
        sys.modules[spec.name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[spec.name])
    told = {}
    for name, (fit, X) in fits().items():
        began = time.process_time()
        model = fit(X)
        told[name] = 1000 * (time.process_time() - began), bits(model)
    print(json.dumps(told))


def fits():
    """Return what is fitted, by name: each of another kernel."""
    import numpy as np
    from zipf import zipf_counts

    import coem

    counts = zipf_counts(4_000, 5_000, 80, 0)
    dense = np.random.default_rng(0).normal(size=(10_000, 20)) + np.arange(10_000)[:, None] % 5
    given = {"random_state": 0, "tol": 0, "n_jobs": 1}
    return {
        "counts": (coem.MixtureClusterer(20, max_iter=10, **given).fit, counts),
        "aspect": (coem.AspectModel(20, max_iter=10, random_state=0, n_jobs=1).fit, counts),
        "spherical": (coem.SphericalKMeans(20, max_iter=10, random_state=0, n_jobs=1).fit, counts),
        "gaussian": (
            coem.MixtureClusterer(5, family="gaussian", max_iter=10, **given).fit,
            dense,
        ),
        "chain": (coem.HiddenMarkovModel(5, family="gaussian", max_iter=10, **given).fit, dense),
    }


def bits(model):
    """Return a digest of all arrays of floats that a model was fitted to."""
    import numpy as np

    found = hashlib.sha256()
    for name, value in sorted(vars(model).items()):
        parts = value if isinstance(value, list | tuple) else [value]
        for part in parts:
            if isinstance(part, np.ndarray | float) and np.asarray(part).dtype.kind == "f":
                found.update(f"{name}{np.asarray(part).shape}".encode())
                found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()[:8]


if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1].startswith("--kernels="):
        measure(sys.argv[1].removeprefix("--kernels="))
    else:
        main()
