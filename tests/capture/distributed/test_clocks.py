"""Clocks of two processes are measured by messages, and recordings have what was found."""

import pytest
import torch
import torch.distributed as dist

import nbkit
from nbkit.capture.distributed import clocks
from nbkit.errors import OptionError
from tests.capture.distributed.ranks import on_two_ranks

AHEAD_US = 250_000.0


def measured():
    real, ahead_ns = clocks.time_ns, int(1000 * AHEAD_US) * dist.get_rank()
    clocks.time_ns = lambda: real() + ahead_ns
    try:
        found = nbkit.align_clocks(rounds=50)
    finally:
        clocks.time_ns = real
    with nbkit.optrace() as trace:
        torch.ones(2).add(1)
    return found, trace.meta


def test_the_offset_is_within_the_error_that_is_told(tmp_path):
    (found, first), (same, second) = on_two_ranks(measured, tmp_path)
    assert found.equals(same)
    assert found["offset_us"][1] == pytest.approx(AHEAD_US, abs=found["error_us"][1])
    assert 0 < found["error_us"][1] < 5_000 and found["offset_us"][0] == found["error_us"][0] == 0
    assert (first["clock_offset_us"], second["clock_offset_us"]) == tuple(found["offset_us"])
    assert second["clock_error_us"] == found["error_us"][1]


def test_without_a_process_group_it_says_what_is_missing():
    with pytest.raises(OptionError, match=r"^align_clocks\(\) needs a process group; call torch.distributed.init_"):
        nbkit.align_clocks()


def test_a_number_of_rounds_that_is_none_is_refused():
    with pytest.raises(OptionError, match="rounds"):
        nbkit.align_clocks(rounds=0)
