"""What a job shows first: brief, summary, cell output, report."""

import json

import pytest

import nbkit
from nbkit.views.ranks_view import MOST_IN_REPORT
from nbkit.views.statements.ranks import totals
from tests.support.fakes import make_ops, make_trace
from tests.support.jobs import save_job


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    return nbkit.load(save_job(tmp_path_factory.mktemp("view") / "job", 3, 4))


def test_the_brief_says_ranks_times_and_where_they_went(job):
    text = job.brief()
    assert text.startswith(
        "3 of 4 ranks: wall time 1.10 ms at the median, 1.20 ms in the slowest, rank 2. Rank 3 of 4 is"
    )
    assert "Of the time in ops aten." in text and "; of the time in modules fc takes " in text
    assert "6 collectives moved 384 B; rank 2 waited least for them (40.0 µs), rank 0 most (80.0 µs)." in text
    assert json.loads(job.brief(form="json"))["ran"].startswith("ranks job: 4 ranks")


def test_the_summary_has_ranks_ops_and_modules(job):
    lines = [" ".join(line.split()) for line in job.summary().splitlines()]
    assert any(line.startswith("2 1.20 ms +100 µs 8 node1 read") for line in lines)
    assert any(line == "3 — — — — missing" for line in lines)
    [module] = [line for line in lines if line.startswith("fc ")]
    assert module.split()[-3] == "2"  # the rank that takes longest in it


def test_shares_are_of_the_time_of_all(tmp_path):
    slow = [
        {"op": "aten.mm.default", "module": "a", "self_time_us": 30.0},
        {"op": "aten.add.Tensor", "self_time_us": 10.0},
    ]
    for rank in range(2):
        make_trace(make_ops(*slow), wall_us=40.0, rank=rank, world_size=2).save(tmp_path / f"job/rank={rank}")
    assert (
        "Of the time in ops aten.mm takes 75.0 %, aten.add.Tensor 25.0 %; of the time in modules a takes 100.0 %."
        in nbkit.load(tmp_path / "job").brief()
    )


def test_of_a_very_large_job_two_ranks_are_summed_and_that_is_said(job, monkeypatch):
    monkeypatch.setattr(totals, "MANY", 5)
    assert "Of so many ops those of ranks 1 and 2 alone were summed: of the time in ops aten." in job.brief()


def test_a_cell_shows_it(job):
    bundle = job._repr_mimebundle_()[0]
    assert "3 of 4 ranks" in bundle["text/html"] and "Slowest modules of the ranks" in bundle["text/html"]


def test_a_report_has_the_ranks_and_the_slowest_one(job, tmp_path):
    html = nbkit.opreport(job.folder, path=tmp_path / "report.html").read_text()
    assert "Ops of rank 2, the slowest (8 ops)" in html and "Flame graph of rank 2" in html
    assert "3 of 4 ranks: wall time" in html and "Slowest modules of the ranks" in html and MOST_IN_REPORT == 200_000
    assert nbkit.opreport(job, path=tmp_path / "again.html").read_text() == html
    with pytest.raises(nbkit.OptionError, match="base is a job of 4 ranks, and this looks at one process"):
        nbkit.opreport(job.rank(0), base=job, path=tmp_path / "no.html")


def test_ranks_without_ops_have_no_table(tmp_path):
    nbkit.Trace({"modules": nbkit.schema.MODULES.frame()}, {"verb": "optrace"}).save(tmp_path / "job/rank=0")
    job = nbkit.load(tmp_path / "job")
    assert "No rank has ops." in job.brief() and "Ranks" in job._repr_mimebundle_()[0]["text/html"]
    assert "their wall times are not recorded" in job.brief()
    with pytest.raises(nbkit.OptionError, match="No rank of this job has ops, so there is no table of them"):
        nbkit.OpTable(job)
