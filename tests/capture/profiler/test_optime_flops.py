"""optime's FLOPs where one op stands in another: in transforms of torch.func, in modes, in parts that run again."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import jacfwd, jvp, vmap
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import nbkit

LINEAR = nn.Linear(32, 64)
MLP = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
CONV = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 3))


class Plain(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def in_a_mode():
    with Plain():
        MLP(torch.ones(5, 8, requires_grad=True)).sum().backward()


def batched_gradients():
    y = MLP(torch.ones(5, 8)).sum(0)
    torch.autograd.grad(y, list(MLP.parameters()), torch.eye(4), is_grads_batched=True)


def checkpointed(part, *shape):
    def step():
        x = torch.ones(shape, requires_grad=True)
        checkpoint(part, x, use_reentrant=False).sum().backward()

    return step


STEPS = {
    "vmap of mm": lambda: vmap(torch.mm)(torch.ones(64, 4, 5), torch.ones(64, 5, 6)),
    "vmap of vmap of mv": lambda: vmap(vmap(torch.mv))(torch.ones(3, 4, 5, 6), torch.ones(3, 4, 6)),
    "vmap of what is not batched": lambda: vmap(lambda a: a + torch.ones(4, 3) @ torch.ones(3, 4))(torch.ones(9, 4, 4)),
    "vmap of conv2d": lambda: vmap(CONV)(torch.ones(5, 2, 3, 9, 9)),
    "jvp": lambda: jvp(LINEAR, (torch.ones(64, 32),), (torch.ones(64, 32),)),
    "jacfwd": lambda: jacfwd(MLP)(torch.ones(8)),
    "batched gradients": batched_gradients,
    "a mode": in_a_mode,
    "checkpoint": checkpointed(MLP, 5, 8),
    "checkpoint of a function": checkpointed(lambda x: MLP[2](MLP[0](x).tanh()), 5, 8),
    "checkpoint of conv2d": checkpointed(CONV, 2, 3, 9, 9),
    "checkpoint of a product": checkpointed(lambda x: x @ x.t(), 5, 8),
    "checkpoint that computes all": checkpointed(lambda x: MLP(x).tanh(), 5, 8),
}


def timed_flops(step):
    return int(nbkit.optime(shapes=True, device="cpu").run(step).ops["flops"].sum())


@pytest.mark.parametrize("name", STEPS)
def test_flops_are_those_of_what_computes(name):
    with FlopCounterMode(display=False) as counted:
        STEPS[name]()
    assert timed_flops(STEPS[name]) == counted.get_total_flops() > 0


def test_flops_of_gradients_of_each_sample():
    # Forward and weight gradient: 2 * 4 samples * 8 * 8 places * 8 filters * 27 each.
    image, weight = torch.ones(4, 3, 10, 10), torch.ones(8, 3, 3, 3)
    each = vmap(torch.func.grad(lambda w, x: F.conv2d(x[None], w).sum()), (None, 0))
    assert timed_flops(lambda: each(weight, image)) == 2 * (2 * 4 * 64 * 8 * 27)


def test_an_op_in_another_one_of_known_flops_is_not_counted_again():
    # An LSTM step: 2 * batch * 4 * hidden * (input + hidden).
    lstm = nn.LSTM(4, 5)
    assert timed_flops(lambda: lstm(torch.ones(3, 2, 4))) == 3 * 2 * 2 * 20 * (4 + 5)


def test_inputs_that_the_profiler_tells_twice_are_told_once():
    trace = nbkit.optime(shapes=True, device="cpu").run(STEPS["jvp"])
    products = trace.ops[trace.ops["op"] == "aten.addmm.default"]
    if products.empty:
        pytest.skip("this torch makes a linear layer of other ops under jvp")
    assert set(products["input_shapes"]) == {"[[64], [64, 32], [32, 64], [], []]"}
    assert products["flops"].notna().tolist() == [False, False, True]


@pytest.mark.parametrize("name", ["vmap of mm", "jvp", "checkpoint"])
def test_a_chrome_trace_has_the_same_flops(name, tmp_path):
    with torch.profiler.profile(record_shapes=True) as profile:
        STEPS[name]()
    profile.export_chrome_trace(str(tmp_path / "trace.json"))
    with FlopCounterMode(display=False) as counted:
        STEPS[name]()
    assert nbkit.load(tmp_path / "trace.json").ops["flops"].sum() == counted.get_total_flops()


def test_notes_are_a_list_where_there_are_none():
    assert nbkit.optime(device="cpu").run(STEPS["vmap of mm"]).meta["notes"] == []
