"""What the harness attacks. Each target makes its own inputs; `run` raises if a case went wrong."""

import json
import os
import shutil
import tempfile
from unittest import mock

import numpy as np
from click.testing import CliRunner

import coem
from coem import MixtureClusterer
from coem.cli import main
from coem.io import checkpoint, kept
from tests import borders, damage
from tests.cli.conftest import posts, write_csv
from tests.fuzz.corpora import Corpora
from tests.fuzz.mutations import TRAPS, damage_bytes, damage_json
from tests.io import fits, forgery, hostile
from tests.io.forging import members, write


def as_fifo(path):
    """Put a FIFO in the place of a file: whoever opens it waits for ever."""
    path.unlink()
    os.mkfifo(path)


class Models:
    """Model files, damaged or forged by somebody who knows of the digests."""

    KINDS = ("mixed", "classes", "pool", "chain", "sphere", "tree", "aspects", "text pipeline")
    KINDS += ("tf-idf", "batches")
    TRAPS = (*TRAPS, *forgery.VALUES.values())

    def __init__(self, folder):
        self.path = folder / "damaged.coem"
        self.kinds = []
        for i, kind in enumerate(self.KINDS):
            place = folder / f"{i}.coem"
            coem.save(fits.fitted(kind), place)
            self.kinds.append((fits.data_of(kind), place.read_bytes(), members(place)))

    def run(self, rng):
        X, data, parts = self.kinds[rng.integers(len(self.kinds))]
        if rng.random() < 0.3:
            self.path.write_bytes(damage_bytes(rng, data))
        else:
            write(self.path, self.forged(rng, parts))
        wrong = forgery.verdict(self.path, X)
        assert wrong is None, wrong

    def forged(self, rng, parts):
        arrays = [name for name in parts if name.endswith(".npy")]
        if rng.random() < 0.7:
            document = damage_json(rng, json.loads(parts["model.json"]), self.TRAPS)
            return parts | {"model.json": json.dumps(document).encode()}
        name = arrays[rng.integers(len(arrays))]
        return parts | {name: damage_bytes(rng, parts[name])}


class Checkpoints:
    """The folder of a fit that was stopped: the fit goes on and ends the same, or is refused.

    A document that somebody forged, who knows of the digests, may lead to another model.
    """

    def __init__(self, folder):
        self.folder = folder / "fit"
        written = {}
        write_archive = kept.write_archive

        def remember(path, *args, **settings):
            write_archive(path, *args, **settings)
            written.setdefault(path.name, []).append(path.read_bytes())

        thrifty = mock.patch.object(checkpoint, "THRIFT", 0)
        with thrifty, mock.patch.object(kept, "write_archive", remember):
            self.truth = self.fit().theta_
        # As it was in the middle of the fit.
        self.files = {name: states[len(states) // 2] for name, states in written.items()}

    def fit(self):
        model = MixtureClusterer(
            3, init="random", n_init=2, random_state=0, max_iter=6, checkpoint=self.folder
        )
        return model.fit(fits.TEXT)

    def run(self, rng):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        hit = list(self.files)[rng.integers(len(self.files))]
        for name, data in self.files.items():
            (self.folder / name).write_bytes(data)
        forged = self.damage(rng, self.folder / hit)
        try:
            theta = self.fit().theta_
        except ValueError as error:
            if "delete" not in str(error):
                raise AssertionError("the message does not say what to do") from error
            return
        for view, table in theta.items() if not forged else ():
            np.testing.assert_array_equal(table, self.truth[view])

    def damage(self, rng, path):
        """Damage a file, and return whether it may now lead to another model."""
        way = rng.integers(4)
        if rng.random() < 0.02:
            as_fifo(path)
            return False
        if way < 2:
            path.write_bytes(damage_bytes(rng, path.read_bytes()))
            return False
        # Not by chance: the digests are right.
        parts = members(path)
        if way == 2:
            parts.pop(next(name for name in parts if name.endswith(".npy")))
        else:
            document = damage_json(rng, json.loads(parts["meta.json"]))
            parts["meta.json"] = json.dumps(document).encode()
        write(path, parts)
        return way == 3


class Runs:
    """A run whose run.json or names.json somebody edited; what is outside of it stays as it was."""

    def __init__(self, folder):
        self.home = folder
        self.table = write_csv(folder / "posts.csv", posts(30))
        self.folder = folder / "run"
        self.scratch = folder / "scratch"  # beside the run, so that a trap leads from it, too
        self.scratch.mkdir()
        (folder / "outside").mkdir()
        (folder / "outside" / "data.csv").write_text("precious")
        self.succeed("cluster", self.table, "-k", 3, "--restarts", 2, "--out", self.folder)
        self.succeed("name", self.folder, "1=Ships")
        self.verbs = (
            ("info", self.folder),
            ("report", self.folder, "--out", folder / "page.html", "--force"),
            ("predict", self.folder, self.table, "--out", folder / "new.csv", "--force"),
            ("compare", self.folder, self.folder),
            ("explain", self.folder, "--id", "p1"),
            ("name", self.folder, "2=Kitchen"),
            ("merge", self.folder, "0", "2"),
            ("rerun", self.folder),
        )
        self.files = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        for verb in self.verbs:  # or it would be no test of what it reads
            self.succeed(*verb)
        self.outside = self.around()

    def succeed(self, *arguments):
        code, said = self.program(*arguments)
        assert code == 0, said

    def around(self):
        """Return all that is not in the run, but for what the verbs are told to write."""
        own = (self.folder, self.home / "page.html", self.home / "new.csv")
        return {
            path: path.read_bytes() if path.is_file() else None
            for path in self.home.rglob("*")
            if not any(path.is_relative_to(place) for place in own)
        }

    def program(self, *arguments):
        with mock.patch.object(tempfile, "tempdir", str(self.scratch)):
            result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        said = f"{arguments}: {result.output}{result.exception!r}"
        assert result.exception is None or isinstance(result.exception, SystemExit), said
        assert "should not happen" not in result.output, said
        assert "Traceback" not in result.output, said
        return result.exit_code, said

    def run(self, rng):
        for name, data in self.files.items():
            if (self.folder / name).is_fifo():
                (self.folder / name).unlink()
            (self.folder / name).write_bytes(data)
        name = ("run.json", "names.json")[rng.integers(2)]
        if rng.random() < 0.2:
            damaged = damage_bytes(rng, self.files[name])
        else:
            damaged = json.dumps(damage_json(rng, json.loads(self.files[name]))).encode()
        (self.folder / name).write_bytes(damaged)
        if rng.random() < 0.05:
            as_fifo(self.folder / list(self.files)[rng.integers(len(self.files))])
        self.program(*self.verbs[rng.integers(len(self.verbs))])
        assert self.around() == self.outside, "something outside of the run has changed"
        assert {path.name for path in self.folder.iterdir()} <= self.files.keys()


class Tables:
    """Tables of every kind, packed and not, read as the program reads them."""

    def __init__(self, folder):
        self.folder = folder / "tables"

    def run(self, rng):
        shutil.rmtree(self.folder, ignore_errors=True)
        hostile.read_everything(hostile.hostile_table(int(rng.integers(1 << 62)), self.folder))


class Matrices:
    """Sparse matrices that are damaged, or valid and unusual, wherever a matrix comes in."""

    def __init__(self, folder):
        self.names = list(borders.BORDERS)

    def run(self, rng):
        name = self.names[rng.integers(len(self.names))]
        if rng.random() < 0.7:
            kind = damage.DAMAGE[rng.integers(len(damage.DAMAGE))]
            wrong = borders.show(damage.damaged(rng, kind), name)
            assert wrong is None, f"{kind} to {name}: {wrong}"
        elif name not in borders.DENSE_ONLY:
            kind = list(damage.UNUSUAL)[rng.integers(len(damage.UNUSUAL))]
            self.compare(name, *damage.unusual(rng, kind, 8, borders.WIDTH))

    def compare(self, name, X, plain):
        """Check that an unusual matrix gives what its plain copy gives."""
        found, wanted = (self.answer(name, matrix) for matrix in (X, plain))
        assert len(found) == len(wanted)
        for one, two in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, two, err_msg=name)

    def answer(self, name, X):
        """Return what a border says; a model may refuse what any copy of these rows is."""
        try:
            return borders.BORDERS[name](X)
        except ValueError as error:
            return [np.array(str(error))]


TARGETS = {
    "models": Models,
    "tables": Tables,
    "matrices": Matrices,
    "runs": Runs,
    "checkpoints": Checkpoints,
    "corpora": Corpora,
}
