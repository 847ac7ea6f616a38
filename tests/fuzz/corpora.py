"""The target of corpora: folders whose files somebody damaged, or forged with digests that fit."""

import io
import json
import shutil
from contextlib import suppress
from functools import partial
from unittest import mock

import numpy as np
import pyarrow as pa
from click.testing import CliRunner

import coem
from coem import MixtureClusterer, SphericalKMeans, open_corpus, stored
from coem.cli import main
from coem.io import row_blocks
from coem.recipes import ingesting
from coem.stored import MANIFEST, READER, TABLE
from tests.cli.conftest import posts
from tests.fuzz.mutations import TRAPS, damage_bytes, damage_json
from tests.io import forgery
from tests.io.forging import members, write

ENTRIES = (0, 1, -1, 3, 127, 1 << 20, (1 << 31) - 1, -(1 << 31), 1 << 40, -(1 << 63))
VALUES = (0.0, -0.0, -1.0, 0.5, 1e-45, 1e38, -1e308, np.nan, np.inf, -np.inf)
HEADERS = (b"'fortran_order': True", b"'shape': (99999999999,)", b"'descr': '|O'", b"('<f8', (9,))")


class Corpora:
    """Corpora that are opened, verified, read and fitted: all is refused by name, or read."""

    def __init__(self, folder):
        self.folder = folder / "corpus"
        source = folder / "posts.jsonl"
        lines = [json.dumps(post | {"tags": "a|b"}) for post in posts(24)]
        source.write_text("\n".join(lines), encoding="utf-8")
        few = partial(row_blocks.row_blocks, rows=9)
        with mock.patch.object(ingesting, "row_blocks", few):
            how = {"views": {"tags": "tags:list"}, "text": "body", "min_df": 1, "threads": 1}
            coem.ingest(source, self.folder, **how)
        self.files = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }
        assert sum(name.endswith(TABLE) for name in self.files) == 3
        self.around = sorted(path for path in folder.iterdir())
        self.home = folder
        self.use(np.random.default_rng(0))  # or it would be no test of what it reads

    def run(self, rng):
        shutil.rmtree(self.folder)
        for name, data in self.files.items():
            (self.folder / name).parent.mkdir(exist_ok=True, parents=True)
            (self.folder / name).write_bytes(data)
        for _ in range(rng.integers(1, 3)):
            self.harm(rng)
        try:
            self.use(rng)
        except ValueError as error:
            said = str(error)
            assert "corpus" in said or "view" in said, said
            assert len(said) < 2_000, said
        assert sorted(self.home.iterdir()) == self.around, "something beside the corpus has changed"

    # -- harm --------------------------------------------------------------------------------

    def harm(self, rng):
        """Damage a file; in most cases as somebody does who knows of the digests."""
        here = {path for path in self.folder.rglob("*") if not path.is_symlink()}
        names = [name for name in self.files if self.folder / name in here]
        name = names[rng.integers(len(names))]
        path = self.folder / name
        way = rng.integers(10)
        if name == MANIFEST or way == 0:
            self.forge_manifest(rng)
            return
        if way == 1:
            path.write_bytes(damage_bytes(rng, self.files[name]))
            return
        if way == 2:
            path.unlink()
            if rng.random() < 0.5:
                path.symlink_to(self.home / "posts.jsonl")
            return
        if name == READER:
            self.forge_reader(rng, path)
        elif name.endswith(TABLE):
            path.write_bytes(_table(rng, self.files[name]))
        else:
            path.write_bytes(_array(rng, self.files[name]))
        self.seal(name)

    def forge_manifest(self, rng):
        told = self.told()
        if told is None:
            return
        told = damage_json(rng, told, TRAPS)
        self.write(told, sealed=rng.random() < 0.8)

    def forge_reader(self, rng, path):
        if rng.random() < 0.5:
            path.write_bytes(damage_bytes(rng, self.files[READER]))
            return
        parts = members(io.BytesIO(self.files[READER]))
        traps = (*TRAPS, *forgery.VALUES.values())
        document = damage_json(rng, json.loads(parts["model.json"]), traps)
        write(path, parts | {"model.json": json.dumps(document).encode()})

    def told(self):
        """Return what the manifest says, or None if it says nothing any more."""
        try:
            told = json.loads((self.folder / MANIFEST).read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        return told if isinstance(told, dict) else None

    def seal(self, name):
        """Tell the manifest of the new content of a file."""
        told, path = self.told(), self.folder / name
        if told is None:
            return
        pair = [path.stat().st_size, stored.digest_of(path)]
        try:
            if name == READER:
                told["files"][name] = pair
            else:
                shard, _, own = name.partition("/")
                told["shards"][int(shard.partition("-")[2])]["files"][own] = pair
        except (IndexError, KeyError, TypeError):  # the manifest was forged before
            return
        self.write(told, sealed=True)

    def write(self, told, sealed):
        if sealed and isinstance(told, dict):
            # What is no manifest has no digest.
            with suppress(ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
                told = told | {"digest": stored._manifest(told).digest}
        path = self.folder / MANIFEST
        path.unlink(missing_ok=True)
        path.write_bytes(json.dumps(told).encode())

    # -- use ---------------------------------------------------------------------------------

    def use(self, rng):
        """Open the corpus, and do something with it."""
        way = rng.integers(8)
        if way == 0:
            self.program("info", self.folder)
            return
        if way == 1 and rng.random() < 0.2:
            place = self.folder / "run"
            self.program("cluster", self.folder, "-k", 2, "--restarts", 2, "--out", place)
            return
        corpus = open_corpus(self.folder)
        if way < 4:
            corpus.verify()
        rows = np.arange(min(len(corpus), 30))
        if way < 6:
            for name in corpus.names:
                corpus.feature_names(name)
            assert len(corpus.ids) == len(corpus)
            assert corpus.labels is None or len(corpus.labels) == len(corpus)
            assert len(corpus.texts(rows)) == len(rows)
            assert corpus.take_table(rows[::-1]).num_rows == len(rows)
            assert corpus.sample(5).max() < len(corpus)
        views = corpus.load()
        assert len(views) == len(corpus)
        if way >= 5:
            MixtureClusterer(2, max_iter=2, tol=0, random_state=0).fit(corpus)
            SphericalKMeans(2, max_iter=2, random_state=0).fit(corpus)

    def program(self, *arguments):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        said = f"{arguments}: {result.output}{result.exception!r}"
        assert result.exception is None or isinstance(result.exception, SystemExit), said
        assert "should not happen" not in result.output, said
        assert "Traceback" not in result.output, said


def _array(rng, data):
    """Return the file of an array whose header, bytes or entries are other ones."""
    way = rng.integers(4)
    if way == 0:
        return damage_bytes(rng, data, HEADERS)
    array = np.load(io.BytesIO(data)).copy()
    if way == 1:
        shapes = (array[:-1], np.concatenate([array, array]), array[..., np.newaxis], array[:0])
        array = shapes[rng.integers(len(shapes))]
    elif way == 2:
        array = array.astype(("<i4", "<i8", "<f4", "<f8", ">i4", "?")[rng.integers(6)])
    for _ in range(rng.integers(1, 4) if array.size and way != 1 else 0):
        pool = VALUES if array.dtype.kind == "f" else ENTRIES
        value = np.array(pool[rng.integers(len(pool))])
        with np.errstate(all="ignore"):
            array.flat[rng.integers(array.size)] = value.astype(array.dtype)
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0))
    return file.getvalue()


def _table(rng, data):
    """Return the file of a table whose bytes, columns, types or parts are other ones."""
    if rng.random() < 0.5:
        return damage_bytes(rng, data, (b"\xff\xff\xff\xff", b"ARROW1", b"\x00" * 8))
    table = pa.ipc.open_file(data).read_all()
    n, way = table.num_rows, rng.integers(7)
    name = table.column_names[rng.integers(table.num_columns)]
    if way == 0:
        table = table.drop_columns([name])
    elif way == 1:
        table = table.append_column(name, table.column(name))
    elif way == 2:
        column = _COLUMNS[rng.integers(len(_COLUMNS))](n)
        table = table.set_column(table.column_names.index(name), name, column)
    elif way == 3:
        table = table.slice(0, int(rng.integers(n + 1)))
    elif way == 4:
        table = table.rename_columns([f"{i}" for i in range(table.num_columns)])
    options = pa.ipc.IpcWriteOptions(
        compression=("zstd", "lz4")[rng.integers(2)] if way == 5 else None,
        metadata_version=pa.ipc.MetadataVersion.V4 if way == 6 else pa.ipc.MetadataVersion.V5,
    )
    sink = pa.BufferOutputStream()
    batches = table.to_batches(max_chunksize=None if rng.random() < 0.8 else 2)
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


_COLUMNS = (
    lambda n: pa.nulls(n),
    lambda n: pa.array([[[i]] for i in range(n)]),
    lambda n: pa.array([{"a": {"b": i}} for i in range(n)]),
    lambda n: pa.array(["x"] * n).dictionary_encode(),
    lambda n: pa.array([b"\xff\xfe"] * n),
    lambda n: pa.array([1 << 62] * n, pa.timestamp("s")),
    lambda n: pa.array([None, *([(1 << 63) - 1] * n)][:n], pa.duration("ns")),
    lambda n: pa.array([b"\xff\xfe"] * n).cast(pa.string(), safe=False),
)
