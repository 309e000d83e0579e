"""opalign of a model beside what one process of several holds of it: shards, which are no other values."""

import copy

import torch
from torch import nn

import nbkit
from tests.capture.distributed.ranks import on_two_ranks

X = torch.linspace(-1, 1, 18).reshape(3, 6)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.Linear(8, 4)).eval()


def tensor_parallel() -> tuple[bool, list[str]]:
    """Returns whether a model agrees with this process's part of it, and the notes."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    whole = model()
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallel = parallelize_module(copy.deepcopy(whole), init_device_mesh("cpu", (2,)), plan)
    trace = nbkit.opalign(whole, parallel, inputs=[X])
    return trace.meta["first_divergence"] is None, trace.meta["notes"]


def test_a_process_of_a_tensor_parallel_model_agrees_and_is_told_by_its_shards(tmp_path):
    for agrees, notes in on_two_ranks(tensor_parallel, tmp_path):
        assert agrees and any("holds a shard of 0.weight, [4, 6] of [8, 6]; so it is with 2" in note for note in notes)


def test_a_part_that_is_not_put_together_is_told_as_a_shard():
    half, state = nn.Sequential(nn.Linear(6, 4), nn.GELU(), nn.Linear(4, 4)), model().state_dict()
    parts = {"0.weight": state["0.weight"][4:], "0.bias": state["0.bias"][4:], "2.weight": state["2.weight"][:, 4:]}
    half.load_state_dict({**state, **parts})
    first = nbkit.opalign(model(), half.eval(), inputs=[X]).meta["first_divergence"]
    told = "the right side holds a shard of 0.weight, [4, 6] of [8, 6]: it gives something else than the whole"
    assert first["message"].startswith(told)
