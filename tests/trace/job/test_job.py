"""A job is one lazy trace of its ranks: what it answers is what pandas has of the ranks one by one."""

import json
import sys

import pandas as pd
import pytest

import nbkit
from nbkit.errors import OptionError, TraceError
from nbkit.schema import RANKS
from nbkit.trace.job.job import Job
from tests.support.fakes import small_trace
from tests.support.jobs import all_ops, rank_trace, save_job


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """In folders whose names DuckDB would take for columns, and with a quote."""
    return save_job(tmp_path_factory.mktemp("it's") / "step=3" / "rank=7" / "job")


@pytest.fixture(scope="module")
def job(folder):
    return nbkit.load(folder)


def test_ranks_are_a_frame(job):
    assert isinstance(job, Job) and list(job.ranks.columns) == RANKS.names
    known = job.ranks[["rank", "state", "host", "world_size", "complete", "rows", "wall_us"]]
    assert known.to_dict("list") == {
        "rank": [0, 1, 2, 3], "state": ["read"] * 4, "host": ["node0", "node0", "node1", "node1"],
        "world_size": [4] * 4, "complete": [True] * 4, "rows": [8] * 4, "wall_us": [1000.0, 1100.0, 1200.0, 1300.0],
    }  # fmt: skip
    assert job.ranks["started_ns"].tolist() == [1_700_000_000_000_000_000 + rank for rank in range(4)]
    assert (job.complete, job.meta["error"], job.meta["notes"], job.slowest) == (True, None, [], 3)


def test_sql_is_asked_of_all_ranks(job, folder):
    found = job.sql("SELECT rank, sum(self_time_us) AS us, sum(op_id) AS ids FROM ops GROUP BY rank ORDER BY rank")
    expected = all_ops(folder).groupby("rank").agg(us=("self_time_us", "sum"), ids=("op_id", "sum"))
    assert found.set_index("rank").astype(float).equals(expected.astype(float))
    assert [str(dtype) for dtype in found.dtypes] == ["int64", "float64", "int64"]


def test_rows_have_the_dtypes_of_their_frame(job):
    found = job.sql("SELECT * FROM ops WHERE rank = ? ORDER BY op_id", [2])
    pd.testing.assert_frame_equal(found.drop(columns="rank")[["op_id", "parent_id", "op", "module", "self_time_us"]],
                                  job.rank(2).ops[["op_id", "parent_id", "op", "module", "self_time_us"]])  # fmt: skip
    assert found["step"].tolist() == job.rank(2).ops["step"].tolist()  # not the 3 of the folder


def test_the_rank_of_a_collective_is_that_of_its_folder(job):
    found = job.sql("SELECT rank, count(*) AS calls FROM collectives GROUP BY rank ORDER BY rank")
    assert found.to_dict("list") == {"rank": [0, 1, 2, 3], "calls": [2] * 4}


def test_one_rank_is_an_ordinary_trace(job):
    assert type(job.rank(1)) is nbkit.Trace and job.rank(1).meta["rank"] == 1
    times = nbkit.compare_times(job.rank(0), job.rank(3))
    assert set(times["action"]) == {"match"} and (times["difference_us"] >= 300).all()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT * FROM opz", 'Table with name opz does not exist.*; the views are ops, .*collectives, each with rank'),
        ("SELEC", "syntax error.*the views are"),
        ("SELECT speed FROM ops", 'Referenced column "speed" not found'),
        ("", "A query is expected as SQL, and this is ''; give 'SELECT"),
    ],
)  # fmt: skip
def test_a_query_that_cannot_run_is_one_sentence(job, query, words):
    with pytest.raises(OptionError, match=words) as raised:
        job.sql(query)
    assert "\n" not in str(raised.value)


def test_rows_of_all_ranks_are_not_read_by_mistake(job, tmp_path):
    with pytest.raises(AttributeError, match=r"The frame ops of a job stays in its files: ask trace\.sql\("):
        job.ops  # noqa: B018
    for use in (nbkit.op_times, nbkit.FlameGraph, nbkit.plot_ops, lambda one: nbkit.compare_times(one, one)):
        with pytest.raises(OptionError, match=r"is a job of 4 ranks, .* give such as trace\.rank\(3\), or ask all"):
            use(job)
    with pytest.raises(TraceError, match="The job is saved already, a folder per rank in .*; copy that folder"):
        job.save(tmp_path / "again")


def test_a_rank_that_is_not_there_is_told(job):
    for number in (4, -1, "0", True):
        with pytest.raises(OptionError, match=r"There is no rank .*; give one of ranks 0, 1, 2 and 3\."):
            job.rank(number)


def test_ranks_that_miss_are_told_in_one_note_and_the_rest_is_read(tmp_path):
    folder = save_job(tmp_path / "job", 6, 8)
    (folder / "rank=1/ops.parquet").write_bytes(b"PAR1 cut off")
    meta = folder / "rank=2/meta.json"
    meta.write_text(meta.read_text().replace('"schema_version": ', '"schema_version": 9'))
    (folder / "rank=3/meta.json").unlink()
    nbkit.Trace({}, rank_trace(5, 8).meta).save(folder / "rank=5")
    job = nbkit.load(folder)
    assert job.ranks["state"].tolist() == [
        "read", "damaged", "version", "damaged", "read", "read", "missing", "missing"
    ]  # fmt: skip
    [note] = job.meta["notes"]
    assert note.startswith("Ranks 6 and 7 of 8 are missing; of rank 1 not all is read (ops.parquet: it is no whole ")
    assert "of rank 2 not all is read (it has schema version 9" in note
    assert "of rank 3 not all is read (it has no meta.json)" in note and note.endswith("rank 5 has no ops.")
    assert job.sql("SELECT DISTINCT rank FROM ops ORDER BY rank")["rank"].tolist() == [0, 4]
    assert job.sql("SELECT DISTINCT rank FROM collectives ORDER BY rank")["rank"].tolist() == [0, 1, 4]
    assert note in job.brief() and job.brief().startswith("3 of 8 ranks: wall time ")
    with pytest.raises(TraceError, match="Rank 7 is missing in .*; copy its folder there"):
        job.rank(7)


def test_a_rank_that_ended_by_an_error_is_told(tmp_path):
    folder = save_job(tmp_path / "job", 2, 2)
    error = {"type": "RuntimeError", "message": "Connection closed by peer\nmore"}
    rank_trace(1, 2, complete=False, error=error).save(folder / "rank=1")
    job = nbkit.load(folder)
    assert job.ranks["error"].isna().tolist() == [True, False] and not job.complete
    assert "Incomplete: rank 1 ended by RuntimeError: Connection closed by peer." in job.brief()


def test_how_many_ranks_there_were_may_be_unknown(tmp_path):
    job = nbkit.load(save_job(tmp_path / "job", 2, None))
    assert job.ranks["world_size"].isna().all() and "How many ranks the job had is not recorded." in job.brief()


def test_a_job_without_a_rank_that_can_be_read_is_refused(tmp_path):
    folder = save_job(tmp_path / "job", 1, 1)
    (folder / "rank=0/meta.json").write_text("{")
    with pytest.raises(TraceError, match=r"No rank of .* can be read: meta.json is no JSON.*; record or copy the job"):
        nbkit.load(folder)


def test_traces_that_are_no_ranks_are_refused_as_before(tmp_path):
    for name in ("first", "second"):
        small_trace().save(tmp_path / name)
    with pytest.raises(TraceError, match=r"is a folder of 2 traces \(first, second\); give one of them"):
        nbkit.load(tmp_path)


def test_without_duckdb_one_sentence_names_the_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(TraceError, match=r'by DuckDB, which is not installed; run pip install "nbkit-torch\[ranks\]"'):
        nbkit.load(folder)


def test_a_large_frame_is_saved_in_row_groups_and_read_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("nbkit.trace.storage.ROW_GROUP", 3)
    trace = rank_trace(0, 1)
    trace.save(tmp_path / "job/rank=0")
    pd.testing.assert_frame_equal(nbkit.Trace.load(tmp_path / "job/rank=0").ops, trace.ops)
    job = nbkit.load(tmp_path / "job")
    assert job.database.rows_at("ops", {0: [7, 2]}, ["op_id", "op"])["op_id"].tolist() == [2, 7]


def test_a_file_that_is_cut_off_after_loading_is_one_sentence(tmp_path):
    folder = save_job(tmp_path / "job", 2, 2)
    job = nbkit.load(folder)
    (folder / "rank=1/ops.parquet").write_bytes(b"no")
    with pytest.raises((TraceError, OptionError)) as raised:
        job.sql("SELECT sum(self_time_us) FROM ops")
    assert "\n" not in str(raised.value)


def test_meta_is_data(job):
    assert json.loads(json.dumps(job.meta))["verb"] == "ranks" and repr(job).startswith("<Job 'job': 4 ranks, 32 ops")
