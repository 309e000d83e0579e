"""Tests collectives in an optime trace: bytes and group."""

import inspect

import pytest
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from tests.capture.timed import level, named, timed


@pytest.fixture(scope="module", autouse=True)
def one_process():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_calls_have_their_bytes_and_group():
    x, both = torch.ones(10), [torch.ones(4), torch.ones(4, dtype=torch.float64)]

    def step():
        dist.all_reduce(x)
        dist.all_gather([torch.empty(10)], tensor=x)
        dist.all_reduce_coalesced(both[:1])
        dist.barrier()

    calls = level(timed(step), "api")
    assert calls["op"].tolist() == [
        f"torch.distributed.{name}" for name in ("all_reduce", "all_gather", "all_reduce_coalesced", "barrier")
    ]
    assert calls["size_bytes"].tolist()[:3] == [40, 40, 16]
    assert calls["size_bytes"].isna().tolist() == [False, False, False, True]
    assert set(calls["group"]) == {"default_pg (1 rank)"}


def test_the_dispatcher_calls_hang_under_them():
    trace = timed(lambda: dist.all_reduce(torch.ones(3)))
    inner = named(trace, "c10d.allreduce_.default")
    assert trace.ops["op"].loc[inner["parent_id"]].tolist() == ["torch.distributed.all_reduce"]


def test_work_of_the_process_group_has_its_bytes_where_shapes_are_recorded():
    def step():
        dist.all_reduce(torch.ones(10, dtype=torch.float64))
        dist.barrier()

    work = named(timed(step, shapes=True), "gloo:all_reduce")
    assert work["size_bytes"].tolist() == [80]
    assert work["thread"].tolist() != [0]


def test_a_call_that_torch_refuses_raises_torchs_own_error():
    with pytest.raises(TypeError) as bare:
        dist.all_reduce()
    with pytest.raises(TypeError) as recorded:
        timed(lambda: dist.all_reduce())  # looked up where it is recorded
    assert str(recorded.value) == str(bare.value)
    group = dist.new_group([0], group_desc="mine")
    assert named(timed(lambda: dist.all_reduce(torch.ones(1), group=group)), "torch.distributed.all_reduce")[
        "group"
    ].tolist() == ["mine (1 rank)"]


def test_every_function_stays_the_object_that_torch_compares_with():
    def functions():
        return {name: value for name, value in vars(dist).items() if callable(value)}

    def step():
        assert functions() == before
        assert dist.isend is distributed_c10d.isend
        return dist.P2POp(dist.isend, torch.ones(2), 0)  # "Expected op to be of type isend or irecv" of another

    before, code, signature = functions(), dist.isend.__code__, inspect.signature(dist.all_reduce)
    timed(step)
    assert dist.isend.__code__ is code
    assert inspect.signature(dist.all_reduce) == signature


def test_a_function_imported_by_its_name_and_one_that_another_calls_are_told_once():
    from torch.distributed import all_reduce as mine

    def step():
        mine(torch.ones(5))
        with pytest.raises(ValueError, match="Invalid destination rank"):
            dist.send(torch.ones(2), 0)  # runs isend()

    assert level(timed(step), "api")["op"].tolist() == ["torch.distributed.all_reduce", "torch.distributed.send"]
