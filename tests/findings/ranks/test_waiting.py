"""Who comes last to collectives is named where the clocks can tell it."""

import pytest

from nbkit.findings.ranks.rules import rank_findings
from nbkit.findings.ranks.waiting import skewed_collective, waiting
from tests.findings.ranks.jobs import job_of


def calls(late_us, hosts_apart_us=0.0, **fields):
    """All-reduces of 4 ranks, one a step, to which each comes `late_us(rank, step)` after the step's begin."""
    for step in range(10):
        begin = {rank: 10_000.0 * step + late_us(rank, step) for rank in range(4)}
        end = max(begin.values()) + 50
        for rank, start in begin.items():
            shift = hosts_apart_us * (rank > 1)
            row = {"rank": rank, "op": "all_reduce", "group": "0", "group_ranks": "[0, 1, 2, 3]", "seq": step}
            place = {"is_p2p": False, "module": "layers.1", "phase": "backward", "source": "a.py:3"}
            yield {**row, **place, "start_us": start + shift, "duration_us": end - start, **fields}


def test_the_rank_that_others_wait_for_is_named_with_the_line():
    job = job_of(rows=calls(lambda rank, step: 5000.0 * (rank == 2)))
    (finding,) = waiting(job)
    assert finding.evidence["rank"] == 2 and "rank 2 comes last to all collectives" in finding.message
    assert finding.effect_us == pytest.approx(5000)
    (site,) = skewed_collective(job)
    assert (site.evidence["rank"], site.op, site.module, site.source) == (2, "all_reduce", "layers.1", "a.py:3")
    assert "5.00 ms apart" in site.message


def test_where_it_is_another_rank_each_time_none_is_blamed():
    job = job_of(rows=calls(lambda rank, step: 5000.0 * (rank == step % 4)))
    assert "no rank comes last to most of 10 collectives" in waiting(job)[0].message
    assert set(rank_findings(job)["rule"]) == {"waiting", "skewed_collective"}


def test_ranks_that_come_together_are_no_finding():
    job = job_of(rows=calls(lambda rank, step: 100.0 * rank))
    assert [*waiting(job), *skewed_collective(job)] == []


def test_what_a_thread_did_not_wait_is_no_waiting():
    job = job_of(rows=calls(lambda rank, step: 5000.0 * (rank == 2), wait_us=10.0))
    assert waiting(job) == []


def test_clocks_that_are_apart_are_no_skew():
    job = job_of(rows=calls(lambda rank, step: 10.0 * rank, hosts_apart_us=1e6))
    job.ranks["host"] = ["a", "a", "b", "b"]
    assert [*waiting(job), *skewed_collective(job)] == []


def test_without_numbers_nobody_is_named():
    job = job_of(rows=calls(lambda rank, step: 5000.0 * (rank == 2), seq=None))
    assert [*waiting(job), *skewed_collective(job)] == []
