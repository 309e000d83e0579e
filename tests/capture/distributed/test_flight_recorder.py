"""Tests collectives whose numbers torch's flight recorder does not know: it forgot them, is off, or its group ended."""

import json
import subprocess

import pytest
import torch
import torch.distributed as dist

import nbkit
from nbkit.capture.distributed.collective_recording import FORGOTTEN, UNNUMBERED
from tests.processes import PYTHON

HELD = """
import os, sys, json
os.environ["TORCH_FR_BUFFER_SIZE"] = sys.argv[1]
import torch, torch.distributed as dist
import nbkit
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(torch.ones(1))
told = []
for verb in (nbkit.optrace, nbkit.optime):
    with verb() as trace:
        for size in range(1, 7):
            dist.all_reduce(torch.ones(size))
    calls = trace.collectives
    numbers = [int(number) or None for number in calls["seq"].fillna(0)]
    told.append([numbers, calls["size_bytes"].tolist(), calls["group"].tolist(), trace.meta["notes"]])
print(json.dumps(told))
dist.destroy_process_group()
"""


def told_of(held):
    done = subprocess.run([*PYTHON, "-c", HELD, held], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.full
def test_calls_that_it_forgot_have_no_number_rather_than_a_wrong_one():
    for first, (numbers, sizes, groups, notes) in zip((2, 8), told_of("4"), strict=True):
        assert numbers == [None, None, *range(first + 2, first + 6)]
        assert sizes == [4, 8, 12, 16, 20, 24]
        assert set(groups) == {"default_pg (1 rank)"}
        assert notes == [FORGOTTEN]


@pytest.mark.full
def test_where_it_is_off_calls_have_all_but_a_number():
    for numbers, sizes, groups, notes in told_of("0"):
        assert numbers == [None] * 6
        assert sizes == [4, 8, 12, 16, 20, 24]
        assert set(groups) == {"default_pg (1 rank)"}
        assert notes == [UNNUMBERED]


@pytest.fixture
def alone():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def told_call(trace):
    (call,) = trace.collectives[["op", "group", "size_bytes"]].values.tolist()
    return call


@pytest.mark.parametrize("verb", [nbkit.optrace, nbkit.optime, nbkit.opcheck])
def test_a_recording_in_the_middle_of_a_job_goes_on_counting(alone, verb):
    dist.all_reduce(torch.ones(2))
    with verb() as trace:
        dist.all_reduce(torch.ones(3))
        dist.barrier()
    entries = json.loads(torch._C._distributed_c10d._dump_fr_trace_json(True, False))["entries"][-2:]
    assert trace.collectives["op"].tolist() == ["all_reduce", "barrier"]
    assert trace.collectives["seq"].tolist() == [entry["collective_seq_id"] for entry in entries]


def test_a_group_that_ends_inside_is_told_by_what_was_known_before(alone):
    with nbkit.optrace() as trace:
        dist.all_reduce(torch.ones(3))
        dist.destroy_process_group()
    assert trace.collectives[["op", "group", "size_bytes"]].values.tolist() == [
        ["all_reduce", "default_pg (1 rank)", 12]
    ]
    assert (trace.meta["rank"], trace.meta["world_size"]) == (0, 1)


def test_one_that_begins_inside_is_told():
    with nbkit.optrace() as trace:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        dist.all_reduce(torch.ones(3))
    dist.destroy_process_group()
    assert trace.collectives[["op", "group", "size_bytes"]].values.tolist() == [
        ["all_reduce", "default_pg (1 rank)", 12]
    ]


def test_a_recorder_of_torch_that_reads_otherwise_costs_the_numbers_alone(alone, monkeypatch):
    monkeypatch.setattr(torch._C._distributed_c10d, "_dump_fr_trace_json", lambda *_: '{"entries": [{}]}')
    with nbkit.optrace() as trace:
        dist.all_reduce(torch.ones(3))
    assert trace.collectives["seq"].isna().all()
    assert trace.meta["notes"][0].startswith("Torch's flight recorder could not be read (KeyError")


def test_an_empty_recording_has_an_empty_frame(alone):
    with nbkit.optrace() as trace:
        pass
    assert len(trace.collectives) == 0
    assert trace.meta["notes"] == []


def test_a_call_that_waits_twice_and_one_that_nobody_waits_for(alone):
    with nbkit.optrace() as trace:
        work = dist.all_reduce(torch.ones(3), async_op=True)
        work.wait()
        work.wait()
        dist.all_reduce(torch.ones(3), async_op=True)
    assert trace.collectives["wait_us"].isna().tolist() == [False, True]
