"""A folder of ranks says when it is opened who is slow and who waits, and draws it."""

import numpy as np
import pandas as pd
import pytest

import nbkit
from nbkit.command_line.main import main
from nbkit.errors import OptionError
from nbkit.schema import COLLECTIVES, FINDINGS, MODULES, OPS
from nbkit.verbs.ranks import findings
from tests.support.fakes import small_trace

CALLS = 8
SLOW_US = 5_000.0


def rank_trace(rank, slow=2):
    """Steps of two layers and an all-reduce, of which layer 1 is slow in one rank, and the others wait."""
    drawn = np.random.default_rng(rank)
    rows, meetings = [], []
    for call in range(CALLS):
        begin = 10_000.0 * call
        for at, module in enumerate(("layers.0", "layers.1")):
            late = SLOW_US if rank == slow and at else 0.0
            us = 500.0 + 20.0 * drawn.random() + late
            place = {"module": module, "module_call": call, "phase": "forward", "step": call, "source": f"m.py:{at}"}
            times = {"start_us": begin + 1000.0 * at, "self_time_us": us, "total_time_us": us, "level": "module"}
            rows.append({**place, **times, "op_id": len(rows), "op": "Block", "thread": 0})
        group = {"group": "0", "group_ranks": "[0, 1, 2, 3]", "is_p2p": False, "op": "all_reduce"}
        start = begin + 3000.0 + (SLOW_US if rank == slow else 0.0)
        times = {"start_us": start, "duration_us": begin + 8100.0 - start, "wait_us": begin + 8100.0 - start}
        meetings.append({**group, **times, "rank": rank, "seq": call + 1, "op_id": len(rows) - 1, "source": "t.py:3"})
    modules = [
        {"model": "M", "module": f"layers.{at}", "type": "Block", "depth": 1, "calls": CALLS, "params": 10,
         "trainable_params": 10, "param_bytes": 40, "buffer_bytes": 0}
        for at in range(2)
    ]  # fmt: skip
    trace = small_trace(verb="optime", rank=rank, world_size=4, host="a", started_ns=10**18, wall_us=CALLS * 10_000.0)
    trace.frames.clear()
    frames = {"ops": OPS.frame(rows), "modules": MODULES.frame(modules), "collectives": COLLECTIVES.frame(meetings)}
    trace.frames.update(frames)
    return trace


@pytest.fixture
def folder(tmp_path):
    for rank in range(4):
        rank_trace(rank).save(tmp_path / "job" / f"rank={rank}")
    return tmp_path / "job"


def test_the_slow_rank_is_named_with_its_module_and_who_waits_for_it(folder):
    job = nbkit.load(folder)
    assert job.findings["rule"].tolist() == ["straggler", "waiting", "skewed_collective"]
    first = job.findings.iloc[0]
    assert (first["module"], first["source"], first["count"]) == ("layers.1", "m.py:1", CALLS)
    assert first["effect_us"] == pytest.approx(SLOW_US, rel=0.05)
    brief = job.brief()
    assert brief.startswith("1 warning, 2 hints, the worst first. 4 ranks")
    assert "1. warning, straggler: rank 2 takes 5.5" in brief and "rank 2 comes last to all collectives" in brief


def test_it_is_told_too_where_two_ranks_are_missing(folder):
    for rank in (0, 3):
        (folder / f"rank={rank}").rename(folder.parent / f"gone {rank}")
    assert nbkit.load(folder).findings["rule"].tolist()[0] == "straggler"


def test_the_command_ends_with_the_status_of_findings(folder, capsys):
    assert main(["load", str(folder), "--fail-on-findings"]) == 1
    assert "straggler: rank 2 takes" in capsys.readouterr().out


def test_ranks_that_are_alike_have_none(tmp_path):
    for rank in range(4):
        rank_trace(rank, slow=None).save(tmp_path / "job" / f"rank={rank}")
    job = nbkit.load(tmp_path / "job")
    assert len(job.findings) == 0 and job.meta["notes"] == []


def test_of_a_large_job_the_first_ops_are_looked_at_and_it_says_so(folder, monkeypatch):
    monkeypatch.setattr(findings, "MOST_OPS", 4 * CALLS)
    job = nbkit.load(folder)
    assert job.findings["count"].iloc[0] == CALLS // 2
    assert job.meta["notes"] == [f"Who is slow and who waits was looked for in the first {CALLS} ops of each rank."]


def test_clocks_that_were_measured_are_heeded(tmp_path):
    for rank in range(4):
        trace = rank_trace(rank, slow=None)
        ahead_us = 1e6 * rank
        trace.meta |= {"host": f"h{rank}", "clock_offset_us": ahead_us, "clock_error_us": 5.0}
        trace.meta["started_ns"] += int(1e3 * ahead_us)
        trace.save(tmp_path / "job" / f"rank={rank}")
    assert len(nbkit.load(tmp_path / "job").findings) == 0


def test_the_heat_map_has_what_each_rank_takes_beside_the_median(folder):
    job = nbkit.load(folder)
    (heat,) = nbkit.plot_ranks(job).data
    assert (list(heat.x), list(heat.y)) == (["0", "1", "2", "3"], ["layers.1", "layers.0"])
    cells = np.array(heat.z)
    assert cells[0].argmax() == 2 and cells[0, 2] == pytest.approx(np.log2(11), abs=0.2)
    assert np.abs(np.delete(cells.ravel(), 2)).max() < 0.1
    assert list(nbkit.plot_ranks(job, by="step").data[0].y) == [str(step) for step in range(CALLS)]


def test_the_report_begins_with_the_straggler_and_draws_its_rank(folder, tmp_path):
    text = nbkit.opreport(nbkit.load(folder), path=tmp_path / "job.html").read_text()
    assert f"Flame graph of rank 2, the straggler ({2 * CALLS} ops)" in text
    assert "<svg" in text and "times the median" in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"by": "op"}, "by='op' is no way to draw ranks; give 'module' or 'step'."),
        ({"count": 0}, "count must be a whole number from 1 up, got 0."),
    ],
)
def test_bad_options_of_the_heat_map_are_one_sentence(folder, options, sentence):
    with pytest.raises(OptionError) as error:
        nbkit.plot_ranks(nbkit.load(folder), **options)
    assert str(error.value) == sentence


def test_one_process_is_no_job():
    with pytest.raises(OptionError, match=r"^plot_ranks\(\) draws the ops of several ranks; give nbkit.load\(\)"):
        nbkit.plot_ranks(small_trace())


def test_what_is_wrong_in_single_ranks_is_told_with_these(tmp_path):
    known = {"advice": "Mend it.", "source": "m.py:7", "count": 1, "evidence": '{"op_ids": [3]}', "step": 0}
    for rank in range(3):
        nan = {
            **known,
            "rule": "nan",
            "severity": "error",
            "op": "aten.log.default",
            "op_id": 3,
            "message": "NaN begins",
        }
        cut = {**known, "rule": "no_gradient", "severity": "warning", "parameter": "w", "message": "w gets no gradient"}
        hint = {**known, "rule": "loops", "severity": "hint", "message": "a loop"}
        trace = small_trace(verb="opcheck", rank=rank, world_size=3)
        trace.frames["findings"] = FINDINGS.frame([nan if rank == 1 else cut, hint])
        trace.save(tmp_path / "job" / f"rank={rank}")
    job = nbkit.load(tmp_path / "job")
    assert job.findings["message"].tolist() == ["in ranks 0 and 2: w gets no gradient", "in rank 1: NaN begins"]
    assert job.findings["op_id"].isna().all() and '"ranks": [1]' in job.findings["evidence"][1]
    brief = job.brief()
    assert (
        brief.startswith("1 error, 1 warning, the worst first. 3 ranks")
        and "nan: aten.log.default: in rank 1: NaN begins." in brief
    )
    assert "3 hints of single ranks are not among these findings: trace.sql(" in " ".join(job.meta["notes"])


def test_replicas_that_part_are_found_without_times(folder):
    job = nbkit.load(folder)
    assert "replicas_differ" not in set(job.findings["rule"])
    assert isinstance(job.sql("SELECT * FROM collectives"), pd.DataFrame)
