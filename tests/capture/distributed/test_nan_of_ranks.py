"""Tests what opcheck says of a NaN that a collective brought from another process."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

import nbkit
from tests.capture.distributed.ranks import on_two_ranks


def reduced():
    """Sums what is NaN in the second process alone."""
    x = torch.ones(4) * 2
    if dist.get_rank() == 1:
        x = (x - x) / (x - x)
    dist.all_reduce(x)
    return x * 3


def functional():
    from torch.distributed._functional_collectives import all_reduce

    x = torch.ones(4) * 2
    if dist.get_rank() == 1:
        x = (x - x) / (x - x)
    return all_reduce(x, "sum", dist.group.WORLD) + 1


def received():
    x = torch.zeros(4) + 1
    if dist.get_rank() == 1:
        dist.send((x - x) / (x - x), 0)
    else:
        dist.recv(x, 1)
    return x * 2


def replicated():
    torch.manual_seed(0)
    model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    x = torch.ones(3, 4)
    model(x / (x - x) if dist.get_rank() == 1 else x).sum().backward()
    optimizer.step()


STEPS = {"reduced": reduced, "functional": functional, "received": received, "replicated": replicated}


def of_this_rank():
    found = {}
    for name, step in STEPS.items():
        with nbkit.opcheck() as trace:
            step()
        columns = ["rule", "message", "advice"]
        found[name] = list(trace.findings[columns].itertuples(index=False, name=None))
        dist.barrier()
    return found


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    return on_two_ranks(of_this_rank, tmp_path_factory.mktemp("ranks"))


@pytest.mark.full  # two processes
@pytest.mark.parametrize("step", ["reduced", "functional", "received"])
def test_the_rank_that_gave_numbers_is_told_which_collective_brought_the_nan(ranks, step):
    ((rule, message, advice),) = ranks[0][step]
    assert rule == "input"
    name = "recv" if step == "received" else "all_reduce"
    assert f"was written by {name} at " in message
    assert "test_nan_of_ranks.py:" in message
    assert message.endswith(", from other ranks' values: 4 NaN, shape [4]")
    assert advice.startswith("Run opcheck in each rank of the group")


@pytest.mark.full
@pytest.mark.parametrize("step", ["reduced", "functional", "received"])
def test_the_rank_that_made_it_has_the_op(ranks, step):
    ((rule, message, _),) = ranks[1][step]
    assert (rule, "4 of 4 elements are NaN" in message) == ("nan", True)


@pytest.mark.full
def test_a_gradient_that_the_reducer_summed_came_from_a_collective(ranks):
    assert any("was written by all_reduce" in message for _, message, _ in ranks[0]["replicated"])


def test_what_this_process_gave_unseen_may_be_its_own():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        x, into = torch.full((4,), float("nan")), torch.zeros(4)
        with nbkit.opcheck() as trace:
            dist.all_gather_into_tensor(into, x)
            into * 2
    finally:
        dist.destroy_process_group()
    messages = trace.findings["message"].tolist()
    assert any(message.endswith(", from the values of its ranks: 4 NaN, shape [4]") for message in messages)
