"""Tests which ops are one collective, which run of a backend is for it, and how long a wait was for which."""

import numpy as np
import pytest

from nbkit.timeline.collectives import collective_calls, functional_waits, transfers
from tests.support.fakes import make_ops


def op(name, start_us, total_time_us, parent_id=None, level="aten", thread=0):
    return {
        "op": name,
        "level": level,
        "parent_id": parent_id,
        "start_us": float(start_us),
        "total_time_us": float(total_time_us),
        "thread": thread,
    }


REDUCE, GATHER = "c10d.allreduce_.default", "c10d._allgather_base_.default"
NESTED = make_ops(
    op("torch.distributed.all_reduce", 0, 10, level="api"),
    op(REDUCE, 1, 5, 0),
    op("_c10d_functional_autograd.all_gather_into_tensor.default", 20, 10),
    op("_c10d_functional.all_gather_into_tensor.default", 21, 8, 2),
    op(GATHER, 22, 5, 3),
    op("_c10d_functional.wait_tensor.default", 40, 7),
    op("c10d.send.default", 50, 2),
    op("torch.distributed.all_reduce", 60, 1, level="api"),  # torch refused it
    op("aten.mm.default", 70, 1),
)


def test_names_of_one_call_are_one_call():
    calls = collective_calls(NESTED)
    assert calls.kind == ["all_reduce", "all_gather", "send"]
    assert (calls.row.tolist(), calls.top.tolist()) == ([1, 4, 6], [0, 2, 6])


def test_an_empty_frame_has_none():
    assert len(collective_calls(make_ops()).row) == 0


@pytest.mark.parametrize(
    ("times_us", "runs", "found"),
    [
        ([2.0, 25.0], ["gloo:all_reduce", "gloo:all_gather"], [0, 1]),
        ([2.0], ["gloo:all_gather"], [-1]),  # another name than that of the call around it
        ([15.0], ["gloo:all_reduce"], [-1]),  # between two calls: of one that is no op
        ([8.0, 31.0], ["gloo:all_reduce", "gloo:all_gather"], [0, 1]),  # late by a bad clock: the order tells
        ([8.0, 31.0], ["gloo:all_gather", "gloo:all_gather"], [-1, -1]),
    ],
)
def test_what_a_backend_ran_belongs_to_the_call_in_which_it_began(times_us, runs, found):
    assert collective_calls(NESTED).of_runs(times_us, runs) == found


def test_a_wait_is_for_the_one_call_under_way():
    calls = collective_calls(NESTED)
    assert functional_waits(NESTED, calls)[1] == 7.0
    assert np.isnan(functional_waits(NESTED, calls)[[0, 2]]).all()


def test_a_wait_while_two_calls_are_under_way_is_nobodys():
    functional = "_c10d_functional.all_reduce.default"
    ops = make_ops(op(functional, 0, 1), op(functional, 2, 1), op("_c10d_functional.wait_tensor.default", 4, 9))
    assert np.isnan(functional_waits(ops, collective_calls(ops))).all()


def run(name, start_us, total_time_us):
    return op(name, start_us, total_time_us, level="range", thread=1)


def test_runs_in_another_thread_are_for_the_calls_of_their_name_in_order():
    ops = make_ops(
        op(REDUCE, 0, 1), op(GATHER, 2, 1), op(REDUCE, 4, 1),
        run("gloo:all_gather", 10, 5), run("gloo:all_reduce", 5, 5), run("gloo:all_reduce", 15, 5),
    )  # fmt: skip
    calls = collective_calls(ops)
    assert transfers(ops, calls, [None] * 3, [0, 0, 0]).tolist() == [4, 3, 5]
    # The second group's may have been the first to run.
    assert transfers(ops, calls, [None] * 3, [0, 0, 1]).tolist() == [-1, 3, -1]


def test_where_a_run_is_missing_none_is_told():
    ops = make_ops(op(REDUCE, 0, 1), op(REDUCE, 4, 1), run("gloo:all_reduce", 5, 5))
    assert transfers(ops, collective_calls(ops), [None] * 2, [0, 0]).tolist() == [-1, -1]


def test_gloo_reduces_to_scatter():
    ops = make_ops(op("c10d._reduce_scatter_base_.default", 0, 1), run("gloo:all_reduce", 5, 5))
    assert transfers(ops, collective_calls(ops), [None], [0]).tolist() == [1]
