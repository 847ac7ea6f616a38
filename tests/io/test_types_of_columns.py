"""Columns of every type that Arrow has: each is read, or refused by name."""

import datetime
import io
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from coem.io.streams import Reading, Stream
from coem.io.tables import TableError, read_table
from coem.recipes.documents import read_source
from coem.text import TextViews
from tests.io.hostile import KINDS_OF_VIEWS, LEAVES, complaint, odd_column

N = 30
SECONDS = [datetime.timedelta(seconds=i) for i in range(N)]
COLUMNS = {
    "half": pa.array(np.arange(N).astype(np.float16)),
    "half with gaps": pa.array([np.float16(i) if i % 2 else None for i in range(N)]),
    "infinite": pa.array([float("inf"), 1.0] * (N // 2)),
    "large": pa.array([1e300, 1.0] * (N // 2)),
    "unsigned": pa.array([2**63 + i for i in range(N)], pa.uint64()),
    "bytes": pa.array([b"\xff%d" % i for i in range(N)]),
    "bytes of one length": pa.array([b"\xff\x00"] * N, pa.binary(2)),
    "durations": pa.array(SECONDS, pa.duration("s")),
    "long durations": pa.array([d * 10_000 for d in SECONDS], pa.duration("ns")),
    "lists of durations": pa.array([[d] for d in SECONDS], pa.list_(pa.duration("ns"))),
    "lists of lists": pa.array([[[1, 2], [3]]] * N),
    "lists of objects": pa.array([[{"a": 1}]] * N),
    "lists of maps": pa.array([[[("k", "v")]]] * N, pa.list_(pa.map_(pa.string(), pa.string()))),
    "texts in views": pa.array(["ab c"] * N, pa.string_view()),
}


def table(column):
    texts = [f"some words about article number {i} and its friends" for i in range(N)]
    return pa.table({"id": [f"p{i}" for i in range(N)], "text": texts, "d": column})


pytestmark = pytest.mark.filterwarnings("ignore:view 'v' can disturb")


def write(data, path):
    try:
        parquet.write_table(data, path)
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow does not write such columns")


@pytest.mark.parametrize("kind", [None, *KINDS_OF_VIEWS])
@pytest.mark.parametrize("name", COLUMNS)
def test_views_of_columns_of_any_type(name, kind, tmp_path):
    write(table(COLUMNS[name]), tmp_path / "a.parquet")
    views = None if kind is None else {"v": f"d:{kind}"}
    for data in (read_table(tmp_path / "a.parquet").data, table(COLUMNS[name])):
        said = error_of(lambda data=data: TextViews(views, id="id").fit_transform(data))
        assert said is None or "view 'v'" in said


def error_of(do):
    """Return what an error of coem says; any other is raised."""
    try:
        do()
    except ValueError as error:
        if complaint(error):
            raise
        return str(error)
    return None


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_that_nobody_asks_for_stops_no_file(name, tmp_path):
    path = tmp_path / "a.parquet"
    write(table(COLUMNS[name]), path)
    data = read_table(path).data
    assert data.num_rows == N
    (part,) = Stream([str(path)], tmp_path, Reading())
    assert part["d"].to_pylist() == data["d"].to_pylist()
    assert TextViews(id="id").fit(data).views_["text"]["kind"] == "text"


def test_what_columns_of_rare_types_are_as_views():
    def words(column, kind):
        X = TextViews({"v": f"d:{kind}"}, id="id").fit(table(column))
        return X.vocabulary_["v"].tolist()

    assert words(COLUMNS["unsigned"].cast(pa.uint64()).take([3] * N), "list") == [str(2**63 + 3)]
    halves = pa.array(np.tile([1, 2, 3], N // 3).astype(np.float16))
    assert words(halves, "category") == ["1", "2", "3"]
    with pytest.raises(ValueError, match="view 'v': column 'd' holds bytes that are not text"):
        words(COLUMNS["bytes"], "category")
    with pytest.raises(ValueError, match="view 'v': column 'd' holds double and not categories"):
        words(COLUMNS["infinite"], "category")


FAR = {
    "the time zone 'Mars/Base', which is not known here": pa.timestamp("us", "Mars/Base"),
    "a date or time that cannot be read": pa.duration("s"),
    "a date or time that cannot be read ": pa.timestamp("us"),
}


@pytest.mark.parametrize("said", FAR)
@pytest.mark.parametrize("inside", [False, True])
def test_times_that_nobody_can_read_are_named(said, inside, tmp_path):
    times = pa.array([2**61] * N if said[0] == "a" else [0] * N, FAR[said])
    data = table(pa.array([[time] for time in times], pa.list_(times.type)) if inside else times)
    with pytest.raises(ValueError, match=f"the table: column 'd' has {said.strip()}"):
        read_source(data)
    parquet.write_table(data, tmp_path / "a.parquet")
    with pytest.raises(TableError, match=rf"a\.parquet: column 'd' has {said.strip()}") as error:
        read_table(tmp_path / "a.parquet")
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    "kind", [pa.date64(), pa.timestamp("ns"), pa.time64("us"), pa.duration("s")], ids=str
)
def test_times_may_be_categories(kind):
    times = pa.array([0, 1, None] * (N // 3), pa.int64()).cast(kind)
    data = table(times.dictionary_encode())
    assert read_source(data).data["d"].to_pylist() == times.to_pylist()
    assert read_source(data.slice(0, 1)).data.num_rows == 1


def test_times_among_categories_that_nobody_can_read_are_named():
    far = pa.array([2**61] * N, pa.timestamp("us")).dictionary_encode()
    with pytest.raises(ValueError, match="the table: column 'd' has a date or time that cannot be"):
        read_source(table(far))


def test_hostile_tables_have_columns_of_every_type():
    rng = random.Random(0)
    columns = [odd_column(rng, 5) for _ in range(2000)]
    written = 0
    for column in columns:
        try:
            parquet.write_table(pa.table({"d": column}), io.BytesIO())
            written += 1
        except pa.ArrowException:
            continue
    assert {column.type for column in columns} >= set(LEAVES)
    assert written > 0.8 * len(columns)
