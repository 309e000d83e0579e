"""A folder of Chrome traces, one per rank, is a job; they are converted once."""

import gzip
import json

import pandas as pd
import pytest

import nbkit
from nbkit.errors import TraceError
from nbkit.readers.chrome.rank_files import ranks_of_files


def kineto(rank=None, duration=5.0, name="aten::mm"):
    told = {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": 3}}
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10.0 * at, "dur": duration, "args": {}}
        for at in range(3)
    ]
    return json.dumps({"schemaVersion": 1, **told, "traceEvents": events})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("NBKIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "traces").mkdir()
    return tmp_path / "traces"


def test_ranks_are_told_by_what_kineto_writes(folder):
    for rank, worker in ((0, "host_77"), (2, "host_76")):
        (folder / f"{worker}.1700000{rank}.pt.trace.json").write_text(kineto(rank, 5.0 + rank))
    (folder / "host_75.17000009.pt.trace.json.gz").write_bytes(gzip.compress(kineto(1).encode()))
    job = nbkit.load(folder)
    assert job.ranks["rank"].tolist() == [0, 1, 2] and job.meta["name"] == "traces"
    found = job.sql("SELECT rank, sum(self_time_us) AS us FROM ops GROUP BY rank ORDER BY rank")
    assert found["us"].tolist() == [15.0, 15.0, 21.0]
    expected = nbkit.load(folder / "host_76.17000002.pt.trace.json").ops
    pd.testing.assert_frame_equal(job.rank(2).ops, expected)
    assert job.meta["notes"][0].startswith("Read from Chrome traces, which are converted once, to ")
    assert job.brief().startswith("3 ranks: wall time 25.0 µs at the median, 27.0 µs in the slowest, rank 2.")


def test_ranks_may_be_told_by_names_alone(folder):
    for name in ("rank0.json", "rank-1_step5.json", "job.rank_10.json"):
        (folder / name).write_text(kineto())
    assert nbkit.load(folder).ranks["rank"].tolist() == [0, 1, 10]


@pytest.mark.parametrize(
    "names", [("a.json", "b.json"), ("rank1.json", "rank1_again.json"), ("rank0.json", "other.json")]
)
def test_files_that_are_no_ranks_are_refused_as_before(folder, names):
    for name in names:
        (folder / name).write_text(kineto())
    assert ranks_of_files([folder / name for name in names]) == {}
    with pytest.raises(TraceError, match=r"is a folder of 2 Chrome traces; give one of them, such as .*\.json"):
        nbkit.load(folder)


def test_a_file_is_converted_again_where_it_has_changed(folder, monkeypatch):
    for rank in range(2):
        (folder / f"{rank}.json").write_text(kineto(rank))
    job = nbkit.load(folder)
    made = [path.stat().st_mtime_ns for path in sorted((job.folder).glob("rank=*/meta.json"))]
    (folder / "1.json").write_text(kineto(1, 7.5))
    again = nbkit.load(folder)
    assert again.sql("SELECT sum(self_time_us) AS us FROM ops")["us"].tolist() == [15.0 + 22.5]
    now = [path.stat().st_mtime_ns for path in sorted((again.folder).glob("rank=*/meta.json"))]
    assert now[0] == made[0] and now[1] != made[1]


def test_a_file_that_is_damaged_or_gone_is_told_and_the_rest_is_read(folder):
    for rank in range(3):
        (folder / f"{rank}.json").write_text(kineto(rank))
    assert len(nbkit.load(folder).ranks) == 3
    (folder / "1.json").write_text(kineto(1)[:-80])
    (folder / "2.json").unlink()
    (folder / "3.json").write_text(kineto(3))
    job = nbkit.load(folder)
    assert job.sql("SELECT DISTINCT rank FROM ops ORDER BY rank")["rank"].tolist() == [0, 3]
    assert any(note.startswith("1.json could not be read: ") for note in job.meta["notes"])
