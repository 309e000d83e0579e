"""Tests that a pipeline schedule on two processes runs under optime as it runs bare, and that what it sends is told."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

from tests.capture.distributed.ranks import on_two_ranks
from tests.capture.timed import level, timed

pytestmark = pytest.mark.full  # two processes
SCHEDULES = ("ScheduleGPipe", "Schedule1F1B")


def of_this_rank():
    return {name: _of_schedule(name) for name in SCHEDULES}


def _of_schedule(name):
    trained = [_trained(name, run) for run in (lambda step: step(), timed)]
    (bare, _), (recorded, trace) = trained
    calls = level(trace, "api")
    sent = calls[calls["op"].isin(["torch.distributed.isend", "torch.distributed.irecv"])]
    return [bool((one == two).all()) for one, two in zip(bare, recorded, strict=True)], list(
        zip(sent["op"].str.rpartition(".")[2], sent["size_bytes"], sent["group"], strict=True)
    )


def _trained(name, run):
    """Returns the gradients that a step of the schedule leaves, and what `run` returned."""
    from torch.distributed import pipelining

    torch.manual_seed(dist.get_rank())
    part = nn.Linear(4, 4)
    stage = pipelining.PipelineStage(part, dist.get_rank(), 2, torch.device("cpu"))
    schedule = getattr(pipelining, name)(stage, n_microbatches=2, loss_fn=nn.functional.mse_loss)
    x, target = torch.ones(6, 4), torch.zeros(6, 4)
    given = {"args": (x,), "kwargs": {}} if dist.get_rank() == 0 else {"args": (), "kwargs": {"target": target}}
    schedule.step(*given["args"], **given["kwargs"])  # the first step asks for shapes
    part.zero_grad()
    result = run(lambda: schedule.step(*given["args"], **given["kwargs"]))
    return [parameter.grad for parameter in part.parameters()], result


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    return on_two_ranks(of_this_rank, tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_leaves_the_gradients_of_the_bare_step(ranks, name):
    assert [facts[name][0] for facts in ranks] == [[True, True]] * 2


@pytest.mark.parametrize("name", SCHEDULES)
def test_each_micro_batch_is_sent_and_its_gradient_is_received(ranks, name):
    # 3 rows of 4 float32 numbers in each of two micro-batches: 48 bytes.
    for facts, there, back in zip(ranks, ("isend", "irecv"), ("irecv", "isend"), strict=True):
        expected = [(way, 48, "default_pg (2 ranks)") for way in (there, back) for _ in range(2)]
        assert sorted(facts[name][1]) == sorted(expected)
