"""A corpus that is damaged or forged is refused, in one sentence that names the file."""

import json
import os

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from coem import Corpus, Views, stored
from coem.io.corpus_writer import CorpusWriter, Writing
from coem.stored import MANIFEST, TABLE


def rows(seed, n_rows=6):
    rng = np.random.default_rng(seed)
    counts = sp.csr_array(rng.poisson(0.5, (n_rows, 9)).astype(np.float32))
    return Views({"a/../b": counts, "x": rng.normal(size=(n_rows, 2))})


@pytest.fixture
def folder(tmp_path):
    writer = CorpusWriter(tmp_path / "c")
    for seed in range(3):
        writer.append(rows(seed), pa.table({"id": [f"{seed}-{i}" for i in range(6)]}))
    return tmp_path / "c"


def test_rows_are_found_wherever_they_are(folder):
    corpus = Corpus(folder)
    whole = corpus.load()
    assert len(corpus) == 18
    assert corpus.shape == (18, 11)
    for lo, hi in ((0, 18), (4, 8), (6, 12), (17, 18), (3, 3)):
        assert np.array_equal(corpus.rows(lo, hi)["x"], whole["x"][lo:hi])
        assert corpus.table(lo, hi).num_rows == hi - lo
    some = [17, 0, 6, 6]
    assert np.array_equal(corpus.take(some)["x"], whole["x"][some])
    assert corpus.take_table(some).column("id").to_pylist() == ["2-5", "0-0", "1-0", "1-0"]
    assert np.array_equal(corpus.sample(5, 3), np.sort(corpus.sample(5, 3)))
    with pytest.raises(IndexError, match="rows are numbered from 0 to 17"):
        corpus.take([18])
    with pytest.raises(ValueError, match="needs all rows in memory"):
        corpus.load(10)


def test_the_order_of_rows_has_no_effect_on_a_sample(folder, tmp_path):
    other = CorpusWriter(tmp_path / "d")
    for seed in (2, 0, 1):
        other.append(rows(seed), pa.table({"id": [f"{seed}-{i}" for i in range(6)]}))
    one, two = Corpus(folder), Corpus(tmp_path / "d")
    ids = [sorted(c.take_table(c.sample(7)).column("id").to_pylist()) for c in (one, two)]
    assert ids[0] == ids[1]


def change(folder, edit):
    path = folder / MANIFEST
    told = json.loads(path.read_text())
    edit(told)
    path.write_text(json.dumps(told))


@pytest.mark.parametrize(
    "edit",
    [
        lambda told: told.pop("views"),
        lambda told: told["views"][0].update(width=-1),
        lambda told: told["views"][0].update(width=1 << 40),
        lambda told: told["views"][0].update(dtype="object"),
        lambda told: told["views"][0].update(name=3),
        lambda told: told["views"].append(told["views"][0]),
        lambda told: told["shards"][0].update(n_rows=1 << 60),
        lambda told: told["shards"][0].update(n_rows=True),
        lambda told: told["shards"][0]["files"].update({"../../x": [1, "0" * 32]}),
        lambda told: told["shards"][0]["files"].pop("keys.npy"),
        lambda told: told["shards"][0]["files"].update({"keys.npy": [1]}),
        lambda told: told["files"].update({"/etc/passwd": [1, "0" * 32]}),
        lambda told: told["columns"].update(id=["id"]),
        lambda told: told.update(shards={}),
        lambda told: told.update(digest="0" * 32),
        lambda told: told.update(schema=99),
        lambda told: told.update(format="other"),
    ],
)
def test_a_forged_manifest_is_refused(edit, folder):
    change(folder, edit)
    with pytest.raises(ValueError, match=r"damaged|another version|not written by coem"):
        Corpus(folder)


def test_a_corpus_without_rows_has_no_table(folder):
    change(folder, lambda told: told.update(shards=[]))
    told = json.loads((folder / MANIFEST).read_text())
    change(folder, lambda known: known.update(digest=stored._manifest(told).digest))
    corpus = Corpus(folder)
    for look in (corpus.table, lambda: corpus.take_table(np.arange(0))):
        with pytest.raises(ValueError, match="has no rows, and so no table"):
            look()


@pytest.mark.parametrize("text", ["", "[" * 100_000, "3", '{"format": '])
def test_what_is_no_manifest_is_refused(text, folder):
    (folder / MANIFEST).write_text(text)
    with pytest.raises(ValueError, match=r"is not a corpus|was not written by coem"):
        Corpus(folder)


def test_a_folder_without_a_manifest_is_no_corpus(tmp_path):
    with pytest.raises(ValueError, match=r"is not a corpus; write one with `coem ingest`"):
        Corpus(tmp_path)


FILES = ["keys.npy", "0.indptr.npy", "0.indices.npy", "0.data.npy", "1.values.npy", "table.arrow"]


def read_all(folder):
    corpus = Corpus(folder)
    for shard in corpus.shards:
        shard.read(), shard.keys, shard.table()


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_gone_or_cut_short_are_named(name, folder):
    path = folder / "shard-000001" / name
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ValueError, match=rf"shard-000001/{name} has .* bytes and not .*; take it"):
        read_all(folder)
    path.unlink()
    with pytest.raises(ValueError, match=rf"{name} is gone; take it from a copy, or ingest again"):
        read_all(folder)
    path.symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match=rf"{name} cannot be read \(it is not a regular file\)"):
        read_all(folder)


@pytest.mark.parametrize("name", FILES)
def test_any_changed_byte_is_found(name, folder):
    path = folder / "shard-000002" / name
    data = bytearray(path.read_bytes())
    data[-1 if name != "table.arrow" else 300] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match=rf"{name} has other content than was written"):
        Corpus(folder).verify()


def replaced(folder, name, array):
    """Put another array into a corpus, with a manifest that knows it."""
    file = Writing(folder / "shard-000000" / name)
    np.lib.format.write_array(file, array, allow_pickle=True)
    seal(folder, name, file.end())


def seal(folder, name, known, number=0):
    """Tell the manifest of the new content of a file."""
    told = json.loads((folder / MANIFEST).read_text())
    told["shards"][number]["files"][name] = [known.size, known.digest]
    told["digest"] = stored._manifest(told).digest
    (folder / MANIFEST).write_text(json.dumps(told))


def arrow(folder, table, number=0, **options):
    """Put another table into a corpus, with a manifest that knows it."""
    path = folder / f"shard-{number:06d}" / TABLE
    how = pa.ipc.IpcWriteOptions(**options)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=how) as w:
        w.write_table(table)
    known = stored.StoredFile(path.stat().st_size, stored.digest_of(path))
    seal(folder, TABLE, known, number)
    return path


WORDS = pa.array(["one", "two"] * 3)


@pytest.mark.parametrize(
    "column",
    [WORDS, WORDS.dictionary_encode(), pa.array([[1], [2, 3]] * 3), pa.nulls(6)],
    ids=lambda column: str(column.type).split("<")[0],
)
def test_tables_of_any_columns_that_are_not_compressed_are_read(column, folder):
    table = pa.table({"id": column})
    arrow(folder, table)
    assert Corpus(folder).shards[0].table().equals(table)
    arrow(folder, table, use_legacy_format=True)
    assert Corpus(folder).shards[0].table().equals(table)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
@pytest.mark.parametrize("coded", [False, True])
def test_a_compressed_table_is_refused_before_it_is_unpacked(codec, coded, folder):
    large = pa.array(["x" * (1 << 22)] * 6)
    path = arrow(folder, pa.table({"id": large.dictionary_encode() if coded else large}))
    plain = path.stat().st_size
    path = arrow(
        folder,
        pa.table({"id": large.dictionary_encode() if coded else large}),
        compression=codec,
    )
    assert path.stat().st_size < plain / 100
    del large
    before = pa.default_memory_pool().bytes_allocated()
    unpacked = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stored.pa.ipc, "open_file", lambda *how: unpacked.append(how))
        with pytest.raises(ValueError, match=r"is not a table \(it is compressed\); take"):
            read_all(folder)
    assert not unpacked
    assert pa.default_memory_pool().bytes_allocated() == before


def test_tables_of_old_versions_which_may_be_compressed_elsewhere_are_refused(folder):
    arrow(folder, pa.table({"id": WORDS}), metadata_version=pa.ipc.MetadataVersion.V4)
    with pytest.raises(ValueError, match=r"it has parts of another kind"):
        read_all(folder)


@pytest.mark.parametrize("size", [0, 5, 9, 10, 200])
def test_what_is_no_arrow_file_is_refused(size, folder):
    path = folder / "shard-000000" / TABLE
    path.write_bytes(path.read_bytes()[:size])
    seal(folder, TABLE, stored.StoredFile(size, stored.digest_of(path)))
    with pytest.raises(ValueError, match=r"table.arrow is not a table"):
        read_all(folder)


def test_shards_with_other_columns_are_refused(folder):
    arrow(folder, pa.table({"id": WORDS, "more": WORDS}), 1)
    corpus = Corpus(folder)
    for read in (corpus.table, lambda: corpus.take_table([17, 7, 0])):
        with pytest.raises(ValueError, match=r"000001/table.arrow has other columns than shard-0"):
            read()
    assert corpus.table(columns=["id"]).num_rows == 18
    with pytest.raises(ValueError, match=r"000000/table.arrow does not have one column 'more'"):
        corpus.table(columns=["more"])
    twice = pa.Table.from_arrays([WORDS, WORDS], names=["id", "id"])
    arrow(folder, twice, 2)
    corpus = Corpus(folder)
    with pytest.raises(ValueError, match=r"000002/table.arrow does not have one column 'id'"):
        corpus.take_table([17], ["id"])


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("keys.npy", np.zeros(7, np.int64)),
        ("keys.npy", np.zeros(6)),
        ("keys.npy", np.array([{}] * 6, dtype=object)),
        ("0.indptr.npy", np.array([0, 1, 2, 3, 4, 5, 1 << 30], np.int32)),
        ("0.indptr.npy", np.zeros((7, 1), np.int32)),
        ("0.indices.npy", np.full(10, 1 << 30, np.int32)),
        ("0.data.npy", np.zeros(1, np.float32)),
        ("1.values.npy", np.zeros((6, 3))),
        ("1.values.npy", np.asfortranarray(np.zeros((6, 2)))),
        ("1.values.npy", np.zeros((6, 2), np.complex128)),
    ],
)
def test_forged_arrays_are_refused(name, array, folder):
    replaced(folder, name, array)
    with pytest.raises(ValueError, match="damaged"):
        read_all(folder)


def test_a_header_that_promises_too_much_is_refused(folder):
    path = folder / "shard-000000" / "keys.npy"
    data = path.read_bytes().replace(b"(6,)", b"(9" + b"9" * 0 + b",)")
    path.write_bytes(data)
    with pytest.raises(ValueError, match=r"keys\.npy holds int64 of shape \(9,\)"):
        read_all(folder)


def test_another_writer_is_noticed(folder):
    one, two = CorpusWriter(folder), CorpusWriter(folder)
    one.append(rows(5))
    with pytest.raises(ValueError, match="was changed by another writer; open it again"):
        two.append(rows(6))
    with pytest.raises(ValueError, match="the corpus has the views"):
        CorpusWriter(folder).append(np.ones((2, 2)))
    with pytest.raises(ValueError, match="the table has 1 rows, the views 6"):
        CorpusWriter(folder).append(rows(1), pa.table({"id": ["a"]}))


def test_a_torn_shard_does_not_count(folder):
    before = Corpus(folder).digest
    os.makedirs(folder / "shard-000003")
    (folder / "shard-000003" / "keys.npy").write_bytes(b"half")
    assert Corpus(folder).digest == before
    CorpusWriter(folder).append(rows(7))
    Corpus(folder).verify()
    assert len(Corpus(folder)) == 24
