"""Systems that lack what POSIX has, such as Windows."""

import subprocess
import sys

LACKING = """
import os, pkgutil, signal, sys

# Other packages look for these names, too. They are here before the names are gone.
import click, joblib, matplotlib, numpy, pandas, pyarrow, pyarrow.parquet, scipy.sparse, sklearn
import sklearn.pipeline, threadpoolctl

sys.modules["fcntl"] = None
for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "geteuid", "register_at_fork", "fork"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL"):
    delattr(signal, name)

import coem
names = [found.name for found in pkgutil.walk_packages(coem.__path__, "coem.")]
for name in names:
    if not name.endswith("__main__"):
        __import__(name)
print(len(names))

import ctypes
library = ctypes.CDLL

def named_library(name, *args, **options):
    if name is None:
        raise TypeError("argument of type 'NoneType' is not iterable")
    return library(name, *args, **options)

ctypes.CDLL = named_library
from coem.io import new_folder
for text in ("old", "new"):
    with new_folder("run", force=True) as folder:
        (folder / "file").write_text(text)
assert open("run/file").read() == "new"
coem.MixtureClusterer(2, checkpoint="fit", tol=0, max_iter=2).fit(numpy.eye(4))
assert os.listdir() == ["run"]
"""


def test_modules_can_be_imported_and_files_written_without_posix(tmp_path):
    command = [sys.executable, "-W", "ignore", "-c", LACKING]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert int(told.stdout) > 100
