"""Streams of documents that are made to do harm: each is refused in a sentence that names it."""

import gzip
from contextlib import closing

import pytest

from coem.io import unpacking
from coem.io.batches import open_source
from coem.io.sources import TableError

ROWS = b"id,body\n" + b"".join(b"%d,some words\n" % i for i in range(500))
PACKED = gzip.compress(ROWS)


def drain(path, **how):
    """Return the rows of all records of a source."""
    with closing(open_source(str(path), **how)) as source:
        return source.table(list(iter(source.record, None)))[0]


def said(path, content):
    path.write_bytes(content)
    with pytest.raises(TableError) as caught:
        drain(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_packed_stream(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(PACKED)
    assert drain(tmp_path / "a.csv.gz").num_rows == 500


@pytest.mark.parametrize(
    "content",
    [PACKED[:-20], PACKED[:60] + b"\xff\x00\xff" * 9 + PACKED[87:], b"no gzip"],
    ids=["cut", "damaged", "other"],
)
def test_a_packed_stream_that_is_damaged(content, tmp_path):
    assert "is damaged or cut short" in said(tmp_path / "a.csv.gz", content)


def test_a_packed_stream_may_not_grow_without_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(unpacking, "FLOOR", 10_000)
    content = gzip.compress(b"id,body\n" + b"1,x\n" * 1_000_000)
    assert "200 times its size" in said(tmp_path / "a.csv.gz", content)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"a\rb,body\n", "the header has a carriage return in a cell that is not quoted"),
        (b"x" * 200_000 + b",body\n", "a name of a column is as long as a document"),
        (b"id,bo\x00dy\n", "NUL"),
        (b"body,body\n", "both called 'body'"),
    ],
)
def test_a_header_that_is_none(header, message, tmp_path):
    assert message in said(tmp_path / "a.csv", header + b"1,x\n")


@pytest.mark.parametrize("encoding", ["idna", "undefined", "punycode", "zlib", "nothing", "a\x00"])
def test_codecs_that_are_no_encodings(encoding, tmp_path):
    (tmp_path / "a.csv").write_bytes("id,body\n1,\u00e4\n".encode())
    with pytest.raises(TableError, match="give its encoding"):
        drain(tmp_path / "a.csv", encoding=encoding)


def test_only_line_feeds_end_rows(tmp_path):
    (tmp_path / "a.csv").write_bytes("id,body\n1,a\u2028b\x0bc\n2,d\x85e\n".encode())
    assert drain(tmp_path / "a.csv").column("body").to_pylist() == ["a\u2028b\x0bc", "d\x85e"]
