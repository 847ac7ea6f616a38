"""The reader of corpora: rows, samples, and damage."""

import errno
import json
import pickle

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

from coem import open_corpus
from coem.corpus import Corpus
from coem.derived import DerivedCorpus
from coem.io.corpus_writer import CorpusWriter
from coem.stored import MANIFEST, StoredFile, digest_of, map_table
from coem.text import LatentDirections
from tests.corpora.stores import CUTS, N, stored, views_of


def same(one, other):
    assert one.names == other.names
    for name, X in one.items():
        Y = other[name]
        assert sp.issparse(X) == sp.issparse(Y)
        X, Y = (M.toarray() if sp.issparse(M) else M for M in (X, Y))
        np.testing.assert_array_equal(X, Y)


@pytest.fixture
def views():
    return views_of("words", "gaps", "unit")


@pytest.fixture
def corpus(tmp_path, views):
    return stored(tmp_path / "corpus", views)


def test_a_lack_of_memory_is_no_damage(tmp_path, monkeypatch):
    def full(path):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    (tmp_path / "table.arrow").write_bytes(b"12345678")
    monkeypatch.setattr(pa, "memory_map", full)
    with pytest.raises(MemoryError, match=r"no room to map .*table\.arrow"):
        map_table(tmp_path / "table.arrow", StoredFile(8, ""), 1)


@pytest.mark.parametrize(
    "ends", [(0, N), (0, 90), (89, 92), (90, 91), (5, 301), (300, N), (7, 7), (N, N)]
)
def test_a_range_of_rows_may_span_shards(corpus, views, ends):
    same(corpus.rows(*ends), views[slice(*ends)])


def test_rows_are_taken_in_the_order_asked_for(corpus, views):
    rows = np.array([400, 3, 90, 3, 299, 300, 91])
    same(corpus.take(rows), views[rows])
    same(corpus[rows], views[rows])
    same(corpus[5:200:7], views[5:200:7])
    same(corpus.take(np.zeros(0, dtype=int)), views[:0])
    same(corpus.load(), views)
    same(corpus[90], views[[90]])


def test_it_has_the_shape_and_the_views_of_its_rows(corpus, views):
    assert len(corpus) == N
    assert corpus.shape == views.shape
    assert corpus.names == views.names
    assert corpus.widths == views.widths
    assert corpus.bounds == list(CUTS)
    same(corpus[["unit", "words"]].rows(80, 100), views[["unit", "words"]][80:100])
    same(pickle.loads(pickle.dumps(corpus)).load(), views)
    assert "420 rows" in repr(corpus)


def test_a_sample_depends_on_the_content_of_rows_alone(tmp_path, corpus, views):
    drawn = corpus.sample(50)
    assert (np.diff(drawn) > 0).all()
    assert len(drawn) == 50
    assert len(corpus.sample(10 * N)) == N
    assert not np.array_equal(drawn, corpus.sample(50, seed=1))
    other = stored(tmp_path / "other", views, (0, 17, 200, N))
    np.testing.assert_array_equal(other.sample(50), drawn)
    order = np.random.default_rng(0).permutation(N)
    mixed = stored(tmp_path / "mixed", views[order])
    # An empty row may be there several times; whichever is drawn, it is the same.
    one, two = (np.sort(c.take(c.sample(50))["words"].toarray(), axis=0) for c in (corpus, mixed))
    np.testing.assert_array_equal(one, two)
    among = np.arange(10, 300, 3)
    some = corpus.sample(20, among=among)
    assert set(some) <= set(among)
    assert len(some) == 20


def test_the_digest_stands_for_the_content(tmp_path, corpus, views):
    again = stored(tmp_path / "again", views)
    assert again.digest == corpus.digest
    rows = views["gaps"].copy()
    rows[5] += 1
    changed = type(views)({**dict(views.items()), "gaps": rows})
    assert stored(tmp_path / "changed", changed).digest != corpus.digest


@pytest.mark.parametrize("file", ["0.indptr", "0.indices", "0.data", "1.values"])
def test_a_damaged_file_is_named(corpus, file):
    path = corpus.path / "shard-000002" / f"{file}.npy"
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(ValueError, match=f"shard-000002.*{file}"):
        corpus.rows(91, 92)
    path.unlink()
    with pytest.raises(ValueError, match=f"shard-000002.*{file}"):
        corpus.load()


def test_indices_that_point_outside_are_found_also_after_the_shard_was_read(corpus):
    corpus.load()
    path = corpus.path / "shard-000002" / "0.indices.npy"
    indices = np.load(path)
    indices[3] = 10**6
    np.save(path, indices)
    with pytest.raises(ValueError, match=r"shard-000002/0\.indices\.npy has other.*from a copy"):
        corpus.load()


@pytest.mark.parametrize("part", ["indptr", "indices"])
def test_a_byte_that_was_flipped_is_told_of_with_its_file(corpus, part):
    path = corpus.path / "shard-000002" / f"0.{part}.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 0x40
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"shard-000002/0\.{part}\.npy has other content"):
        corpus.load()


def test_files_that_were_forged_with_their_digests_are_told_of(corpus):
    path = corpus.path / "shard-000002" / "0.indptr.npy"
    indptr = np.load(path)
    indptr[0] = 1
    np.save(path, indptr)
    files = corpus.shards[2].stored.files
    files[path.name] = StoredFile(files[path.name].size, digest_of(path))
    with pytest.raises(ValueError, match=r"fit .* 'words' \(indptr begins .*\); take it from"):
        corpus.load()


def test_a_link_may_lead_to_a_corpus_and_none_out_of_it(corpus, views, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(corpus.path)
    linked = open_corpus(tmp_path / "link")
    same(linked.load(), views)
    same(pickle.loads(pickle.dumps(linked)).load(), views)
    linked.verify()
    assert (linked.path, linked.digest) == (tmp_path / "link", corpus.digest)
    CorpusWriter(tmp_path / "link").append(views[:10])
    assert len(open_corpus(corpus.path)) == N + 10
    shard = corpus.path / "shard-000002"
    shard.rename(tmp_path / "elsewhere")
    shard.symlink_to(tmp_path / "elsewhere")
    for path in ("link", "corpus"):
        with pytest.raises(ValueError, match=r"shard-000002/.*is not a regular file"):
            open_corpus(tmp_path / path).load()
    (corpus.path / MANIFEST).rename(tmp_path / "manifest")
    (corpus.path / MANIFEST).symlink_to(tmp_path / "manifest")
    with pytest.raises(ValueError, match="it is not a regular file"):
        open_corpus(corpus.path)


def test_a_sample_has_no_negative_size(corpus):
    with pytest.raises(ValueError, match="n must be an integer of 0 or more, got -1"):
        corpus.sample(-1)
    assert len(corpus.sample(0)) == 0


def test_a_file_of_another_shape_is_named(corpus):
    path = corpus.path / "shard-000000" / "1.values.npy"
    np.save(path, np.zeros((3, 4)))
    with pytest.raises(ValueError, match=r"1.values.npy has 224 bytes"):
        corpus.rows(0, 3)


def test_what_is_no_corpus_is_said(tmp_path, corpus):
    with pytest.raises(ValueError, match="not a corpus"):
        open_corpus(tmp_path)
    (tmp_path / "a.csv").write_text("id\n1\n")
    with pytest.raises(ValueError, match=r"a\.csv is not a corpus; write one with `coem ingest`"):
        open_corpus(tmp_path / "a.csv")
    manifest = json.loads((corpus.path / MANIFEST).read_text())
    (corpus.path / MANIFEST).write_text(json.dumps({**manifest, "schema": 99}))
    with pytest.raises(ValueError, match="another version"):
        open_corpus(corpus.path)


def test_more_rows_than_fit_are_not_loaded(corpus):
    with pytest.raises(ValueError, match=r"AspectModel needs all rows in memory.*sample"):
        corpus.load(most=100, what="AspectModel")


def test_a_shard_counts_once_the_manifest_names_it(corpus, views):
    before = open_corpus(corpus.path)
    CorpusWriter(corpus.path).append(views[:10])
    assert len(before) == N
    assert len(open_corpus(corpus.path)) == N + 10


# -- a view that is computed from the others ---------------------------------------------------


@pytest.fixture
def derived(corpus):
    return LatentDirections(3, min_df=1).fit(corpus[["words"]]).transform(corpus[["words"]])


def test_a_derived_view_is_computed_for_the_rows_that_are_read(derived, corpus):
    whole = derived.load()
    assert isinstance(derived, DerivedCorpus)
    assert isinstance(derived, Corpus)
    assert derived.names == ("words", "latent")
    assert derived.widths == (30, 3)
    same(derived.rows(80, 95), whole[80:95])
    rows = np.array([400, 3, 90])
    same(derived.take(rows), whole[rows])
    same(derived[["latent"]].load(), whole[["latent"]])
    assert derived[["words"]].digest == corpus.digest
    assert derived[["latent", "words"]].names == ("latent", "words")
    np.testing.assert_array_equal(derived.sample(30), corpus.sample(30))


def test_a_derived_view_travels_and_has_a_digest_of_its_own(derived, corpus):
    again = pickle.loads(pickle.dumps(derived))
    same(again.load(), derived.load())
    assert again.digest == derived.digest != corpus.digest
    other = LatentDirections(2, min_df=1).fit(corpus[["words"]]).transform(corpus[["words"]])
    assert other.digest != derived.digest


def test_a_derived_view_can_be_stored(tmp_path, derived):
    writer = CorpusWriter(tmp_path / "both")
    for shard in derived.shards:
        writer.append(shard.read())
    same(open_corpus(tmp_path / "both").load(), derived.load())


def test_a_derived_view_stays_when_the_model_is_fitted_again(corpus):
    model = LatentDirections(3, min_df=1).fit(corpus[["words"]])
    derived = model.transform(corpus[["words"]])
    before = derived.load()["latent"]
    model.set_params(n_directions=2).fit(corpus[["words"]])
    np.testing.assert_array_equal(derived.load()["latent"], before)


def test_a_name_that_is_taken_is_refused(corpus):
    words = corpus[["words", "gaps"]]
    with pytest.raises(ValueError, match="'gaps' already"):
        LatentDirections(2, min_df=1, name="gaps").fit(words)
