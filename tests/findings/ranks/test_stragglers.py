"""A slow rank is named with its module, and noise is none."""

import re

import pytest

from nbkit.findings.ranks.stragglers import straggler, wandering_straggler
from tests.findings.ranks.jobs import job_of


def slow_in(rank, module, us=5000.0):
    return lambda r, m, call: us if (r, m) == (rank, module) else 0.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("ranks", [range(4), (1, 2), (0, 2, 3)])
def test_a_rank_that_is_slower_each_time_is_named_with_its_module(seed, ranks):
    (finding,) = straggler(job_of(slow_in(2, "layers.1"), ranks, seed=seed))
    assert (finding.evidence["rank"], finding.module, finding.source) == (2, "layers.1", "layers.1.py:1")
    assert finding.effect_us == pytest.approx(5000, rel=0.2)
    assert re.match(r"rank 2 takes 5\.[89]\d ms a call, the ranks' median is [89]\d\d µs: ", finding.message)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("pauses", [0.0, 0.25])
def test_noise_names_nobody(seed, pauses):
    job = job_of(seed=seed, pauses=pauses, noise=0.3)
    assert [*straggler(job), *wandering_straggler(job)] == []


def test_a_stage_of_a_pipeline_is_compared_with_its_like():
    usual = {rank: {f"layers.{rank}": 900.0} for rank in range(4)}
    (finding,) = straggler(job_of(slow_in(1, "layers.1"), usual=usual))
    assert (finding.evidence["rank"], finding.module) == (1, "layers.1")
    assert straggler(job_of(usual=usual)) == []


def test_stages_of_other_classes_are_not_compared():
    usual = {0: {"embed": 100.0}, 1: {"layers.0": 9000.0}, 2: {"head": 400.0}}
    assert straggler(job_of(usual=usual, ranks=range(3))) == []


def test_two_slow_ranks_of_four_are_both_named():
    found = straggler(job_of(lambda rank, module, call: 5000.0 * (rank in (1, 3) and module == "head")))
    assert sorted(finding.evidence["rank"] for finding in found) == [1, 3]


def test_what_is_little_of_a_step_is_no_finding():
    assert straggler(job_of(slow_in(2, "layers.1", 150.0), noise=0.01, pauses=0)) == []
    large = dict.fromkeys(("embed", "layers.0", "layers.1", "head"), 100000.0)
    assert straggler(job_of(slow_in(2, "layers.1", 1000.0), usual=large, noise=0.001, pauses=0)) == []


def test_a_few_calls_tell_nothing():
    assert straggler(job_of(slow_in(2, "layers.1"), calls=3)) == []


@pytest.mark.parametrize("seed", range(2))
def test_another_rank_each_time_is_told_as_such(seed):
    job = job_of(lambda rank, module, call: 5000.0 * (module == "head" and rank == call % 4), pauses=0, seed=seed)
    (finding,) = wandering_straggler(job)
    assert (finding.module, finding.evidence["ranks"]) == ("head", {0: 3, 1: 3, 2: 2, 3: 2})
    assert straggler(job) == []


def test_one_slow_rank_does_not_wander():
    assert wandering_straggler(job_of(slow_in(2, "layers.1"), pauses=0)) == []
